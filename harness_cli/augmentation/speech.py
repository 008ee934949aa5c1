"""Names as a harness speaks of them: in prose, in backticks, in lists of tools.

A name of several parts (`item-qa`, `get_faq`) means one thing wherever it stands. A name that is an
ordinary word (`thanks`, `refuse`) is one only in backticks, in a list of names, or where a sentence
points to it: `use thanks.`, `: refusal.`
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import ascii_letters, digits

EDGE, END = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
_POINTER = r"(?:\b(?:use|load|with|skill|that is|beside|see)|(?<!Viewer)(?<!Host)(?<!en)(?<!zh):)"
_POINTS = rf"(?:{_POINTER}\s+)"
_POINT, _REACH = re.compile(rf"{_POINTER}\Z"), 16
"""Before the blanks that a word stands behind; none is longer."""
_STOPS = r"(?=\.(?:\s|$)|,|;|\s+(?:and|or)\b)"
_SAID = re.compile(r"^(?:Viewer|Host|观众|主播)\b.*$|^\s+[-*] [a-z]{2}: .*$", re.MULTILINE)
"""Words of viewers and hosts: never names."""
_WORD = frozenset(ascii_letters + digits + "_-")
"""What `EDGE` and `END` take for a part of a word."""
_LISTS = re.compile(r"^(?:allowed-tools|  harness\.tools):.*$", re.MULTILINE)


def plain(name: str) -> bool:
    """An ordinary word as well as a name."""
    return re.search(r"[-_\d]", name) is None


class Speech:
    """Finds and replaces the names of one mapping (old → new)."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)
        distinct = sorted((n for n in names if not plain(n)), key=len, reverse=True)
        self._words = sorted((n for n in names if plain(n)), key=len, reverse=True)
        # Names that are whole words cannot overlap; with another one (`a.b`) the longest counts.
        whole = all(_WORD.issuperset(n) for n in distinct)
        self._whole, self._odd = (distinct, []) if whole else ([], distinct)

    def renamed(self, text: str) -> str:
        """The text with every name replaced."""
        spans = sorted(self._spans(text), reverse=True)
        for start, end, name in spans:
            text = text[:start] + self.names[name] + text[end:]
        return self._each(text, lambda m: _with(m, self.names[m["n"]]))

    def spoken(self, text: str) -> list[str]:
        """The old names that the text speaks of, in order of their first place."""
        found = dict.fromkeys(name for _, _, name in sorted(self._spans(text)))

        def note(match: re.Match[str]) -> str:
            found.setdefault(match["n"])
            return match[0]

        self._each(text, note)
        return list(found)

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where names stand as whole words: looked for one by one, which is a plain search."""
        for name in self._whole:
            at, size = text.find(name), len(name)
            while at >= 0:
                end = at + size
                if text[at - 1 : at] not in _WORD and text[end : end + 1] not in _WORD:
                    yield at, end, name
                at = text.find(name, end)

    def _each(self, text: str, made: Callable[[re.Match[str]], str]) -> str:
        if self._odd:
            text = _any(self._odd, f"{EDGE}(?P<n>", f"){END}").sub(made, text)
        words = [word for word in self._words if word in text]
        if not words:
            return text
        listed = _any(words, f"{EDGE}(?P<n>", f"){END}")
        text = _LISTS.sub(lambda line: _after_colon(line[0], listed, made), text)
        text = _any(words, "`(?P<n>", ")`").sub(made, text)
        found = sorted(_pointed(words, text), key=re.Match.start)
        said = [m.span() for m in _SAID.finditer(text)] if found else []
        pieces, behind = [], 0
        for match in found:
            if match.start() >= behind and not any(a <= match.start() < b for a, b in said):
                pieces += [text[behind : match.start()], made(match)]
                behind = match.end()
        return "".join([*pieces, text[behind:]])


def _pointed(words: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    """Where a sentence points to a word. Looked for from the word on: one expression for all of it
    would try every place of the text."""
    pattern = _any(words, f"(?P<b>{_POINTS})(?P<n>", f"){_STOPS}")
    for word in words:
        at = text.find(word)
        while at >= 0:
            before = at
            while before and text[before - 1].isspace():
                before -= 1
            points = _POINT.search(text, max(0, before - _REACH), before) if before < at else None
            match = pattern.match(text, points.start()) if points else None
            if match and match.start("n") == at:
                yield match
            at = text.find(word, at + 1)


def _after_colon(line: str, names: re.Pattern[str], made: Callable[[re.Match[str]], str]) -> str:
    head, colon, rest = line.partition(":")
    return head + colon + names.sub(made, rest)


def _with(match: re.Match[str], name: str) -> str:
    start, end = match.span("n")
    whole = match[0]
    return whole[: start - match.start()] + name + whole[end - match.start() :]


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _any(names: Iterable[str], before: str, behind: str) -> re.Pattern[str]:
    return _compiled(f"{before}{'|'.join(re.escape(n) for n in names)}{behind}")


@lru_cache(maxsize=16384)
def unfolded(text: str) -> str:
    """Lines of one paragraph or list entry as one line."""
    return " ".join(text.split())
