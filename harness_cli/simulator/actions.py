"""Actions of an outside policy: assistant messages of the OpenAI format, as answers of a model."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.canonical import canonical_json
from harness_cli.records.chat import ChatReply, RawToolCall, Usage

KNOWN = {
    "role",
    "content",
    "reasoning_content",
    "tool_calls",
    "finish_reason",
    "usage",
    "token_ids",
    "logprobs",
    "refusal",
    "audio",
    "annotations",
    "function_call",
}
"""Fields of a message; the ones that mean nothing here are taken and not used."""


class _Function(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    function: _Function
    id: str = ""
    type: str = "function"


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    role: str = "assistant"
    content: str | list[dict[str, Any]] | None = None
    reasoning_content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


def reply_of(action: Mapping[str, Any] | ChatReply | str, policy: str = "") -> ChatReply:
    """The answer that an action is: a `ChatReply`, an assistant message, or the text of one.

    Arguments of calls may be text, valid JSON or not, or an object. Raises `UsageError`.
    """
    if isinstance(action, ChatReply):
        return action
    if isinstance(action, str):
        return ChatReply(content=action, policy=policy)
    unknown = sorted(set(action) - KNOWN)
    if unknown:
        raise UsageError(
            f"an action has no field `{unknown[0]}`",
            hint='an assistant message: {"role": "assistant", "content": …, "tool_calls": […]}',
        )
    try:
        made = msgspec.convert(dict(action), _Message)
    except msgspec.ValidationError as exc:
        raise UsageError(f"the action is no assistant message: {exc}") from exc
    if made.role != "assistant":
        raise UsageError(f"an action is a message of the role `assistant`, not `{made.role}`")
    calls = tuple(_raw(c, n) for n, c in enumerate(made.tool_calls or ()))
    return ChatReply(
        content=_text(made.content),
        reasoning=made.reasoning_content,
        tool_calls=calls,
        finish_reason=made.finish_reason or ("tool_calls" if calls else "stop"),
        usage=made.usage or Usage(),
        token_ids=made.token_ids,
        logprobs=made.logprobs,
        policy=policy,
    )


def _raw(call: _Call, place: int) -> RawToolCall:
    given = call.function.arguments
    text = given if isinstance(given, str) else canonical_json(given).decode()
    return RawToolCall(id=call.id or f"call_{place}", name=call.function.name, arguments=text)


def _text(content: str | list[dict[str, Any]] | None) -> str | None:
    """Content parts joined; only text has a meaning here."""
    if content is None or isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content)
