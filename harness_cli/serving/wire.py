"""The server's side of the chat-completions format: a body into a request, a reply into bodies."""

import time
from collections.abc import Iterator
from typing import Any, Final

from harness_cli.errors import UsageError
from harness_cli.records.chat import ChatReply, ChatRequest, Usage

PIECE: Final = 24
"""Characters of one streamed piece; the policies answer whole, pieces keep clients honest."""


def request_of(body: Any) -> ChatRequest:
    """The request in a posted body; raises `UsageError` for what cannot be meant.

    Parameters that these policies do not have (penalties, response formats) are passed over, as
    servers of small models commonly do.
    """
    if not isinstance(body, dict):
        raise UsageError("the body must be a JSON object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise UsageError("`messages` must be a list with at least one message")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise UsageError(f"`messages[{number}]` must be an object with a `role`")
    if body.get("n") not in (None, 1):
        raise UsageError("`n` must be 1")
    stop = body.get("stop") or ()
    return ChatRequest(
        messages=tuple(messages),
        tools=_tools(body.get("tools")),
        temperature=_number(body, "temperature", 1.0),
        top_p=_number(body, "top_p", 1.0),
        max_tokens=_most(body),
        seed=body["seed"] if isinstance(body.get("seed"), int) else None,
        tool_choice=body.get("tool_choice"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
    )


def completion(reply: ChatReply, *, number: int, served: str) -> dict[str, Any]:
    """A whole `chat.completion` object. `served` is the policy id: it says what answered."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.tool_calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": reply.finish_reason,
        "logprobs": None,
    }
    head = _head(reply, "chat.completion", number, served)
    return {**head, "choices": [choice], "usage": usage_of(reply.usage)}


def chunks(
    reply: ChatReply, *, number: int, served: str, with_usage: bool
) -> Iterator[dict[str, Any]]:
    """The `chat.completion.chunk` objects of a reply, the usage last where it was asked for."""
    head = _head(reply, "chat.completion.chunk", number, served)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**head, "choices": [choice], **({"usage": None} if with_usage else {})}

    yield chunk({"role": "assistant", "content": "" if reply.content else None})
    for piece in _pieces(reply.reasoning or ""):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(reply.content or ""):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.tool_calls):
        begun = {"name": call.name, "arguments": ""}
        yield chunk(
            {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": begun}]}
        )
        for piece in _pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, reply.finish_reason)
    if with_usage:
        yield {**head, "choices": [], "usage": usage_of(reply.usage)}


def role_chunk(number: int, model: str, served: str) -> dict[str, Any]:
    """The first chunk of an answer whose rest is still being sampled."""
    choice = {
        "index": 0,
        "delta": {"role": "assistant", "content": None},
        "finish_reason": None,
        "logprobs": None,
    }
    return {
        **_head(ChatReply(model=model), "chat.completion.chunk", number, served),
        "choices": [choice],
    }


def usage_of(usage: Usage) -> dict[str, Any] | None:
    """Token counts in OpenAI's names; null when they are unknown, never zeros."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    told: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_tokens is not None:
        told["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    return told


def error_body(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """An OpenAI error object."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _head(reply: ChatReply, kind: str, number: int, served: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": int(time.time()),
        "model": reply.model or reply.policy,
        "system_fingerprint": served,
    }


def _pieces(text: str) -> Iterator[str]:
    return (text[n : n + PIECE] for n in range(0, len(text), PIECE))


def _tools(found: Any) -> tuple[dict[str, Any], ...]:
    if not found:
        return ()
    if not isinstance(found, list) or not all(isinstance(t, dict) for t in found):
        raise UsageError("`tools` must be a list of objects")
    for number, tool in enumerate(found):
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise UsageError(f"`tools[{number}].function.name` is missing")
    return tuple(found)


def _most(body: dict[str, Any]) -> int:
    for key in ("max_completion_tokens", "max_tokens"):
        value = body.get(key)
        if value is not None:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"`{key}` must be a whole number of at least 1")
            return value
    return ChatRequest(messages=()).max_tokens


def _number(body: dict[str, Any], key: str, default: float) -> float:
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise UsageError(f"`{key}` must be a number")
    return float(value)
