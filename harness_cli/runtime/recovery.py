"""Trajectory-level recovery (METHODS §1): compact fallback, conservative reply, or silence.

Never an invented product fact: the compact route has only what tools already gave back, its text
passes the same stop gate, and what follows it is a fixed text of the harness.
"""

from harness_cli.errors import ProviderError
from harness_cli.records.chat import ChatRequest, Message
from harness_cli.records.trajectory import Route
from harness_cli.runtime.ask import bounded_call, without_reasoning
from harness_cli.runtime.hooks.check_text import comments_of
from harness_cli.runtime.language import in_language
from harness_cli.runtime.session import Ended, Session, Turn

FACTS_CAP = 6_000
"""Characters of tool results that the compact prompt carries."""


async def recover(session: Session, end: Ended) -> None:
    """Give the rollout the best end that is left: the reasons stay on the trajectory."""
    session.close_turn()
    session.stop, session.error = end.stop, end.error
    if session.agent.kind == "bare":
        session.reply = ""
        return
    if end.route is Route.COMPACT and await _compact(session):
        session.route = Route.COMPACT
        return
    if end.route is Route.SUPPRESSED or session.request.channel == "public":
        session.reply, session.route = "", Route.SUPPRESSED
        return
    session.reply = _conservative(session)
    session.route = Route.CONSERVATIVE if session.reply else Route.SUPPRESSED


async def _compact(session: Session) -> bool:
    """One tool-less call with the compact prompt; True when its text passes the stop gate."""
    state, agent = session.agent.state, session.agent
    seconds = session.meter.fallback_s()
    if not state.fallback.strip() or agent.kind == "react" or seconds <= 0:
        return False
    session.compact = True
    messages = compact_messages(session)
    request = ChatRequest(
        messages=tuple(messages),
        temperature=agent.generation.temperature,
        top_p=agent.generation.top_p,
        max_tokens=agent.generation.max_tokens,
        seed=agent.generation.seed,
    )
    policy = agent.fallback or agent.policy
    index = session.model_calls
    session.model_calls += 1
    try:
        answer = await session.log.model(
            index, request, lambda: bounded_call(policy, request, seconds)
        )
    except ProviderError as exc:
        session.error = f"{session.error or session.stop}; compact fallback: {exc.kind}: {exc}"
        return False
    answer = without_reasoning(answer)
    session.turn = Turn(reply=answer, messages=tuple(messages), fallback=agent.fallback is not None)
    session.see("model", answer)
    return await _passes(session, (answer.content or "").strip())


async def _passes(session: Session, text: str) -> bool:
    """The same stop gate as ever, without a second try."""
    if not text:
        return False
    ruling, moment = await session.ask_hooks("before_reply", reply=text)
    session.keep_hooks(ruling, of_step=True)
    if ruling.action != "allow":
        return False
    session.reply = moment.reply
    return True


def compact_messages(session: Session) -> list[Message]:
    """The compact prompt: `fallback.md`, what tools gave back so far, the comments."""
    facts = "\n".join(
        f"{c.name}: {c.result.content}"
        for c in session.calls
        if c.result.ok and c.executor != "builtin"
    )
    system = session.agent.state.fallback.strip()
    if facts:
        system += f"\n\nWhat the tools said (say no other fact):\n{facts[:FACTS_CAP]}"
    faq = "\n".join(f"- {f.question} {f.answer}" for f in session.request.faq)
    if faq:
        system += f"\n\nFAQ:\n{faq[:FACTS_CAP]}"
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": comments_of(session.request)},
    ]


def _conservative(session: Session) -> str:
    """The fixed text for a private channel."""
    return in_language(session.prepared.state.replies.conservative, session.request)
