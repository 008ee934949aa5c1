"""Percentiles with their definition in the name, and run-level statistics that are never pooled."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

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


def across_runs(values: Sequence[float]) -> AcrossRuns | None:
    """Mean and range of one statistic over runs; percentiles of separate runs are never pooled."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return AcrossRuns(mean=mean, low=min(values), high=max(values), runs=len(values))
