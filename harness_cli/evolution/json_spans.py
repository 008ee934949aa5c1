"""Where the values of a JSON text stand, and the splice that changes one of them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evolution.text_file import Splice

_BLANK = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class _Entry:
    """One member: where it begins (its key in an object), where its value lies."""

    key: str
    begin: int
    start: int
    end: int


def splice_at(text: str, tokens: Sequence[str], value: Any, *, remove: bool, name: str) -> Splice:
    """The splice for a valid change in valid JSON (`pointer.change_at` checked both)."""
    at = _blank(text, 0)
    for key in tokens[:-1]:
        at = _find(_entries(text, at), key, name).start
    entries = _entries(text, at)
    last = tokens[-1]
    found = next((e for e in entries if e.key == last), None)
    if remove:
        return _removal(at, entries, _find(entries, last, name))
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if found is not None:
        return Splice(found.start, found.end, written)
    label = "" if text[at] == "[" else json.dumps(last, ensure_ascii=False) + ": "
    if not entries:
        return Splice(at + 1, at + 1, label + written)
    tail = entries[-1]
    gap = text[len(text[: tail.begin].rstrip()) : tail.begin]
    return Splice(tail.end, tail.end, "," + (gap or " ") + label + written)


def _removal(at: int, entries: Sequence[_Entry], gone: _Entry) -> Splice:
    index = entries.index(gone)
    if index + 1 < len(entries):
        return Splice(gone.begin, entries[index + 1].begin, "")
    return Splice(entries[index - 1].end if index else at + 1, gone.end, "")


def _entries(text: str, at: int) -> list[_Entry]:
    """The members of the object or list that begins at `at`."""
    closing = {"{": "}", "[": "]"}.get(text[at])
    entries: list[_Entry] = []
    here = _blank(text, at + 1)
    while closing and text[here] != closing:
        begin, key = here, str(len(entries))
        if closing == "}":
            key, here = _decode(text, here)
            here = _blank(text, _blank(text, here) + 1)
        _, end = _decode(text, here)
        entries.append(_Entry(key, begin, here, end))
        here = _blank(text, end)
        if text[here] == ",":
            here = _blank(text, here + 1)
    return entries


def _find(entries: Sequence[_Entry], key: str, name: str) -> _Entry:
    for entry in entries:
        if entry.key == key:
            return entry
    raise BadFile(f"{name}: no member `{key}`")


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
