"""Percentiles with their definition in the name, and run-level statistics that are never pooled."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from harness_cli.stats.distributions import binomial_pmf

Definition = Literal["nearest-rank", "linear"]


class AcrossRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Run-level values of one statistic: their mean and range (METHODS §2)."""

    mean: float
    low: float
    high: float
    runs: int


def percentile(
    values: Sequence[float], q: float, definition: Definition = "nearest-rank"
) -> float | None:
    """The q-th percentile, 0 ≤ q ≤ 100; None without values.

    `nearest-rank`: the value at rank ⌈q/100 · n⌉, always one that was measured (Hyndman & Fan 1).
    `linear`: interpolated at (n − 1)·q/100, numpy's default (Hyndman & Fan 7).
    """
    if not 0 <= q <= 100:
        raise ValueError(f"{q} is no percentile")
    if not values:
        return None
    ordered = sorted(values)
    if definition == "nearest-rank":
        return ordered[max(0, math.ceil(q / 100 * len(ordered) - 1e-9) - 1)]
    position = (len(ordered) - 1) * q / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def percentile_interval(
    values: Sequence[float], q: float, *, level: float = 0.95
) -> tuple[float | None, float | None]:
    """The distribution-free interval of the q-th percentile between two order statistics.

    Of n values B ~ Bin(n, q/100) lie at or below it; the ends are the values at the ranks l and u
    with P(B < l) ≤ α/2 and P(B ≥ u) ≤ α/2 (Hahn & Meeker 1991, §5.2). None for an end that n values
    do not bound: 72 are needed for an upper one of the 95th percentile.
    """
    n, tail = len(values), (1 - level) / 2
    ordered = sorted(values)
    low: float | None = None
    below = 0.0  # P(B < rank)
    for rank in range(1, n + 1):
        below += binomial_pmf(rank - 1, n, q / 100)
        if below <= tail:
            low = ordered[rank - 1]
        if 1 - below <= tail:
            return low, ordered[rank - 1]
    return low, None


def across_runs(values: Sequence[float]) -> AcrossRuns | None:
    """Mean and range of one statistic over runs; percentiles of separate runs are never pooled."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return AcrossRuns(mean=mean, low=min(values), high=max(values), runs=len(values))
