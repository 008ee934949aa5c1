"""Chat messages of any tool into the steps of a trajectory: one a model answer."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.records.chat import ChatReply, Message, RawToolCall, Usage
from harness_cli.records.trajectory import Step, ToolCall, ToolErrorKind, ToolResult
from harness_cli.runtime.arguments import parse_arguments

LOST = "the recording holds no result of this call"
_KINDS = (
    ("not found", ToolErrorKind.NOT_FOUND),
    ("not available", ToolErrorKind.NOT_FOUND),
    ("does not exist", ToolErrorKind.NOT_FOUND),
    ("timed out", ToolErrorKind.TIMEOUT),
    ("timeout", ToolErrorKind.TIMEOUT),
    ("permission", ToolErrorKind.DENIED),
    ("not allowed", ToolErrorKind.DENIED),
)
"""Words of an error text → its kind; any other one is about the arguments."""


@dataclass(slots=True)
class Turn:
    """One message of a recording, in the words all formats share."""

    role: str
    content: str | None = None
    calls: tuple[RawToolCall, ...] = ()
    call_id: str = ""
    """Of a tool's message: the call it answers."""
    name: str = ""
    error: bool | None = None
    """Of a tool's message; None: its text decides."""
    reasoning: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    finish: str = ""
    model: str = ""
    scripted: bool = False
    """Said by no model (a greeting of the tool that recorded): a message, but no step."""


def steps_of(turns: Iterable[Turn], *, policy: str = "") -> tuple[Step, ...]:
    """One step an assistant message, with the messages that are new before it.

    Messages behind the last answer (a farewell of the user) stand in no step; `tail_of` has them.
    A tool message is matched to its call by id, and without one by order.
    """
    turns = list(turns)
    results = _results(turns)
    steps: list[Step] = []
    new: list[Message] = []
    for turn in turns:
        if turn.role == "assistant" and not turn.scripted:
            calls = tuple(_call(call, results) for call in turn.calls)
            reply = ChatReply(
                content=turn.content,
                reasoning=turn.reasoning,
                tool_calls=turn.calls,
                finish_reason=turn.finish or ("tool_calls" if turn.calls else "stop"),
                usage=turn.usage,
                model=turn.model,
                policy=policy,
                cost=turn.cost,
                cached=True,
            )
            steps.append(Step(index=len(steps), messages=tuple(new), reply=reply, calls=calls))
            new = []
        new.append(message_of(turn))
    return tuple(steps)


def tail_of(turns: Iterable[Turn]) -> tuple[Message, ...]:
    """The messages behind the last answer; results of its own calls stand with the calls."""
    tail: list[Turn] = []
    calls: set[str] = set()
    for turn in turns:
        if turn.role == "assistant":
            tail, calls = [], {call.id for call in turn.calls}
        elif turn.role != "tool" or turn.call_id not in calls:
            tail.append(turn)
    return tuple(message_of(turn) for turn in tail)


def last_words(turns: Iterable[Turn]) -> str:
    """The last text the assistant said; empty when it never said any."""
    said = [t.content for t in turns if t.role == "assistant" and (t.content or "").strip()]
    return said[-1] or "" if said else ""


def message_of(turn: Turn) -> Message:
    """The OpenAI message of a turn."""
    message: Message = {"role": turn.role, "content": turn.content}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    if turn.role == "tool":
        message["tool_call_id"] = turn.call_id
    if turn.name:
        message["name"] = turn.name
    return message


def result_of(content: str, error: bool | None) -> ToolResult:
    """A tool's answer: failed where the recording says so, or where the text says `Error`."""
    failed = content.lstrip()[:6].lower() == "error:" if error is None else error
    structured = _json(content)
    if not failed:
        return ToolResult(ok=True, content=content, structured=structured)
    lower = content.lower()
    kind = next((k for words, k in _KINDS if words in lower), ToolErrorKind.INVALID_ARGUMENTS)
    return ToolResult(ok=False, content=content, structured=structured, error=kind)


def raw_call(call_id: str, name: str, arguments: Any) -> RawToolCall:
    """A call whose arguments stay the text the model wrote."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)
    return RawToolCall(id=call_id, name=name, arguments=arguments)


def text_of_content(content: Any) -> str | None:
    """The text of OpenAI content: a string, or the text parts of a list; others are named."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif isinstance(part, Mapping):
            parts.append(f"[{part.get('type', 'part')}]")
    return "\n".join(parts)


def _results(turns: list[Turn]) -> dict[str, list[Turn]]:
    """Call id → the tool messages that answer it, in order; without ids, by position."""
    results: dict[str, list[Turn]] = {}
    waiting: list[str] = []
    for turn in turns:
        if turn.role == "assistant":
            waiting = [call.id for call in turn.calls]
        elif turn.role == "tool":
            call_id = turn.call_id or (waiting[0] if waiting else "")
            if call_id in waiting:
                waiting.remove(call_id)
            results.setdefault(call_id, []).append(turn)
    return results


def _call(call: RawToolCall, results: dict[str, list[Turn]]) -> ToolCall:
    found = results.get(call.id)
    # Some recordings use one id for several calls: each takes the next answer.
    turn = found.pop(0) if found else None
    result = (
        result_of(turn.content or "", turn.error)
        if turn is not None
        else ToolResult(ok=False, content=LOST, error=ToolErrorKind.UNAVAILABLE)
    )
    return ToolCall(
        id=call.id,
        name=call.name,
        arguments_raw=call.arguments,
        arguments=parse_arguments(call.arguments)[0],
        executor="recorded",
        result=result,
        cached=True,
    )


def _json(text: str) -> Any:
    """A tool's answer as data where it is a JSON object or list."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
