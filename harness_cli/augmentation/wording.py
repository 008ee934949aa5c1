"""Paraphrases from the curated table, and the one form that all wordings of a text share.

Paraphrasing replaces members of a group by one another; the canonical form replaces them by the
group itself. So a paraphrase can be told from a change of meaning without asking how it was made.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from random import Random

from harness_cli.augmentation.tables import phrases

_KEPT = re.compile(r'"[^"\n]*"|“[^”\n]*”|`[^`\n]*`|\{\{[^}]*\}\}|\{[^}\s]*\}')
"""Quoted words, names in backticks, slots: never touched."""
_TOKEN = re.compile(r"[A-Za-z0-9_{}.'#-]*[A-Za-z0-9_}'#]|[\u3400-\u9fff]|§\d+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\u3400-\u9fff§])|(?<=。)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SLOT = re.compile(r"\{\{?[^{}]+\}?\}")
_TICKED = re.compile(r"`([^`\n]+)`")
Choose = Callable[[int, str], str]


def paraphrased(text: str, draw: Random, chance: float) -> str:
    """One line of text with some wordings replaced by others of their groups."""

    def choose(group: int, found: str) -> str:
        if draw.random() >= chance:
            return found
        others = [m for m in _groups()[group] if m.casefold() != found.casefold()]
        return _cased(draw.choice(others), found)

    return _each(text, choose)


def canonical(text: str) -> Counter[str]:
    """The tokens of a text with every wording replaced by its group, whatever their order."""
    made = _each(text, lambda group, _: f" §{group} ")
    return Counter(t.casefold() for t in _TOKEN.findall(made))


def placeless(line: str) -> str:
    """A line whose words for a place ("the entries below") are those that name none."""
    for said, instead in phrases().places.items():
        line = line.replace(said, instead)
    return line


def sentences(text: str) -> list[str]:
    """The sentences of one line of text."""
    return [s for s in _SENTENCE.split(text) if s.strip()]


def kept(old: str, new: str, names: frozenset[str] = frozenset()) -> list[str]:
    """What a paraphrase by a model lost or added: numbers, slots, names, quoted words, negations.

    Empty when it may stand for the old text. `names` are the harness's own.
    """
    wrong = []
    for what, read in _READ.items():
        if read(old) != read(new):
            wrong.append(what)
    if _named(old, names) != _named(new, names):
        wrong.append("names")
    if not new.strip() or len(new) > 3 * len(old) + 40 or "\n" in new:
        wrong.append("length")
    return wrong


def negations(text: str) -> int:
    """How often a text says no, in English and Chinese."""
    words = re.findall(r"[a-z']+", text.casefold().replace("’", "'"))
    known = set(phrases().negations["en"])
    english = sum(w in known or (w.endswith("n't")) for w in words)
    chinese = sum(text.count(word) for word in phrases().negations["zh"])
    return int(english + chinese)


_READ: Mapping[str, Callable[[str], object]] = {
    "numbers": lambda text: Counter(_NUMBER.findall(text)),
    "slots": lambda text: Counter(_SLOT.findall(text)),
    "ticked": lambda text: Counter(_TICKED.findall(text)),
    "negations": lambda text: negations(text) > 0,
}


def _named(text: str, names: frozenset[str]) -> set[str]:
    return {n for n in names if re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", text)}


def _each(text: str, choose: Choose) -> str:
    return "".join(
        [said if group is None else choose(group, said) for said, group in _pieces(text)]
    )


@lru_cache(maxsize=8192)
def _pieces(text: str) -> tuple[tuple[str, int | None], ...]:
    """The text in pieces, each wording one of its own with its group."""
    pattern, of = _pattern()
    pieces: list[tuple[str, int | None]] = []
    at = 0
    for fixed in [*_KEPT.finditer(text), None]:
        end = fixed.start() if fixed else len(text)
        for found in pattern.finditer(text, at, end):
            pieces += [(text[at : found.start()], None), (found[0], of[_key(found[0])])]
            at = found.end()
        pieces.append((text[at:end], None))
        if fixed:
            pieces.append((fixed[0], None))
            at = fixed.end()
    return tuple(pieces)


def _key(words: str) -> str:
    return words[:1].casefold() + words[1:]


def _cased(words: str, like: str) -> str:
    """The words with a first letter as large as the other's."""
    first = words[:1].upper() if like[:1].isupper() else words[:1].lower()
    return first + words[1:]


@lru_cache(maxsize=1)
def _groups() -> tuple[tuple[str, ...], ...]:
    return phrases().groups + phrases().starts


@lru_cache(maxsize=1)
def _pattern() -> tuple[re.Pattern[str], dict[str, int]]:
    """Every wording, longest first, and the group of each."""
    of = {_key(m): number for number, group in enumerate(_groups()) for m in group}
    starts = {m for group in phrases().starts for m in group}
    ordered = sorted({m for group in _groups() for m in group}, key=len, reverse=True)
    # By first letter: at each place of a text the few that may stand there are tried, not all.
    latin: dict[str, list[str]] = {}
    for words in ordered:
        if words[0].isascii():
            latin.setdefault(words[0].lower(), []).append(_one(words, exact=words in starts))
    letters = (rf"(?=[{first.upper()}{first}])(?:{'|'.join(m)})" for first, m in latin.items())
    other = "|".join(re.escape(m) for m in ordered if not m[0].isascii())
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(letters)})|(?:{other})"), of


def _one(words: str, *, exact: bool) -> str:
    """A wording as a pattern of whole words, its first letter large or small unless `exact`."""
    first, rest = words[0], re.escape(words[1:])
    right = "(?![A-Za-z])" if words[-1].isascii() and words[-1].isalpha() else ""
    head = re.escape(first) if exact else f"[{first.upper()}{first.lower()}]"
    return f"{head}{rest}{right}"
