"""Repeats of an item are not items: variance between and within them, and what it does to n.

Resampling clusters keeps the repeats of an item together, so that the bootstrap distribution of a
mean of item means is that of the item means alone; it is exact where these lie on a lattice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from harness_cli.records.run import Interval
from harness_cli.stats.intervals import mean_interval


class Clustered(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of items with repeats, one-way random effects (items are the clusters)."""

    items: int
    rollouts: int
    mean: float
    """Of the item means: every item counts once, however many of its repeats were scored."""
    interval: Interval | None
    within: float | None
    """Variance of one rollout around its item's mean; None without a repeated item."""
    between: float | None
    """Variance of the items' true means; never below 0."""
    icc: float | None
    """between / (between + within); None where nothing varies."""
    se: float | None
    """Standard error with items as clusters."""
    se_naive: float | None
    """Of the rollouts taken for independent items: what the table must not show."""

    design_effect: float | None
    """(se / se_naive)²: how many rollouts count as one independent item's."""


@dataclass(slots=True)
class OneWay:
    """A one-way layout, item by item in constant memory."""

    items: int = 0
    rollouts: int = 0
    sizes_squared: int = 0
    inside: float = 0.0
    """Σ of squares around the item means."""
    total: float = 0.0
    weighted_squares: float = 0.0
    """Σ nᵢ x̄ᵢ²."""
    mean: float = 0.0
    """Of the item means."""
    mean_squares: float = 0.0
    """Σ of squares of the item means around their mean (Welford 1962)."""

    def add(self, values: Sequence[float]) -> None:
        """The scored repeats of one item."""
        n = len(values)
        if n == 0:
            return
        mean = math.fsum(values) / n
        self.items += 1
        self.rollouts += n
        self.sizes_squared += n * n
        self.inside += math.fsum((x - mean) ** 2 for x in values)
        self.total += n * mean
        self.weighted_squares += n * mean * mean
        off = mean - self.mean
        self.mean += off / self.items
        self.mean_squares += off * (mean - self.mean)

    @property
    def across(self) -> float:
        """Σ nᵢ (x̄ᵢ − x̄)²."""
        if self.rollouts == 0:
            return 0.0
        return max(0.0, self.weighted_squares - self.total**2 / self.rollouts)

    @property
    def within(self) -> float | None:
        """MSW = ΣΣ(x − x̄ᵢ)²/(N − k); None without a repeated item."""
        free = self.rollouts - self.items
        return self.inside / free if free > 0 else None

    @property
    def between(self) -> float | None:
        """max(0, (MSB − MSW)/n₀), n₀ = (N − Σnᵢ²/N)/(k − 1); None where it is not identified."""
        if self.within is None or self.items < 2:
            return None
        free = self.items - 1
        n0 = (self.rollouts - self.sizes_squared / self.rollouts) / free
        return max(0.0, (self.across / free - self.within) / n0)

    @property
    def icc(self) -> float | None:
        """between / (between + within), ICC(1) of Shrout & Fleiss 1979; None if nothing varies."""
        if self.within is None or self.between is None or self.within + self.between <= 0:
            return None
        return self.between / (self.between + self.within)

    @property
    def se(self) -> float | None:
        """Standard error of the mean of item means: items are what was drawn."""
        if self.items < 2:
            return None
        return math.sqrt(self.mean_squares / (self.items - 1) / self.items)

    @property
    def se_naive(self) -> float | None:
        """Standard error of the rollouts taken for independent items."""
        if self.rollouts < 2:
            return None
        return math.sqrt((self.inside + self.across) / (self.rollouts - 1) / self.rollouts)

    @property
    def design_effect(self) -> float | None:
        """(se / se_naive)²; None where nothing varies."""
        if not self.se_naive or self.se is None:
            return None
        return (self.se / self.se_naive) ** 2


def clustered(
    groups: Sequence[Sequence[float]],
    *,
    level: float = 0.95,
    seed: int = 0,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Clustered | None:
    """Mean, interval and components of variance of items with repeats; None without a score.

    `groups` holds the scored repeats of one item each, empty ones are left out. Components are the
    ANOVA estimators for unequal sizes (Searle, Casella & McCulloch 1992, §3.6).
    """
    layout, means = OneWay(), [math.fsum(g) / len(g) for g in groups if len(g)]
    if not means:
        return None
    for group in groups:
        layout.add(group)
    return Clustered(
        items=layout.items,
        rollouts=layout.rollouts,
        mean=layout.mean,
        interval=mean_interval(means, level=level, seed=seed, bounds=bounds),
        within=layout.within,
        between=layout.between,
        icc=layout.icc,
        se=layout.se,
        se_naive=layout.se_naive,
        design_effect=layout.design_effect,
    )


def variance_components(
    groups: Sequence[Sequence[float]],
) -> tuple[float | None, float | None]:
    """(within, between) of a one-way layout with unequal sizes; None for what is not identified."""
    layout = OneWay()
    for group in groups:
        layout.add(group)
    return layout.within, layout.between
