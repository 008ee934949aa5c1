"""OpenAI chat messages, as many tools write them, into turns; and the request they answer."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.conversation import (
    Turn,
    last_words,
    message_of,
    raw_call,
    steps_of,
    tail_of,
    text_of_content,
)
from harness_cli.records.request import Request
from harness_cli.records.trajectory import StopReason, Trajectory

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Role as it is written → role as it is kept."""


def turns_of(messages: Iterable[Any], *, where: str) -> list[Turn]:
    """Every message in order. Raises `BadFile` with the number of one that is none."""
    return [_turn(m, where=f"{where}: message {n}") for n, m in enumerate(messages, 1)]


def _turn(message: Any, *, where: str) -> Turn:
    if not isinstance(message, Mapping):
        raise BadFile(f"{where}: a message must be an object with `role` and `content`")
    role = ROLES.get(str(message.get("role")))
    if role is None:
        raise BadFile(
            f"{where}: the role `{str(message.get('role'))[:40]}` is none of system, user, "
            "assistant, tool"
        )
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple) or not all(isinstance(c, Mapping) for c in calls):
        raise BadFile(f"{where}: `tool_calls` must be a list of objects")
    made = [_call(c) for c in calls]
    old = message.get("function_call")
    if isinstance(old, Mapping):
        made.append(raw_call("", str(old.get("name", "")), old.get("arguments")))
    return Turn(
        role=role,
        content=text_of_content(message.get("content")),
        calls=tuple(made),
        call_id=str(message.get("tool_call_id") or ""),
        name=str(message.get("name") or ""),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")),
    )


def _call(call: Mapping[str, Any]) -> Any:
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    name = inner.get("name") or (function if isinstance(function, str) else "")
    return raw_call(str(call.get("id") or ""), str(name or ""), inner.get("arguments"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def request_of(turns: Sequence[Turn], *, where: str) -> Request:
    """What the last answer answers: the last user message before it, with all before as history.

    Raises `BadFile` where no user says anything.
    """
    answers = [
        n for n, t in enumerate(turns) if t.role == "assistant" and (t.content or "").strip()
    ]
    end = answers[-1] if answers else len(turns)
    asked = [n for n, t in enumerate(turns[:end]) if t.role == "user" and t.content]
    if not asked:
        raise BadFile(f"{where}: no user says anything before the answer")
    last = asked[-1]
    return Request(
        channel="private",
        prompt=turns[last].content or "",
        history=tuple(message_of(t) for t in turns[:last]),
    )


def trajectory_of(
    turns: Sequence[Turn],
    *,
    item_id: str,
    repeat: int = 0,
    policy_id: str,
    stop: StopReason = StopReason.COMPLETED,
    error: str | None = None,
    wall_s: float = 0.0,
) -> Trajectory:
    """The record of a conversation that another tool kept."""
    return Trajectory(
        request_id=f"{item_id}#{repeat}",
        item_id=item_id,
        repeat=repeat,
        agent="bare",
        policy_id=policy_id,
        steps=steps_of(turns, policy=policy_id),
        reply=last_words(turns),
        tail=tail_of(turns),
        channel="private",
        stop=stop,
        error=error,
        wall_s=wall_s,
    )
