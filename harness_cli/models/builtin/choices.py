"""Candidates made ready for many queries: their vectors centred once, their words indexed once.

The same skills, patterns and tools are chosen from again and again; only the query is new.
"""

import math
from functools import lru_cache

import numpy as np

from harness_cli.models.builtin.language import features
from harness_cli.models.builtin.vectors import Matrix, Vectors, unit

Phrases = tuple[str, ...]

UNHEARD = 0.3
"""Share in the weight of a piece that no candidate has: it tells nothing apart, only how much of
the query stays unexplained."""
WHOLE = 0.35
"""Share of the whole description in *meaning*; the rest is its best phrase."""


class Choices:
    """What is chosen from: by candidate the phrases that speak for it and those against it."""

    def __init__(self, phrases: list[Phrases], against: list[Phrases]) -> None:
        self._phrases = [p or ("",) for p in phrases]
        self._for = Index(phrases)
        self._against = Index(against)
        self._rows: tuple[Matrix, Matrix] | None = None
        self._starts = np.cumsum([0, *(len(p) for p in self._phrases[:-1])])

    def meaning(self, vectors: Vectors, query: str) -> list[float]:
        """By candidate, how near its whole text and its best phrase are to the query."""
        middle, rows = self._rows or self._centred(vectors)
        near = rows @ unit(vectors.embed([query]) - middle)[0]
        best = np.maximum.reduceat(near, self._starts)
        found: list[float] = (WHOLE * near[self._starts] + (1 - WHOLE) * best).tolist()
        return found

    def wording(self, wanted: dict[str, float]) -> list[float]:
        """By candidate, its share of the pieces of a query."""
        return self._for.shares(wanted)

    def contrary(self, wanted: dict[str, float]) -> list[float]:
        """The same over the phrases that speak against it."""
        return self._against.shares(wanted)

    def _centred(self, vectors: Vectors) -> tuple[Matrix, Matrix]:
        """The mean of the whole texts, and every phrase at unit length from there."""
        rows = vectors.embed([phrase for phrases in self._phrases for phrase in phrases])
        wholes = rows[self._starts]
        middle: Matrix = wholes.mean(axis=0) if len(wholes) > 2 else np.zeros_like(rows[0])
        self._rows = middle, unit(rows - middle)
        return self._rows


class Index:
    """Which of several texts have a piece, and how much a piece tells by how few have it."""

    def __init__(self, texts: list[Phrases]) -> None:
        self._total = len(texts)
        self._bearers: dict[str, list[int]] = {}
        for number, phrases in enumerate(texts):
            for piece in _joined(phrases):
                self._bearers.setdefault(piece, []).append(number)
        # ln(1 + N / (1 + df)), less where df is 0
        self._rarity = [math.log(1 + self._total / (1 + n)) for n in range(self._total + 1)]
        self._rarity[0] *= UNHEARD

    def shares(self, wanted: dict[str, float]) -> list[float]:
        """By text, the weight of the wanted pieces it has over the weight of all."""
        whole, shared = 0.0, [0.0] * self._total
        for piece, weight in wanted.items():
            bearers = self._bearers.get(piece, ())
            counts = weight * self._rarity[len(bearers)]
            whole += counts
            for number in bearers:
                shared[number] += counts
        return [s / whole for s in shared] if whole else shared


@lru_cache(maxsize=4096)
def _joined(phrases: Phrases) -> frozenset[str]:
    return frozenset(piece for phrase in phrases for piece in features(phrase))
