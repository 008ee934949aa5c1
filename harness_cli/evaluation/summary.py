"""From a journal to the two reports, in one pass over the items and in memory that hardly grows.

`report.canonical.json` has a line an item, sorted, then everything that follows from the items; no
clock, pid, run id or latency is in it, so two runs that did the same have the same bytes.
`report.json` has the numbers with timing; the items stay in the journal (`RunFolder.results`).
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import msgspec

from harness_cli.evaluation.judging_tally import JudgingTally
from harness_cli.evaluation.repeats import RepeatTally
from harness_cli.evaluation.rubrics import POOLED, weight_of
from harness_cli.evaluation.timing import CallTimes, item_timing
from harness_cli.records.canonical import canonical_json, write_json
from harness_cli.records.journal import ItemRecord
from harness_cli.records.run import MetricSummary, Report, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.intervals import mean_interval
from harness_cli.stats.trials import pass_hat_k
from harness_cli.stats.weighted import pooled_interval, weighted_mean
from harness_cli.store.journal import scan
from harness_cli.store.runs import Place, RunFolder, atomic_file

STATES = ("passed", "failed", "unscored", "errored")
UNBOUND = ("id", "started", "command", "harness_ref", "rescored_of")
"""Fields of `run.json` that name this run rather than what was asked."""

_sorted = msgspec.json.Encoder(order="sorted").encode


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
            self.means.append(sum(scores) / len(scores))
            self.weights.append(weight)
            self.scored += len(scores)

    def summary(self, name: str, of: int) -> MetricSummary:
        """Mean with its 95 % interval, and how many of N were scored."""
        if not self.means:
            return MetricSummary(metric=name, mean=None, scored=0, of=of)
        if name in POOLED:
            mean = weighted_mean(self.means, self.weights)
            interval = pooled_interval(self.means, self.weights)
        else:
            mean = sum(self.means) / len(self.means)
            interval = mean_interval(self.means)
        return MetricSummary(metric=name, mean=mean, interval=interval, scored=self.scored, of=of)


@dataclass(slots=True)
class Tally:
    """Everything that follows from the items of a run, whatever the order they ended in."""

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
        names = first.scores if len(results) == 1 else {n: None for r in results for n in r.scores}
        for name in names:
            scores = [s for r in results if (s := r.scores.get(name)) is not None]
            metric = self.metrics.get(name)
            if metric is None:
                metric = self.metrics[name] = Metric()
            metric.add(scores, weight_of(name, first))
        self.passed.add([float(r.state == "passed") for r in results if r.state != "unscored"])
        if repeats > 1:
            self.trials.append((len(results), sum(r.state == "passed" for r in results)))

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


def write_reports(
    folder: RunFolder,
    *,
    planned: int,
    status: str,
    metrics: Sequence[str],
    timing: dict[str, Any] | None = None,
    places: Sequence[Place] | None = None,
) -> Report:
    """Read the journal, write both reports, return the second.

    `places` are those of a journal without model calls that was just written: it is not scanned.
    """
    config = folder.config()
    repeats = RepeatTally.of_run(config)
    whole, categories, walls = Tally(), dict[str, Tally](), list[float | None]()
    with atomic_file(folder.canonical) as file:
        file.write(b'{"items":[')
        mark = b"\n"
        for records in _by_item(folder.item_records(places)):
            results = [record.result for record in records]
            whole.add(results, repeats=config.repeat)
            repeats.add(results)
            part = categories.setdefault(results[0].category, Tally())
            part.add(results, repeats=1)
            walls += item_timing(records)
            for result in results:
                file.write(mark + _sorted(_without_clocks(result)))
                mark = b",\n"
        report = _report(config, whole, categories, planned=planned, status=status, order=metrics)
        report = msgspec.structs.replace(report, repeats=repeats.summary(planned))
        file.write(b"\n],\n" + _rest(report))
    calls = CallTimes.of(scan(folder.journal) if places is None else ())
    report = msgspec.structs.replace(
        report,
        timing={**(timing or {}), **calls.timing(walls, fresh=config.fresh)},
        incidents={**report.incidents, **calls.incidents()},
    )
    write_json(folder.report_file, report)
    return report


def _without_clocks(result: ItemResult) -> ItemResult:
    """The result without times, and without the words of an assertion about one."""
    assertions = tuple(
        msgspec.structs.replace(a, reason="", score=None) if a.type.endswith("latency") else a
        for a in result.assertions
    )
    return msgspec.structs.replace(result, wall_s=None, ttft_s=None, assertions=assertions)


def _by_item(records: Iterator[ItemRecord]) -> Iterator[list[ItemRecord]]:
    for _, group in groupby(records, key=lambda record: record.item):
        yield list(group)


def _report(
    config: RunConfig,
    whole: Tally,
    categories: dict[str, Tally],
    *,
    planned: int,
    status: str,
    order: Sequence[str],
) -> Report:
    counts = {state: whole.counts[state] for state in STATES}
    ks = range(1, config.repeat + 1) if config.repeat > 1 else ()
    return Report(
        run=config,
        status=status,
        counts={**counts, "missing": planned - whole.finished},
        planned=planned,
        metrics=whole.summaries(order, planned),
        categories={
            name: part.summaries(order, part.finished) for name, part in sorted(categories.items())
        },
        usage=whole.usage(),
        incidents=dict(sorted(whole.incidents.items())),
        pass_hat={str(k): pass_hat_k(whole.trials, k) for k in ks},
    )


def _rest(report: Report) -> bytes:
    """Everything of the canonical report after its items."""
    plain = msgspec.to_builtins(report)
    del plain["items"], plain["timing"]
    for name in UNBOUND:
        del plain["run"][name]
    # What most runs have not is no part of their bytes: reports of older runs keep theirs.
    run = plain["run"]
    rare = ((run, "imported"), (run, "need"), (run, "excluded"), (plain, "repeats"))
    for part, name in rare:
        if part[name] is None:
            del part[name]
    return canonical_json(plain)[1:] + b"\n"
