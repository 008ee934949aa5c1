"""Secrets out of what comes from outside, before the loop or the journal sees it.

Everything that is written of a rollout derives from answers, tool results and prompts; cleaned
where they come in, they are scanned once and a resume sees exactly what the first process saw.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.trajectory import ToolResult

T = TypeVar("T", bound=msgspec.Struct)


class Cleaner:
    """A redactor over records; what holds no secret comes back as the same object."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self.text = text

    def finds(self, value: Any) -> bool:
        """Whether a record holds a secret anywhere."""
        data = msgspec.json.encode(value).decode()
        return self.text(data) != data

    def record(self, value: T) -> T:
        """A whole record, cleaned at any depth (the mask needs no escaping in JSON)."""
        data = self.text(msgspec.json.encode(value).decode())
        return msgspec.json.decode(data, type=type(value))

    def reply(self, reply: ChatReply) -> ChatReply:
        """An answer: its text, its reasoning, its arguments."""
        changed: dict[str, Any] = {}
        for name in ("content", "reasoning"):
            value = getattr(reply, name)
            if value and (clean := self.text(value)) != value:
                changed[name] = clean
        calls = tuple(self._call(call) for call in reply.tool_calls)
        if calls != reply.tool_calls:
            changed["tool_calls"] = calls
        return msgspec.structs.replace(reply, **changed) if changed else reply

    def result(self, result: ToolResult) -> ToolResult:
        """A tool result: what the policy is shown and its structured form."""
        content, structured = self.text(result.content), self._plain(result.structured)
        if content == result.content and structured is result.structured:
            return result
        return msgspec.structs.replace(result, content=content, structured=structured)

    def _call(self, call: RawToolCall) -> RawToolCall:
        clean = self.text(call.arguments)
        return call if clean == call.arguments else msgspec.structs.replace(call, arguments=clean)

    def _plain(self, value: Any) -> Any:
        if value is None:
            return None
        data = msgspec.json.encode(value).decode()
        clean = self.text(data)
        return value if clean == data else msgspec.json.decode(clean)
