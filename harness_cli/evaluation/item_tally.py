"""What follows from the items of a run: counts, metrics, incidents, totals; summed and merged."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_cli.evaluation.judging_tally import JudgingTally
from harness_cli.evaluation.rubrics import POOLED, weight_of
from harness_cli.records.run import MetricSummary
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.intervals import mean_interval
from harness_cli.stats.weighted import pooled_interval, weighted_mean


@dataclass(slots=True)
class Metric:
    """One metric over items: the mean over an item's scored repeats, then over items.

    An item may weigh more than another: where units are pooled, it weighs as many as it holds.
    """

    means: "array[float]" = field(default_factory=lambda: array("d"))
    weights: "array[float]" = field(default_factory=lambda: array("d"))
    scored: int = 0

    def add(self, scores: Sequence[float], weight: float = 1.0) -> None:
        """One item's scored repeats."""
        if scores:
            self.means.append(sum(scores) / len(scores) if len(scores) > 1 else scores[0])
            self.weights.append(weight)
            self.scored += len(scores)

    def add_one(self, score: float, weight: float = 1.0) -> None:
        """An item with one scored repeat."""
        self.means.append(score)
        self.weights.append(weight)
        self.scored += 1

    def join(self, other: "Metric") -> None:
        """Take the items of another one in."""
        self.means.extend(other.means)
        self.weights.extend(other.weights)
        self.scored += other.scored

    def summary(self, name: str, of: int) -> MetricSummary:
        """Mean with its 95 % interval, and how many of N were scored."""
        if not self.means:
            return MetricSummary(metric=name, mean=None, scored=0, of=of)
        if name in POOLED:
            mean = weighted_mean(self.means, self.weights)
            interval = pooled_interval(self.means, self.weights)
        else:
            # Exactly rounded, so that it does not depend on the order of the items.
            mean = math.fsum(self.means) / len(self.means)
            interval = mean_interval(self.means)
        return MetricSummary(metric=name, mean=mean, interval=interval, scored=self.scored, of=of)


@dataclass(slots=True)
class Tally:
    """Everything that follows from some items of a run, whatever the order they ended in."""

    metrics: dict[str, Metric] = field(default_factory=dict)
    passed: Metric = field(default_factory=Metric)
    """Share that passed, of what was not unscored: the metric `passed`, where an evalset names it
    (sets of verifiable instructions have no other)."""
    counts: Counter[str] = field(default_factory=Counter)
    incidents: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    trials: list[tuple[int, int]] = field(default_factory=list)
    judging: JudgingTally = field(default_factory=JudgingTally)

    def add(self, results: Sequence[ItemResult], *, repeats: int) -> None:
        """All repeats of one item."""
        for result in results:
            self.counts[result.state] += 1
            self._count_incidents(result)
            self._sum(result)
        first = results[0]
        if len(results) == 1:
            for name, score in first.scores.items():
                metric = self.metrics.get(name) or self._metric(name)
                if score is not None:
                    metric.add_one(score, weight_of(name, first) if name in POOLED else 1.0)
        else:
            for name in {n: None for r in results for n in r.scores}:
                scores = [s for r in results if (s := r.scores.get(name)) is not None]
                self._metric(name).add(scores, weight_of(name, first))
        self.passed.add([float(r.state == "passed") for r in results if r.state != "unscored"])
        if repeats > 1:
            self.trials.append((len(results), sum(r.state == "passed" for r in results)))

    @classmethod
    def merged(cls, parts: Iterable["Tally"]) -> "Tally":
        """Of all items of several tallies, no item being in two of them."""
        whole = cls()
        for part in parts:
            for name, metric in part.metrics.items():
                whole._metric(name).join(metric)
            whole.passed.join(part.passed)
            for mine, its in (
                (whole.counts, part.counts),
                (whole.incidents, part.incidents),
                (whole.sums, part.sums),
            ):
                mine.update(its)
            whole.trials += part.trials
            whole.judging.join(part.judging)
        return whole

    def _metric(self, name: str) -> Metric:
        metric = self.metrics.get(name)
        if metric is None:
            metric = self.metrics[name] = Metric()
        return metric

    def summaries(self, order: Sequence[str], of: int) -> tuple[MetricSummary, ...]:
        """Every metric: those the evalset names first, then the others by name."""
        names = [*order, *sorted(set(self.metrics) - set(order))]
        found = {"passed": self.passed, **self.metrics}
        return tuple(found.get(name, Metric()).summary(name, of) for name in names)

    @property
    def finished(self) -> int:
        """Rollouts that have a result."""
        return self.counts.total()

    def usage(self) -> dict[str, Any]:
        """Totals over the results; what a server did not say is counted beside them."""
        known = self.finished - self.sums["unknown_cost"]
        return {
            "calls": self.sums["calls"],
            "input_tokens": self.sums["input_tokens"],
            "output_tokens": self.sums["output_tokens"],
            "results_without_usage": self.sums["unknown_usage"],
            "cost": round(self.sums["cost"], 9) if known else None,
            "results_without_cost": self.sums["unknown_cost"],
            **({"judge": self.judging.shown()} if self.judging.votes else {}),
        }

    def _count_incidents(self, result: ItemResult) -> None:
        for fired in result.hooks_fired:
            self.incidents[f"hook {fired}"] += 1
        if result.route != "normal":
            self.incidents[f"route {result.route}"] += 1
        elif result.fell_back:
            self.incidents["fallback policy"] += 1

    def _sum(self, result: ItemResult) -> None:
        sums = self.sums
        self.judging.add(result.judging)
        sums["calls"] += result.rounds
        sums["input_tokens"] += result.input_tokens or 0
        sums["output_tokens"] += result.output_tokens or 0
        sums["unknown_usage"] += result.input_tokens is None or result.output_tokens is None
        sums["cost"] += result.cost or 0  # type: ignore[assignment]
        sums["unknown_cost"] += result.cost is None
