"""Turns of a rollout as OpenAI messages, always a history that any server accepts."""

from collections.abc import Sequence

from harness_cli.records.chat import ChatReply, Message
from harness_cli.records.trajectory import ToolCall
from harness_cli.runtime.arguments import stored_arguments


def assistant_turn(reply: ChatReply, calls: Sequence[ToolCall], *, reasoning: bool) -> Message:
    """What the model said, as history: visible text, calls with object arguments.

    With `reasoning` its thinking goes back as `reasoning_content`, as some servers demand of turns
    with tool calls.
    """
    turn: Message = {"role": "assistant", "content": reply.content or ""}
    if calls:
        turn["tool_calls"] = [
            {
                "id": c.id,
                "type": "function",
                "function": {"name": c.name, "arguments": stored_arguments(c.arguments)},
            }
            for c in calls
        ]
    if reasoning and calls:
        turn["reasoning_content"] = reply.reasoning or ""
    return turn


def tool_turn(call: ToolCall) -> Message:
    """What a call gave back, as history."""
    content = call.result.content
    if not call.result.ok:
        content = f"error ({call.result.error}): {content}"
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def hook_turn(message: str) -> Message:
    """What hooks tell the policy. A user turn, since many servers take system turns only first.

    The mark in front keeps it apart from viewers' words: no comment begins a message with it.
    """
    return {"role": "user", "content": f"{HOOK_MARK} {message}"}


HOOK_MARK = "[harness]"
"""How the harness's own messages to the policy begin; training masks them out."""
