"""What was said, as the GenAI conventions write it: messages of a role and parts."""

from typing import Any

import msgspec

from harness_cli.records.chat import ChatReply

Values = dict[str, Any]


def message(said: Values) -> Values:
    """An OpenAI message as the conventions have it: a role and parts."""
    text = said.get("content")
    shown = text if isinstance(text, str) else as_json(text)
    if said.get("role") == "tool":
        part = {
            "type": "tool_call_response",
            "id": str(said.get("tool_call_id") or ""),
            "response": shown,
        }
        return {"role": "tool", "parts": [part]}
    parts: list[Values] = [{"type": "text", "content": shown}] if text else []
    for call in said.get("tool_calls") or ():
        function = call.get("function") or {}
        parts.append(_asked(call.get("id"), function.get("name"), function.get("arguments")))
    return {"role": str(said.get("role")), "parts": parts}


def answer(reply: ChatReply) -> Values:
    """What the policy said and called, with why it stopped."""
    parts: list[Values] = []
    if reply.reasoning:
        parts.append({"type": "reasoning", "content": reply.reasoning})
    if reply.content:
        parts.append({"type": "text", "content": reply.content})
    parts += [_asked(call.id, call.name, call.arguments) for call in reply.tool_calls]
    return {"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}


def _asked(call_id: Any, name: Any, arguments: Any) -> Values:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def as_json(value: Any) -> str:
    """An attribute of structured content is JSON text."""
    return msgspec.json.encode(value).decode()
