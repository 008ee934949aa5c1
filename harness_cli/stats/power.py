"""Before spending: what difference a paired comparison can see, and the n it would need.

All formulas are the normal approximation of the paired z test: the mean of n differences has
standard error sd/√n (METHODS §3, "before spending").
"""

import math

import msgspec

from harness_cli.stats.distributions import normal_cdf, normal_quantile


class Detectable(msgspec.Struct, frozen=True, kw_only=True):
    """What n pairs can decide."""

    n: int
    sd: float
    difference: float
    """The smallest true difference seen with the given power."""
    alpha: float
    power: float


def difference_sd(tie_rate: float, step: float = 1.0) -> float:
    """Deviation of differences that are 0 with `tie_rate` and ±`step` otherwise, mean 0.

    sd = step · √(1 − tie rate): what a tie rate alone says; an A/A run measures it directly.
    """
    if not 0 <= tie_rate <= 1:
        raise ValueError(f"a tie rate of {tie_rate} is no share")
    return step * math.sqrt(1 - tie_rate)


def minimum_detectable(
    n: int, sd: float, *, alpha: float = 0.05, power: float = 0.8
) -> Detectable | None:
    """MDE = (z_{1−α/2} + z_{power}) · sd/√n; None without pairs."""
    if n <= 0:
        return None
    z = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    return Detectable(n=n, sd=sd, difference=z * sd / math.sqrt(n), alpha=alpha, power=power)


def items_needed(
    difference: float, sd: float, *, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """n = ⌈((z_{1−α/2} + z_{power}) · sd / difference)²⌉; None for a difference of 0."""
    if difference == 0:
        return None
    z = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    return max(1, math.ceil((z * sd / difference) ** 2))


def power_of(n: int, sd: float, difference: float, *, alpha: float = 0.05) -> float:
    """Probability that a two-sided test at `alpha` sees a true `difference` with n pairs."""
    if sd == 0:
        return float(difference != 0)
    z = normal_quantile(1 - alpha / 2)
    shift = abs(difference) * math.sqrt(n) / sd
    return normal_cdf(shift - z) + normal_cdf(-shift - z)


def noninferiority_power(
    n: int, sd: float, margin: float, difference: float = 0.0, *, level: float = 0.95
) -> float:
    """Probability that the lower end of the interval lies above −margin at a true `difference`.

    Φ((difference + margin)·√n/sd − z_{(1+level)/2}): the chance that a regression gate passes.
    """
    if sd == 0:
        return float(difference > -margin)
    z = normal_quantile(0.5 + level / 2)
    return normal_cdf((difference + margin) * math.sqrt(n) / sd - z)


def can_pass(n: int, sd: float, margin: float, *, level: float = 0.95) -> bool:
    """Whether a gate "not worse than −margin" passes at all with an observed difference of 0."""
    if n <= 0:
        return False
    return normal_quantile(0.5 + level / 2) * sd / math.sqrt(n) < margin


def gate_items_needed(
    sd: float, margin: float, *, difference: float = 0.0, power: float = 0.8, level: float = 0.95
) -> int | None:
    """The n at which a non-inferiority gate passes with `power`; None when no n suffices."""
    room = difference + margin
    if room <= 0:
        return None
    z = normal_quantile(0.5 + level / 2) + normal_quantile(power)
    return max(1, math.ceil((z * sd / room) ** 2))


def attainable_p(changed: float, comparisons: int = 1) -> float:
    """The least two-sided p that `changed` items can give: all of them go one way.

    2^(1 − d) of the sign test and of McNemar's exact test, times `comparisons` for the first step
    of Holm's. `changed` may be an expectation, n · (1 − tie rate): whole items are counted.
    """
    whole = math.floor(changed + 1e-9)
    return 1.0 if whole < 1 else min(1.0, comparisons * 2.0 ** (1 - whole))


def changed_needed(alpha: float = 0.05, comparisons: int = 1) -> int:
    """How many items must change, all one way, before any p below `alpha` is possible.

    d = 1 + ⌈log₂(comparisons / alpha)⌉: 6 for 0.05. A run whose expected changes are fewer cannot
    be significant whatever comes of it.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"a level of {alpha} is no chance")
    return 1 + max(0, math.ceil(math.log2(comparisons / alpha) - 1e-12))
