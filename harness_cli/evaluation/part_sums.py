"""What the items of one part of a run add up to, and its parts put together as one pass would.

A float sum depends on the order of what is added, and a report's bytes must not depend on how many
processes made it. So every value travels with the number of its item, and the whole is put into
the order of ids before anything is computed from it.
"""

import mmap
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate, pairwise
from typing import IO, Any

import msgspec
import numpy as np

from harness_cli.evaluation.item_tally import Metric, Tally
from harness_cli.evaluation.judging_tally import JudgingTally
from harness_cli.records.verdict import ItemResult

PASSED = ""
"""The name under which `Tally.passed` travels; no metric has an empty one."""

_Id = tuple[str, int]


class _Values(msgspec.Struct, frozen=True):
    """One metric of one category: float64 scores and weights, int64 numbers of their items."""

    means: bytes
    weights: bytes
    items: bytes
    scored: int


class _Sums(msgspec.Struct, frozen=True):
    """One category of a part."""

    first: _Id
    """The least of its items."""
    values: dict[str, _Values]
    counts: dict[str, int]
    incidents: dict[str, int]
    sums: dict[str, int | float]
    judging: dict[str, int | float]


class PartSums(msgspec.Struct, frozen=True):
    """A part as it is handed over."""

    ids: list[_Id]
    lengths: list[int]
    """Bytes of each item's line in the part's file of lines."""
    categories: dict[str, _Sums]


Part = tuple[PartSums | None, bytes | mmap.mmap]
"""A part with its lines; without sums where an item came twice in it."""


@dataclass(slots=True)
class Collected:
    """The items of a part as they come, each once and with one repeat."""

    lines: IO[bytes]
    """Takes the canonical line of each item, one behind the other."""
    ids: dict[_Id, int] = field(default_factory=dict)
    """Item → its number in this part."""
    lengths: "array[int]" = field(default_factory=lambda: array("q"))
    tallies: dict[str, Tally] = field(default_factory=dict)
    first: dict[str, _Id] = field(default_factory=dict)
    """Category → the least of its items."""
    items: dict[tuple[str, str], "array[int]"] = field(default_factory=dict)
    """Category and metric → the numbers of the items that have a score there."""
    repeated: bool = False
    """An item came twice: which of its results counts, only the whole journal says."""

    def add(self, key: _Id, result: ItemResult, line: bytes) -> None:
        """One item's only result, and its line of the canonical report."""
        if key in self.ids:
            self.repeated = True
            return
        number = self.ids[key] = len(self.ids)
        self.lines.write(line)
        self.lengths.append(len(line))
        tally = self.tallies.get(result.category)
        if tally is None:
            tally = self.tallies[result.category] = Tally()
        tally.add((result,), repeats=1)
        self.first[result.category] = min(key, self.first.get(result.category, key))
        for name, score in result.scores.items():
            if score is not None:
                self._numbers(result.category, name).append(number)
        if result.state != "unscored":
            self._numbers(result.category, PASSED).append(number)

    def _numbers(self, category: str, metric: str) -> "array[int]":
        found = self.items.get((category, metric))
        if found is None:
            found = self.items[category, metric] = array("q")
        return found

    def sums(self) -> PartSums | None:
        """To be handed over; None where an item came twice."""
        if self.repeated:
            return None
        return PartSums(list(self.ids), list(self.lengths), dict(self._categories()))

    def _categories(self) -> Iterator[tuple[str, _Sums]]:
        for category, tally in self.tallies.items():
            named = {PASSED: tally.passed, **tally.metrics}
            values = {
                name: _Values(
                    metric.means.tobytes(),
                    metric.weights.tobytes(),
                    self._numbers(category, name).tobytes(),
                    metric.scored,
                )
                for name, metric in named.items()
            }
            judging: dict[str, Any] = asdict(tally.judging)
            first = self.first[category]
            sums: dict[str, int | float] = {**tally.sums}
            yield category, _Sums(first, values, tally.counts, tally.incidents, sums, judging)


class Whole:
    """All parts of a run as one: its lines in order, and a tally a category."""

    def __init__(self, parts: Sequence[tuple[PartSums, bytes | mmap.mmap]]) -> None:
        self._parts = parts
        keys = [(key, p, i) for p, (part, _) in enumerate(parts) for i, key in enumerate(part.ids)]
        keys.sort()
        self.repeated = any(a[0] == b[0] for a, b in pairwise(keys))
        """An item stands in two parts."""
        self._order = [(p, i) for _, p, i in keys]
        self._rank = [np.empty(len(part.ids), dtype=np.int64) for part, _ in parts]
        for rank, (p, i) in enumerate(self._order):
            self._rank[p][i] = rank

    def lines(self) -> Iterator[bytes]:
        """Each item's line, sorted by id."""
        ends = [list(accumulate(part.lengths)) for part, _ in self._parts]
        for p, i in self._order:
            part, text = self._parts[p]
            yield text[ends[p][i] - part.lengths[i] : ends[p][i]]

    def categories(self) -> dict[str, Tally]:
        """Category → tally, in the order in which the sorted items name the categories."""
        held: dict[str, list[tuple[int, _Sums]]] = {}
        for p, (part, _) in enumerate(self._parts):
            for name, sums in part.categories.items():
                held.setdefault(name, []).append((p, sums))
        order = sorted(held, key=lambda name: min(sums.first for _, sums in held[name]))
        return {name: self._tally(held[name]) for name in order}

    def _tally(self, parts: list[tuple[int, _Sums]]) -> Tally:
        """A category of all parts."""
        whole = Tally()
        for name in {name: None for _, sums in parts for name in sums.values}:
            metric = self._metric([(p, s.values[name]) for p, s in parts if name in s.values])
            if name == PASSED:
                whole.passed = metric
            else:
                whole.metrics[name] = metric
        for _, sums in parts:
            whole.counts.update(sums.counts)
            whole.incidents.update(sums.incidents)
            whole.sums.update(sums.sums)
            whole.judging.join(JudgingTally(**sums.judging))  # type: ignore[arg-type]
        return whole

    def _metric(self, parts: list[tuple[int, _Values]]) -> Metric:
        ranks = np.concatenate([self._rank[p][_numbers(v.items)] for p, v in parts])
        order = np.argsort(ranks)
        means, weights = (
            np.concatenate([np.frombuffer(data) for data in each])[order]
            for each in ([v.means for _, v in parts], [v.weights for _, v in parts])
        )
        return Metric(
            means=array("d", means.tobytes()),
            weights=array("d", weights.tobytes()),
            scored=sum(v.scored for _, v in parts),
        )


def _numbers(data: bytes) -> "np.ndarray[Any, np.dtype[np.int64]]":
    return np.frombuffer(data, dtype=np.int64)


def whole_of(parts: Sequence[Part]) -> Whole | None:
    """The parts as one; None where an item came twice: then only the journal can tell."""
    known = [(part, lines) for part, lines in parts if part is not None]
    if len(known) < len(parts):
        return None
    whole = Whole(known)
    return None if whole.repeated else whole
