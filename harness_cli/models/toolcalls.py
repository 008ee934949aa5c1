"""Tool calls as servers really send them, made into one list.

The arguments stay what the model wrote, valid or not: the runtime types them. Only what a *server*
did to them is undone here (an object instead of text, JSON within JSON, a lost index).
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.records.chat import RawToolCall

_XML = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class CallAssembler:
    """Joins streamed tool-call deltas whatever their `index` says.

    An id that is known continues its call. A name under a new id, or under no id once the call
    before is complete, begins one. A delta with neither continues the call last begun under its
    index, or the last one of all.
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[Any, _Call] = {}

    def add(self, delta: Any) -> None:
        """One entry of `delta.tool_calls` (or of a whole message's)."""
        if not isinstance(delta, dict):
            return
        function = delta.get("function")
        function = function if isinstance(function, dict) else delta
        arguments = function.get("arguments", function.get("parameters", ""))
        index = delta.get("index")
        call_id, name = _word(delta.get("id")), _word(function.get("name"))
        call = self._find(index, call_id, name, arguments)
        if call is None:
            call = _Call()
            self._calls.append(call)
        call.id, call.name = call.id or call_id, call.name or name
        if call_id:
            self._by_id[call_id] = call
        self._by_index[index] = call
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        else:
            call.pieces = [json.dumps(arguments, ensure_ascii=False)]

    def _find(self, index: Any, call_id: str, name: str, arguments: Any) -> _Call | None:
        """The call a delta continues; None when it begins one."""
        if call_id in self._by_id:
            known = self._by_id[call_id]
            # One id for two whole calls: a server that numbers badly.
            return None if name and arguments and is_object(known.text) else known
        if not self._calls:
            return None
        last = self._by_index.get(index, self._calls[-1])
        if not name:
            return last
        if index is not None and index not in self._by_index:
            return None
        if not last.name:
            return last
        if call_id or last.name != name:
            return None
        # The name again and no id: a repetition, until the arguments are whole and more come.
        return None if arguments and is_object(last.text) else last

    def finish(self, turn: int) -> tuple[RawToolCall, ...]:
        """The calls; missing and repeated ids are made `call_<turn>_<n>`."""
        made: list[RawToolCall] = []
        used: set[str] = set()
        for number, call in enumerate(self._calls):
            call_id = call.id
            if not call_id or call_id in used:
                call_id = f"call_{turn}_{number}"
            used.add(call_id)
            arguments = unwrapped(call.text) if call.pieces else "{}"
            made.append(RawToolCall(id=call_id, name=call.name, arguments=arguments or "{}"))
        return tuple(made)

    def __bool__(self) -> bool:
        return bool(self._calls)


def unwrapped(text: str) -> str:
    """JSON within JSON (`"{\\"city\\": \\"A\\"}"`) without its wrapping; all else as it stands."""
    if not text.lstrip().startswith('"'):
        return text
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    if isinstance(inner, str) and is_object(unwrapped(inner)):
        return unwrapped(inner)
    return text


def calls_in_text(content: str, offered: Collection[str]) -> tuple[tuple[dict[str, Any], ...], str]:
    """Calls that a server left in the text as `<tool_call>` XML, and the text around them.

    Only when nothing can be misread: every block holds a JSON object whose name is an offered
    tool, and none stands in a code fence. Otherwise no calls, and the text as it was.
    """
    blocks = _XML.findall(content) if "<tool_call>" in content and "```" not in content else []
    calls = tuple(found for block in blocks if (found := _block(block, offered)))
    if not blocks or len(calls) != len(blocks):
        return (), content
    rest = _XML.sub("", content).strip()
    return ((), content) if "tool_call>" in rest else (calls, rest)


def _block(text: str, offered: Collection[str]) -> dict[str, Any] | None:
    try:
        body = json.loads(text)
    except ValueError:
        return None
    if not isinstance(body, dict) or body.get("name") not in offered:
        return None
    arguments = body.get("arguments", body.get("parameters", {}))
    return {"name": body["name"], "arguments": arguments}


def is_object(text: str) -> bool:
    """Whether `text` is the whole JSON of an object."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False


def _word(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
