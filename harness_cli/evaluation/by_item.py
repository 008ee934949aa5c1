"""Results of a run put together by item: what comparisons and noise floors start from."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from harness_cli.evaluation.repeats import VERDICTS as VERDICTS
from harness_cli.evaluation.repeats import is_flaky, majority_of, verdict
from harness_cli.evaluation.rubrics import POOLED, weight_of
from harness_cli.records.verdict import ItemResult

PASS = "pass"
"""Share of repeats in state `passed`; unscored and errored ones count as missing."""
HEADLINE = (PASS, "accuracy", "effectiveness", "avg")
STATES = ("passed", "failed", "unscored", "errored")


@dataclass
class PairedItem:
    """All repeats of one item."""

    category: str
    states: list[str] = field(default_factory=list)
    scores: dict[str, list[float | None]] = field(default_factory=dict)
    findings: set[str] = field(default_factory=set)
    units: float = 1.0
    """What it weighs in a pooled metric (`rubrics.POOLED`)."""

    def mean(self, metric: str) -> float | None:
        """Over the scored repeats; None when there is none."""
        known = [v for v in self.scores.get(metric, ()) if v is not None]
        return fmean(known) if known else None

    def verdict(self, need: int | None = None, of: int | None = None) -> str:
        """The verdict of k of n; more than half of the repeats that are there by default."""
        of = of or len(self.states)
        return verdict(self.states, need or majority_of(of), of)

    def passed(self, need: int | None = None, of: int | None = None) -> bool:
        """That verdict is `passed`."""
        return self.verdict(need, of) == "passed"

    @property
    def flaky(self) -> bool:
        """Some repeats pass and some fail."""
        return is_flaky(self.states)


def collected(results: Iterable[ItemResult]) -> tuple[dict[str, PairedItem], dict[str, int]]:
    """Item id → its repeats, and the rollouts by state."""
    items: dict[str, PairedItem] = {}
    counts = dict.fromkeys(STATES, 0)
    for result in results:
        counts[result.state] += 1
        item = items.setdefault(result.item_id, PairedItem(result.category))
        item.states.append(result.state)
        decided = result.state in ("passed", "failed")
        passed = float(result.state == "passed") if decided else None
        for metric, score in {PASS: passed, **result.scores}.items():
            item.scores.setdefault(metric, []).append(score)
        item.findings |= {f.kind for f in result.findings}
        item.units = weight_of(POOLED[0], result) or 1.0
    return items, counts
