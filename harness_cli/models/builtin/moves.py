"""What the policy does next, and the same as the body of a chat.completions answer."""

import json
from dataclasses import dataclass
from typing import Any

from harness_cli.models.builtin.scene import Wire


@dataclass(frozen=True)
class Move:
    """What the policy does: calls (name, arguments), or a text."""

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    text: str = ""


def reply_of(move: Move, body: Wire) -> Wire:
    """A move as the body of a chat.completions answer."""
    message: Wire = {"role": "assistant", "content": move.text or None}
    if move.calls:
        taken = len(body.get("messages") or [])
        message["tool_calls"] = [
            {
                "id": f"call_{taken}_{index}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": json.dumps(arguments, ensure_ascii=False, sort_keys=True),
                },
            }
            for index, (name, arguments) in enumerate(move.calls)
        ]
    elif not move.text:
        message["content"] = ""
    finish = "tool_calls" if move.calls else "stop"
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
