"""Patterns that remember what they found: hosts say the same clauses again and again.

A pattern of some hundred wordings costs tens of microseconds a clause, and a verdict asks some
forty of them of each. What one finds in a text depends on the text alone.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any, TypeVar

T = TypeVar("T")
_HEADS = re.compile(r"[a-z0-9]+|[^a-z0-9]")
"""Where a term may begin: at every character, but not within a Latin word."""

LONGEST = 400
"""Characters of a text that is remembered: about a long reply."""


@lru_cache(maxsize=4096)
def _remembered(text: str) -> dict[object, Any]:  # noqa: ARG001  the key
    """What patterns found in a text, by pattern; about 10 MB when all places are taken."""
    return {}


def once_a_text(read: Callable[[str], T]) -> Callable[[str], T]:
    """A function of a text that keeps what it made of short ones; nobody may change that."""
    known = lru_cache(maxsize=4096)(read)

    @wraps(read)
    def kept(text: str) -> T:
        return known(text) if len(text) <= LONGEST else read(text)

    return kept


class Phrases:
    """A compiled pattern; what it finds in a whole short text is looked for once."""

    __slots__ = ("_all", "_first", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern: re.Pattern[str] = re.compile(pattern)
        self._all, self._first = object(), object()

    def search(self, text: str, *span: int) -> re.Match[str] | None:
        """As `re.Pattern.search`."""
        if span or len(text) > LONGEST:
            return self.pattern.search(text, *span)
        known = _remembered(text)
        try:
            found: re.Match[str] | None = known[self]
        except KeyError:
            found = known[self] = self.pattern.search(text)
        return found

    def match(self, text: str, *span: int) -> re.Match[str] | None:
        """As `re.Pattern.match`."""
        if span or len(text) > LONGEST:
            return self.pattern.match(text, *span)
        known = _remembered(text)
        try:
            found: re.Match[str] | None = known[self._first]
        except KeyError:
            found = known[self._first] = self.pattern.match(text)
        return found

    def finditer(self, text: str, *span: int) -> tuple[re.Match[str], ...]:
        """Every match, in order."""
        if span or len(text) > LONGEST:
            return tuple(self.pattern.finditer(text, *span))
        known = _remembered(text)
        try:
            found: tuple[re.Match[str], ...] = known[self._all]
        except KeyError:
            found = known[self._all] = tuple(self.pattern.finditer(text))
        return found


class Terms:
    """Many literal terms as one pattern a first character: the others cost a place nothing."""

    __slots__ = ("_compiled", "_groups")

    def __init__(self, groups: Mapping[str, str]) -> None:
        self._groups = groups
        self._compiled: dict[str, re.Pattern[str]] = {}
        """Those whose character was met: of some hundred most never are."""

    def finditer(self, text: str) -> tuple[re.Match[str], ...]:
        """Every match, in order, none within another."""
        if len(text) > LONGEST:
            return self._found(text)
        known = _remembered(text)
        try:
            found: tuple[re.Match[str], ...] = known[self]
        except KeyError:
            found = known[self] = self._found(text)
        return found

    def _group(self, first: str) -> re.Pattern[str]:
        if first not in self._compiled:
            self._compiled[first] = re.compile(self._groups[first])
        return self._compiled[first]

    def _found(self, text: str) -> tuple[re.Match[str], ...]:
        found, end, groups = list[re.Match[str]](), 0, self._groups
        for head in _HEADS.finditer(text):
            at = head.start()
            first = text[at]
            if first in groups and at >= end:
                match = self._group(first).match(text, at)
                if match:
                    found.append(match)
                    end = match.end()
        return tuple(found)
