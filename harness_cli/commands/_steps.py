"""What a rollout does, one line as it happens, on stderr."""

import json

from harness_cli.commands._show import note, plain
from harness_cli.records.chat import ChatReply
from harness_cli.records.counting import counted
from harness_cli.records.trajectory import HookEvent, ToolCall
from harness_cli.runtime.session import Seen

_WIDTH = 160


def show_seen(seen: Seen) -> None:
    """One line for what was seen; nothing for the reply, which is data."""
    value = seen.value
    if isinstance(value, ChatReply):
        note(f"{seen.step}  {_answer(value)}")
    elif isinstance(value, ToolCall):
        arguments = value.arguments_raw if value.arguments is None else _short(value.arguments)
        shown = value.result.content if value.result.ok else f"error ({value.result.error})"
        if not value.result.ok:
            shown += f": {value.result.content}"
        note(f"   {value.name}({arguments}) → {_cut(shown)}  {value.latency_s * 1000:.0f} ms")
    elif isinstance(value, HookEvent):
        note(f"   hook {value.hook}: {value.outcome}{f', {value.reason}' if value.reason else ''}")
    elif seen.kind == "prompt":
        size = sum(len(str(m.get("content"))) for m in value)
        note(f"   prompt: {counted(len(value), 'message')}, {size} characters")


def _answer(reply: ChatReply) -> str:
    said = []
    if reply.reasoning:
        said.append(f"thinks: {_cut(reply.reasoning)}")
    if reply.tool_calls:
        said.append("calls " + ", ".join(c.name for c in reply.tool_calls))
    if reply.content:
        said.append(f"says: {_cut(reply.content)}")
    tokens = reply.usage.output_tokens
    spent = f"  {reply.latency_s * 1000:.0f} ms" + (f", {tokens} tokens" if tokens else "")
    return f"{reply.policy or reply.model} " + "; ".join(said or ["says nothing"]) + spent


def _short(arguments: dict[str, object]) -> str:
    return _cut(json.dumps(arguments, ensure_ascii=False))


def _cut(text: str) -> str:
    flat = plain(" ".join(text.split()))
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"
