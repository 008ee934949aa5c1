"""One answer of the policy: bounded, stepped up when it was cut off, per-call fallback."""

import msgspec

from harness_cli.errors import HarnessError, ProviderError
from harness_cli.models.base import Deadline, Policy
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.trajectory import StopReason
from harness_cli.runtime.clock import within
from harness_cli.runtime.reasoning import split_reasoning
from harness_cli.runtime.session import Ended, Session, Turn


async def ask(session: Session) -> ChatReply:
    """The policy's next answer; its turn is open in the session.

    An answer cut off by `max_tokens` is recorded and asked for again with twice as many, up to the
    ceiling, inside the same round. Raises `Ended` when neither the policy nor its fallback answers.
    """
    while True:
        reply = await _answer(session)
        more = min(session.max_tokens * 2, session.agent.generation.max_tokens_ceiling)
        if reply.finish_reason != "length" or more <= session.max_tokens:
            return reply
        session.max_tokens = more
        session.close_turn()


async def _answer(session: Session) -> ChatReply:
    """One call to the policy, or to its fallback when that fails (per-call recovery)."""
    session.close_turn()
    agent = session.agent
    request = _request(session)
    try:
        reply = await _call(session, agent.policy, request)
        return _open_turn(session, reply)
    except ProviderError as exc:
        failed = exc
    if agent.fallback is None or session.meter.spent():
        raise _ended(session, failed)
    try:
        reply = await _call(session, agent.fallback, request)
    except ProviderError as exc:
        raise _ended(session, exc) from failed
    return _open_turn(session, reply, error=f"{failed.kind}: {failed}")


async def _call(session: Session, policy: Policy, request: ChatRequest) -> ChatReply:
    """One call through the log, within its bound. Raises `ProviderError`."""
    seconds, _ = session.meter.model_s(first=session.model_calls == 0)
    index = session.model_calls
    session.model_calls += 1

    async def call() -> ChatReply:
        return await bounded_call(policy, request, seconds)

    return await session.log.model(index, request, call)


async def bounded_call(policy: Policy, request: ChatRequest, seconds: float) -> ChatReply:
    """One call to a policy, ended by our clock whatever its client does.

    A client of ours that `keeps_deadlines` has every wait of its own under our clock already: it
    needs no second one, and no task from which it could be left behind.
    """
    if seconds <= 0:
        raise ProviderError.of("timeout", "no time is left", retryable=False)
    try:
        work = policy.complete(request, Deadline.within(seconds))
        return await (work if getattr(policy, "keeps_deadlines", False) else within(seconds, work))
    except TimeoutError as exc:
        message = f"no answer within {seconds:g} s"
        raise ProviderError.of("timeout", message, retryable=True) from exc
    except HarnessError:
        raise
    except Exception as exc:  # the boundary to policies: their faults are theirs
        message = f"the client broke: {type(exc).__name__}: {exc}"
        raise ProviderError.of("malformed", message, retryable=False) from exc


def _request(session: Session) -> ChatRequest:
    generation = session.agent.generation
    return ChatRequest(
        messages=tuple(session.messages),
        tools=session.prepared.definitions,
        temperature=generation.temperature,
        top_p=generation.top_p,
        max_tokens=session.max_tokens,
        seed=generation.seed,
        text_calls=session.agent.text_calls,
    )


def _open_turn(session: Session, reply: ChatReply, *, error: str | None = None) -> ChatReply:
    """Keep the answer, with its reasoning taken out of the text."""
    reply = without_reasoning(reply)
    new = tuple(session.messages[session.recorded :])
    session.recorded = len(session.messages)
    session.turn = Turn(reply=reply, messages=new, fallback=error is not None, error=error)
    session.see("model", reply)
    return reply


def without_reasoning(reply: ChatReply) -> ChatReply:
    """The same answer with think tags, whole or half, moved from its text to its reasoning."""
    text, thought = split_reasoning(reply.content)
    if not thought and text == (reply.content or ""):
        return reply
    both = "\n\n".join(t for t in (reply.reasoning, thought) if t)
    return msgspec.structs.replace(reply, content=text or None, reasoning=both or None)


def _ended(session: Session, exc: ProviderError) -> Ended:
    """A bound of the profile is a timeout; anything else is the provider's error."""
    _, ours = session.meter.model_s(first=session.model_calls <= 1)
    stop = StopReason.PROVIDER_ERROR
    if exc.kind == "timeout" and ours:
        stop = StopReason.TIMEOUT
    return Ended(stop, f"policy: {exc.kind}: {exc}")
