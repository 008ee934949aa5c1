"""Phrases that tell one set of texts from another, English and Chinese.

Scores are the z-values of log-odds ratios with a Dirichlet prior from both sets together (Monroe,
Colaresi and Quinn 2008, eq. 22): frequent words do not win by being frequent, rare ones not by
chance. A phrase counts once a text.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]+(?:['’][^\W\d_\u3400-\u9fff]+)?|[\u3400-\u9fff]+|\d+|\S")
_HAN = re.compile(r"[\u3400-\u9fff]")
WORDS = 3
"""Longest English phrase, in words."""
HAN = 4
"""Longest Chinese phrase, in characters."""
Z = 1.64
"""One-sided 5 %: below it a phrase may well stand in one set by chance."""
PRIOR = 10.0
"""Weight of the prior in texts."""


class Phrase(NamedTuple):
    """A phrase and in how many texts of either set it stands."""

    text: str
    support: int
    against: int
    z: float

    @property
    def precision(self) -> float:
        """Of the texts that hold the phrase, the share in the first set."""
        return self.support / (self.support + self.against)


def phrases_of(text: str) -> set[str]:
    """Every phrase of a text: 1–3 words, or 2–4 characters of a Chinese run. No numbers."""
    return set(_grams(text.casefold().replace("’", "'")))


def _grams(text: str) -> Iterator[str]:
    words: list[str] = []
    for token in _WORD.findall(text):
        if _HAN.match(token):
            for size in range(2, HAN + 1):
                yield from (token[i : i + size] for i in range(len(token) - size + 1))
        if token[0].isalpha() and not _HAN.match(token):
            words.append(token)
            for size in range(1, min(WORDS, len(words)) + 1):
                yield " ".join(words[-size:])
        else:  # a phrase never reaches over punctuation, a number or another script
            words.clear()


def contrast(
    positive: Iterable[str],
    negative: Iterable[str],
    *,
    min_support: int = 3,
    min_precision: float = 0.0,
    limit: int = 12,
) -> tuple[Phrase, ...]:
    """The phrases that mark the first texts against the second, best first.

    A phrase that stands in `min_support` texts is kept when its z-value is above `Z` and its
    precision above `min_precision`; one that only repeats a better phrase is dropped.
    """
    here, n_here = count(positive)
    there, n_there = count(negative)
    return contrast_counts(
        here,
        n_here,
        there,
        n_there,
        min_support=min_support,
        min_precision=min_precision,
        limit=limit,
    )


def contrast_counts(
    here: Counter[str],
    n_here: int,
    there: Counter[str],
    n_there: int,
    *,
    min_support: int = 3,
    min_precision: float = 0.0,
    limit: int = 12,
) -> tuple[Phrase, ...]:
    """`contrast` of counts (phrase → texts that hold it) and numbers of texts."""
    found = []
    for phrase, support in here.items():
        if support < min_support:
            continue
        z = _z(support, n_here, there[phrase], n_there)
        made = Phrase(phrase, support, there[phrase], z)
        if z >= Z and made.precision >= min_precision:
            found.append(made)
    found.sort(key=lambda p: (-round(p.z, 6), -len(p.text), p.text))
    return tuple(_distinct(found))[:limit]


def cover(texts: Sequence[str], phrases: Sequence[Phrase], *, limit: int) -> tuple[Phrase, ...]:
    """Few phrases that together stand in most texts: greedy, each must add a text or more."""
    holds = [phrases_of(t) for t in texts]
    left, chosen = set(range(len(texts))), list[Phrase]()
    pool = list(phrases)
    while pool and len(chosen) < limit:
        gains = [(sum(p.text in holds[i] for i in left), -pool.index(p), p) for p in pool]
        gain, _, best = max(gains, key=lambda g: g[:2])
        if gain == 0:
            break
        chosen.append(best)
        pool.remove(best)
        left -= {i for i in left if best.text in holds[i]}
    return tuple(chosen)


def count(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """Phrase → number of texts that hold it, and the number of texts."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        total += 1
        counts.update(phrases_of(text))
    return counts, total


def _z(here: int, n_here: int, there: int, n_there: int) -> float:
    """The z-value of one phrase; prior counts are its share in both sets, PRIOR texts' worth."""
    prior = PRIOR * (here + there) / (n_here + n_there)
    other = PRIOR - prior
    odds_here = math.log((here + prior) / (n_here - here + other + 1e-9))
    odds_there = math.log((there + prior) / (n_there - there + other + 1e-9))
    return (odds_here - odds_there) / math.sqrt(1 / (here + prior) + 1 / (there + prior))


def _distinct(found: Iterable[Phrase]) -> Iterator[Phrase]:
    kept: list[Phrase] = []
    for phrase in found:
        inside = any(
            _within(phrase.text, k.text)
            or (_within(k.text, phrase.text) and k.support >= phrase.support)
            for k in kept
        )
        if not inside:
            kept.append(phrase)
            yield phrase


def _within(part: str, whole: str) -> bool:
    if _HAN.match(part):
        return part in whole
    return f" {part} " in f" {whole} "


def pattern_of(phrase: str) -> str:
    """A regular expression that finds the phrase as words of a comment."""
    escaped = re.escape(phrase).replace("\\ ", r"\s+").replace("'", "['’]")
    return escaped if _HAN.match(phrase) else rf"\b{escaped}\b"


def matches(phrases: Iterable[str], text: str) -> bool:
    """Some phrase stands in the text."""
    return any(re.search(pattern_of(p), text, re.IGNORECASE) for p in phrases)
