"""95 % intervals of one mean or one share."""

import math
from collections.abc import Sequence

import numpy as np

from harness_cli.records.run import Interval
from harness_cli.stats.bootstrap import Floats, bootstrap_mean
from harness_cli.stats.distributions import beta_quantile, normal_quantile, t_quantile

SMALL = 100
"""Below this many values the t interval stands in for the bootstrap's, which is too narrow there
(coverage at n = 30: percentile 0.923, t 0.956; docs/statistics.md)."""


def wilson(passed: int, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share (Wilson 1927): stays in [0, 1], honest at 0 and n.

    centre = (p + z²/2n) / (1 + z²/n),  half = z √(p(1−p)/n + z²/4n²) / (1 + z²/n)
    """
    if n <= 0 or not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} is no share")
    z = normal_quantile(0.5 + level / 2)
    p, spread = passed / n, z * z / n
    centre = (p + spread / 2) / (1 + spread)
    half = z * math.sqrt(p * (1 - p) / n + spread / (4 * n)) / (1 + spread)
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == n else min(1.0, centre + half)
    return Interval(low=low, high=high, method="Wilson")


def clopper_pearson(passed: int, n: int, *, level: float = 0.95) -> Interval:
    """The exact interval of a share: both binomial tails at least (1 − level)/2.

    Source: Clopper & Pearson 1934, ends by the beta distribution; covers at least `level` always,
    which Wilson's does on average.
    """
    if n <= 0 or not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} is no share")
    tail = (1 - level) / 2
    low = 0.0 if passed == 0 else beta_quantile(tail, passed, n - passed + 1)
    high = 1.0 if passed == n else beta_quantile(1 - tail, passed + 1, n - passed)
    return Interval(low=low, high=high, method="Clopper-Pearson")


def t_interval(values: Sequence[float] | Floats, *, level: float = 0.95) -> Interval | None:
    """x̄ ± t_{n−1} · s/√n with the sample deviation s; None for fewer than two values."""
    data = np.asarray(values, dtype=np.float64)
    n = len(data)
    if n < 2:
        return None
    half = t_quantile(0.5 + level / 2, n - 1) * float(data.std(ddof=1)) / math.sqrt(n)
    mean = float(data.mean())
    return Interval(low=mean - half, high=mean + half, method="t")


def bootstrap_interval(
    values: Sequence[float] | Floats, *, level: float = 0.95, seed: int = 0
) -> Interval:
    """The percentile interval of the bootstrap distribution of the mean; n ≥ 1."""
    found = bootstrap_mean(values, seed=seed)
    tail = (1 - level) / 2
    return Interval(low=found.quantile(tail), high=found.quantile(1 - tail), method=found.method)


def mean_interval(
    values: Sequence[float],
    *,
    level: float = 0.95,
    seed: int = 0,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Interval | None:
    """The interval of a mean that a table shows: Wilson for 0/1 scores, t below 100 values, else
    the bootstrap's. None where there is nothing to say (no value, or one that is not 0/1).

    `bounds` clips the t interval, which does not know the range of a score; None leaves it.
    """
    n = len(values)
    if n == 0:
        return None
    data = np.asarray(values, dtype=np.float64)
    if np.isin(data, (0.0, 1.0)).all():
        return wilson(int(data.sum()), n, level=level)
    if n >= SMALL:
        return bootstrap_interval(data, level=level, seed=seed)
    found = t_interval(data, level=level)
    if found is None or bounds is None:
        return found
    return Interval(low=max(bounds[0], found.low), high=min(bounds[1], found.high), method="t")
