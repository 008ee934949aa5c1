"""The five stages of a request (TR §2.4), each one step of `loop.rollout`."""

import re

import msgspec

from harness_cli.harness.prompts import render
from harness_cli.records.canonical import canonical_json
from harness_cli.records.chat import ChatReply
from harness_cli.records.request import Comment, Request
from harness_cli.records.trajectory import Route, StopReason
from harness_cli.runtime.ask import ask
from harness_cli.runtime.language import in_language
from harness_cli.runtime.messages import HOOK_MARK, assistant_turn, hook_turn
from harness_cli.runtime.session import Ended, Session
from harness_cli.runtime.toolbox import ended_by, read_calls, run_calls

ENDED_HERE = "the rollout ended here"
"""Result of a call in an answer with which hooks ended the rollout."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u2028\u2029\u202a-\u202e\ufeff]")


async def load_context(session: Session) -> None:
    """1. Load and normalize context: clean the comments, ask the `request` hooks.

    A refused request never reaches the policy.
    """
    session.request = normalized(session.request)
    ruling, moment = await session.ask_hooks("request")
    session.keep_hooks(ruling, of_step=False)
    session.request = moment.request
    if ruling.action in ("retry", "deny"):
        raise Ended(StopReason.GATE_FAILED, ruling.message, route=Route.CONSERVATIVE)
    if ruling.action != "allow":
        raise ended_by(ruling)


def assemble_prompt(session: Session) -> None:
    """2. Assemble the prompt: the pipeline's blocks over the request and the room."""
    agent, prepared = session.agent, session.prepared
    if agent.kind == "bare":
        text = session.request.prompt or "\n".join(c.text for c in session.request.comments)
        session.messages = [*session.request.history, {"role": "user", "content": text}]
    else:
        session.messages = list(
            render(
                prepared.state,
                session.request,
                agent.world,
                pipeline=prepared.pipeline,
                instructions=agent.instructions,
            )
        )
    session.see("prompt", session.messages)


async def one_round(session: Session) -> bool:
    """3. and 4. One round of the loop: an answer, then its calls or the stop gate.

    True when a reply passed.
    """
    session.close_turn()
    ruling, _ = await session.ask_hooks("before_model")
    session.keep_hooks(ruling, of_step=True)
    if ruling.action == "retry":
        session.messages.append(hook_turn(ruling.message))
    elif ruling.action != "allow":
        raise ended_by(ruling)
    reply = await ask(session)
    asked = read_calls(session, reply)
    session.gate_failed = False
    text = (reply.content or "").strip()
    ruling, moment = await session.ask_hooks("after_model", answer=reply, asked=asked, reply=text)
    session.keep_hooks(ruling, of_step=True)
    denied = dict(ruling.calls)
    if ruling.action in ("fallback", "suppress") or (ruling.action == "deny" and not asked):
        await _refuse_all(session, reply)
        raise ended_by(ruling)
    if asked:
        if ruling.action != "allow":
            denied = dict.fromkeys(range(len(asked)), ruling.message) | denied
        await run_calls(session, asked, denied)
        return decline(session) if session.refused else answered(session)
    if ruling.action == "retry":
        try_again(session, reply, ruling.message)
        return False
    return await stop_gate(session, reply, moment.reply)


async def _refuse_all(session: Session, reply: ChatReply) -> None:
    """Keep the calls of an answer that ended the rollout, each as denied."""
    asked = read_calls(session, reply)
    if asked:
        await run_calls(session, asked, dict.fromkeys(range(len(asked)), ENDED_HERE))


async def stop_gate(session: Session, reply: ChatReply, text: str) -> bool:
    """4. The stop gate: `before_reply` hooks pass the reply, change it, or start another round."""
    ruling, moment = await session.ask_hooks("before_reply", reply=text, answer=reply)
    session.keep_hooks(ruling, of_step=True)
    if ruling.action == "allow":
        extract_reply(session, moment.reply)
        return True
    if ruling.action == "retry":
        try_again(session, reply, ruling.message)
        return False
    raise ended_by(ruling)


def try_again(session: Session, reply: ChatReply, message: str) -> None:
    """Put a refused text and what hooks say about it into the history, for the next round."""
    session.gate_failed = True
    session.said.append((reply.content or "").strip())
    session.messages.append(assistant_turn(reply, (), reasoning=False))
    session.messages.append(hook_turn(message))


def extract_reply(session: Session, text: str) -> None:
    """5. Extract the reply; its reasoning was taken out when the answer came in."""
    session.reply = text
    session.stop = StopReason.COMPLETED


def answered(session: Session) -> bool:
    """5. The end after a call of an answering tool: its arguments, as JSON, are the reply."""
    if session.answer is None:
        return False
    extract_reply(session, canonical_json(session.answer).decode())
    return True


def decline(session: Session) -> bool:
    """5. The end after `refuse`: silence in public, the harness's own words in private."""
    session.stop = StopReason.REFUSED
    if session.request.channel == "private":
        session.reply = in_language(session.prepared.state.replies.refusal, session.request)
    return True


async def dispatch_reply(session: Session) -> None:
    """5. Hand the reply to its channel: `after_reply` hooks see it last and may withhold it."""
    ruling, _ = await session.ask_hooks("after_reply", reply=session.reply)
    session.keep_hooks(ruling, of_step=False)
    if ruling.action == "suppress":
        session.reply, session.route = "", Route.SUPPRESSED


def normalized(request: Request) -> Request:
    """The request with control characters out of its comments and empty comments dropped.

    A comment cannot begin with the harness's own mark.
    """
    comments = tuple(c for c in (_clean(c) for c in request.comments) if c.text)
    if comments == request.comments:
        return request
    return msgspec.structs.replace(request, comments=comments)


def _clean(comment: Comment) -> Comment:
    text = comment.text
    if not text.isprintable():
        text = _CONTROL.sub("", text)
    text = text.strip()
    while text.startswith(HOOK_MARK):
        text = text[len(HOOK_MARK) :].strip()
    return comment if text == comment.text else msgspec.structs.replace(comment, text=text)
