"""Repeats of an item are not items: variance between and within them, and what it does to n.

Resampling clusters keeps the repeats of an item together, so that the bootstrap distribution of a
mean of item means is that of the item means alone; it is exact where these lie on a lattice.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

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
    """between / (between + within), ICC(1) of Shrout & Fleiss 1979; None where nothing varies."""
    se: float | None
    """Standard error with items as clusters."""
    se_naive: float | None
    """Of the rollouts taken for independent items: what the table must not show."""

    @property
    def design_effect(self) -> float | None:
        """(se / se_naive)²: how many rollouts count as one independent item's."""
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
    scored = [np.asarray(g, dtype=np.float64) for g in groups if len(g)]
    if not scored:
        return None
    means = np.array([g.mean() for g in scored])
    k, rollouts = len(scored), sum(len(g) for g in scored)
    interval = mean_interval([float(m) for m in means], level=level, seed=seed, bounds=bounds)
    within, between = variance_components([g.tolist() for g in scored])
    total = None if within is None or between is None else within + between
    everything = np.concatenate(scored)
    naive = float(everything.std(ddof=1)) / math.sqrt(rollouts) if rollouts > 1 else None
    return Clustered(
        items=k,
        rollouts=rollouts,
        mean=float(means.mean()),
        interval=interval,
        within=within,
        between=between,
        icc=between / total if total and between is not None else None,
        se=float(means.std(ddof=1)) / math.sqrt(k) if k > 1 else None,
        se_naive=naive,
    )


def variance_components(
    groups: Sequence[Sequence[float]],
) -> tuple[float | None, float | None]:
    """(within, between) of a one-way layout with unequal sizes; None for what is not identified.

    within = MSW = ΣΣ(x − x̄ᵢ)²/(N − k); between = max(0, (MSB − MSW)/n₀) with
    n₀ = (N − Σnᵢ²/N)/(k − 1).
    """
    sizes = np.array([len(g) for g in groups if len(g)], dtype=np.float64)
    k, n = len(sizes), float(sizes.sum())
    if n <= k:
        return None, None
    means = np.array([sum(g) / len(g) for g in groups if len(g)])
    spread = sum(
        (x - m) ** 2 for g, m in zip((g for g in groups if len(g)), means, strict=True) for x in g
    )
    within = float(spread / (n - k))
    if k < 2:
        return within, None
    grand = float(sizes @ means) / n
    msb = float(sizes @ (means - grand) ** 2) / (k - 1)
    n0 = (n - float(sizes @ sizes) / n) / (k - 1)
    return within, max(0.0, (msb - within) / n0)
