"""The members of a large JSON document, found by their brackets: one is decoded at a time.

A result file is one list (or one list within one object) of hundreds of megabytes. Only strings
and brackets are looked at here; whether what lies between is JSON is decided when it is decoded.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.source import Source

DEEPEST = 100
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]', re.DOTALL)
_INSIDE = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*+")


class Span(NamedTuple):
    """Where a JSON value lies in its file."""

    start: int
    end: int


def whole(source: Source) -> Span:
    """The document, without the blanks around it."""
    start = _skip(source, source.start)
    if start >= source.size:
        raise BadFile(f"{source.name}: the file holds nothing but blanks")
    return Span(start, _end_of(source, start))


def kind_of(source: Source, span: Span) -> str:
    """`list`, `object`, or `value`."""
    return {0x5B: "list", 0x7B: "object"}.get(source.data[span.start], "value")


def elements(source: Source, span: Span) -> Iterator[Span]:
    """Every element of a list, in order."""
    at = _skip(source, span.start + 1)
    while source.data[at : at + 1] != b"]":
        end = _end_of(source, at)
        yield Span(at, end)
        at = _next(source, end, b"]")


def members(source: Source, span: Span) -> dict[str, Span]:
    """The members of an object by key. Raises `BadFile` where a key stands twice."""
    found: dict[str, Span] = {}
    at = _skip(source, span.start + 1)
    while source.data[at : at + 1] != b"}":
        key_end = _end_of(source, at)
        key = source.at(at, key_end, "a key")[1:-1].decode("utf-8", "replace")
        colon = _skip(source, key_end)
        if source.data[colon : colon + 1] != b":":
            raise _broken(source, colon)
        start = _skip(source, colon + 1)
        end = _end_of(source, start)
        if key in found:
            raise BadFile(f"{source.name}: the key `{key}` stands twice", hint="keep one of them")
        found[key] = Span(start, end)
        at = _next(source, end, b"}")
    return found


def _end_of(source: Source, start: int) -> int:
    """Where the value that starts here ends."""
    first = source.data[start : start + 1]
    if first in (b"[", b"{"):
        return _closing(source, start)
    if first == b'"':
        found = _TOKEN.match(source.data, start)
        end = found.end() if found else start
        if end - start < 2 or source.data[end - 1 : end] != b'"':
            raise _cut(source)
        return end
    found = re.compile(rb"[-+.0-9A-Za-z]++").match(source.data, start)
    if found is None:
        raise _broken(source, start)
    return found.end()


def _closing(source: Source, start: int) -> int:
    depth = 0
    for token in _INSIDE.finditer(source.data, start):
        sign = source.data[token.start()]
        if sign in (0x5B, 0x7B):
            depth += 1
            if depth > DEEPEST:
                raise BadFile(
                    f"{source.name}: byte {token.start()}: nested deeper than {DEEPEST}",
                    hint="no result file is nested like this",
                )
        elif sign in (0x5D, 0x7D):
            depth -= 1
            if depth == 0:
                return token.end()
        elif token.end() - token.start() < 2 or source.data[token.end() - 1] != 0x22:
            raise _cut(source)
    raise _cut(source)


def _next(source: Source, at: int, closing: bytes) -> int:
    """The start of the next member, or of the closing bracket."""
    at = _skip(source, at)
    sign = source.data[at : at + 1]
    if sign == closing:
        return at
    if sign != b",":
        raise _broken(source, at)
    at = _skip(source, at + 1)
    if source.data[at : at + 1] in (closing, b""):
        raise _broken(source, at)
    return at


def _skip(source: Source, at: int) -> int:
    found = _SPACE.match(source.data, at)
    return found.end() if found else at


def _cut(source: Source) -> BadFile:
    return BadFile(f"{source.name}: the file is cut short: a text or bracket is never closed")


def _broken(source: Source, at: int) -> BadFile:
    line = source.data[source.start : at].count(b"\n") + 1 if at < 1 << 26 else None
    where = f"line {line}, byte {at}" if line else f"byte {at}"
    return BadFile(f"{source.name}: {where}: no JSON here", hint="is the file whole?")
