"""How far a run is: shown while it runs, never part of its result."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from harness_cli.evaluation.gate import Spending
from harness_cli.records.verdict import ItemResult


@dataclass(slots=True)
class Progress:
    """Counts of one run; `done` includes what an earlier process had finished."""

    name: str
    planned: int
    spending: Spending
    before: int = 0
    """Rollouts that were finished when this process started."""
    counts: Counter[str] = field(default_factory=Counter)
    started: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Finished rollouts, of `planned`."""
        return self.before + self.counts.total()

    @property
    def rate(self) -> float:
        """Rollouts a second of this process."""
        return self.counts.total() / max(1e-9, time.monotonic() - self.started)

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None before the first one ended."""
        return (self.planned - self.done) / self.rate if self.counts else None

    def add(self, result: ItemResult) -> None:
        """One rollout ended."""
        self.counts[result.state] += 1


Observe = Callable[[Progress], None]
