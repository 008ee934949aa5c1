"""The interval of a pooled share: Σ w·x / Σ w over items that hold several units each."""

import math
from collections.abc import Sequence

import numpy as np

from harness_cli.records.run import Interval
from harness_cli.stats.bootstrap import Floats
from harness_cli.stats.distributions import t_quantile


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Σ w·x / Σ w; the weights must not sum to 0."""
    return float(np.average(np.asarray(values), weights=np.asarray(weights)))


def pooled_interval(
    values: Sequence[float], weights: Sequence[float], *, level: float = 0.95
) -> Interval | None:
    """m ± t_{n−1} · √( n/(n−1) · Σ w²(x − m)² ) / Σ w, clipped to [0, 1]; None for n < 2.

    The linearised variance of a ratio (Cochran 1977, §6.3): the units of one item (the instructions
    of one prompt) hang together, so items are what varies, not units.
    """
    x, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    n = len(x)
    if n < 2:
        return None
    mean = float(np.average(x, weights=w))
    spread = math.sqrt(n / (n - 1) * float(((w * (x - mean)) ** 2).sum())) / float(w.sum())
    half = t_quantile(0.5 + level / 2, n - 1) * spread
    return Interval(low=max(0.0, mean - half), high=min(1.0, mean + half), method="ratio t")


def weighted_percentile(
    values: Sequence[float] | Floats, weights: Sequence[float] | Floats, q: float
) -> float:
    """The smallest value that with all below it holds q % of the weight, 0 ≤ q ≤ 100.

    With equal weights the nearest-rank percentile. The weights must not be negative, nor sum to 0.
    """
    data, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    order = np.argsort(data, kind="stable")
    return sorted_percentile(data[order], w[order], q)


def sorted_percentile(values: Floats, weights: Floats, q: float) -> float:
    """`weighted_percentile` of values that are in order already."""
    sums = np.cumsum(weights)
    # A value of no weight in front of the first weighted one holds nothing.
    first = int(np.searchsorted(sums, 0.0, side="right"))
    at = int(np.searchsorted(sums, q / 100 * sums[-1] - 1e-9 * sums[-1]))
    return float(values[min(max(at, first), len(values) - 1)])
