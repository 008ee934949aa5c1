"""k of n: every item gets one verdict from its repeats, then the suite counts items.

A verdict is decided only by outcomes that are known: with `need` of `of` repeats, an item has
passed once so many passed, and failed once the rest could no longer make up for its failures,
whatever an unscored, errored or missing repeat would have been.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_cli.errors import UsageError
from harness_cli.records.counting import counted
from harness_cli.records.run import FlakyItem, Repeats, RepeatVariance, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.clustered import OneWay
from harness_cli.stats.intervals import wilson

VERDICTS = ("passed", "failed", "unscored", "errored", "missing")
FLAKY_SHOWN = 20


def needed(config: RunConfig) -> int:
    """Passes that an item of this run needs: what was asked for, else more than half."""
    return config.need or majority_of(config.repeat)


def majority_of(repeats: int) -> int:
    """The least number that is more than half."""
    return repeats // 2 + 1


def check_need(need: int | None, repeats: int) -> None:
    """Raises `UsageError` for more passes than there are repeats."""
    if need is not None and not 1 <= need <= repeats:
        raise UsageError(
            f"--need {need} passes of {repeats} repeat{'s' * (repeats != 1)} an item",
            hint=f"--repeat {max(need, 1)} or more",
        )


def verdict(states: Sequence[str], need: int, of: int) -> str:
    """The verdict of one item from the states of the repeats that are there."""
    counts = Counter(states)
    if counts["passed"] >= need:
        return "passed"
    if counts["failed"] > of - need:
        return "failed"
    if len(states) < of:
        return "missing"
    return "errored" if counts["errored"] else "unscored"


def is_flaky(states: Sequence[str]) -> bool:
    """The repeats contradict each other: one passed, one failed."""
    return "passed" in states and "failed" in states


@dataclass(slots=True)
class RepeatTally:
    """Verdicts, flaky items and components of variance, item by item.

    What is kept grows with the flaky items alone.
    """

    need: int
    of: int
    items: Counter[str] = field(default_factory=Counter)
    flaky: list[FlakyItem] = field(default_factory=list)
    layouts: dict[str, OneWay] = field(default_factory=dict)

    @classmethod
    def of_run(cls, config: RunConfig) -> "RepeatTally":
        """An empty tally by the rule of a run."""
        return cls(need=needed(config), of=config.repeat)

    def add(self, results: Sequence[ItemResult]) -> None:
        """All repeats of one item."""
        if self.of < 2:
            return
        states = [result.state for result in results]
        ended = verdict(states, self.need, self.of)
        self.items[ended] += 1
        if is_flaky(states):
            self.flaky.append(
                FlakyItem(
                    item_id=results[0].item_id,
                    category=results[0].category,
                    passed=states.count("passed"),
                    of=len(states),
                    verdict=ended,
                )
            )
        for name in {name for result in results for name in result.scores}:
            scores = [s for r in results if (s := r.scores.get(name)) is not None]
            if scores:
                self.layouts.setdefault(name, OneWay()).add(scores)

    def summary(self, planned: int) -> Repeats | None:
        """What the report says; None for a run without repeats. `planned` counts rollouts."""
        if self.of < 2:
            return None
        items = {name: self.items[name] for name in VERDICTS}
        items["missing"] += planned // self.of - self.items.total()
        decided = items["passed"] + items["failed"]
        return Repeats(
            need=self.need,
            of=self.of,
            items=items,
            begun=self.items.total(),
            pass_rate=items["passed"] / decided if decided else None,
            interval=wilson(items["passed"], decided) if decided else None,
            flaky=tuple(self.flaky),
            variance={name: _variance(layout) for name, layout in sorted(self.layouts.items())},
        )


def _variance(layout: OneWay) -> RepeatVariance:
    return RepeatVariance(
        within=layout.within,
        between=layout.between,
        icc=layout.icc,
        design_effect=layout.design_effect,
    )


def suite_line(found: Repeats) -> str:
    """Items by verdict, with the interval over items."""
    shown = [(name, found.items.get(name, 0)) for name in VERDICTS]  # a file has them sorted
    counts = [f"{name} {n}" for name, n in shown if name != "missing" or n]
    line = f"items, {found.need} of {found.of} repeats: {' / '.join(counts)}"
    if found.pass_rate is None or found.interval is None:
        return line
    low, high = 100 * found.interval.low, 100 * found.interval.high
    return f"{line}; {100 * found.pass_rate:.2f} % pass [{low:.2f}, {high:.2f}]"


def flaky_line(found: Repeats, shown: int = FLAKY_SHOWN) -> str:
    """The flaky items by name, each with its passes; empty where there is none."""
    if not found.flaky:
        return ""
    named = [f"{f.item_id} ({f.passed} of {f.of})" for f in found.flaky[:shown]]
    more = len(found.flaky) - shown
    return f"flaky: {counted(len(found.flaky), 'item')}: {', '.join(named)}" + (
        f", … {more} more" if more > 0 else ""
    )


def variance_line(found: Repeats, metrics: Sequence[str]) -> str:
    """How much of the spread is the policy's own, for the metrics of the headline."""
    named = [
        f"{m} {100 * (1 - v.icc):.0f} %"
        for m in metrics
        if (v := found.variance.get(m)) is not None and v.icc is not None
    ]
    return f"spread within items: {', '.join(named)}" if named else ""


def lines(found: Repeats | None, metrics: Sequence[str]) -> list[str]:
    """Everything that repeats say, for a terminal or Markdown."""
    if found is None:
        return []
    said = (suite_line(found), flaky_line(found), variance_line(found, metrics))
    return [line for line in said if line]
