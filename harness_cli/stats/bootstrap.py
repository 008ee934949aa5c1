"""The bootstrap distribution of a mean: exact by FFT on a lattice, seeded by resampling off it.

Resampling n items with replacement and adding them up is an n-fold convolution of the empirical
distribution. Scores of an evaluation sit on a lattice (−1, −½, 0, ½, 1 and the like), so that the
distribution has at most n·(levels − 1) + 1 points, and one FFT gives all of it: no seed and no
Monte Carlo error (METHODS §3; TR App. E.4 resamples 10,000 times).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_DENOMINATOR = 5040
"""Finest lattice that is looked for: averages over up to ten repeats of half points lie on it."""
MAX_POINTS = 1 << 22
RESAMPLES = 10_000
FEW_VALUES = 64
"""Up to so many distinct values a resample is drawn as counts of them."""
_REACH = 4.9
"""The sum of n draws from a range R is within 4.9·R·√n of its mean but for 2·exp(-2·4.9²) = 3e-21
of its mass (Hoeffding 1963, theorem 2): nothing beyond is computed."""
_LOG_LOST = -45.0
"""A frequency whose n-th power is below e^-45 = 3e-20 is left out: 1e-6 of what rounding takes."""
_ROUNDING = 1e-12
"""Mass below this is rounding noise of the FFT (measured: 1e-14 at n = 1,000, 1e-12 at 100,000)."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """A discrete distribution: `mass[i]` at `values[i]`, values ascending."""

    values: Floats
    mass: Floats
    method: str
    """`exact bootstrap` or `bootstrap 10,000, seed 0`."""

    def quantile(self, q: float) -> float:
        """The smallest value whose cumulative mass reaches q (the inverse of the CDF)."""
        cumulative = np.cumsum(self.mass)
        at = int(np.searchsorted(cumulative, q - _ROUNDING))
        return float(self.values[min(at, len(self.values) - 1)])

    def at_most(self, bound: float) -> float:
        """P(X ≤ bound); a value within 1e-9 of the bound counts as equal to it."""
        upto = int(np.searchsorted(self.values, bound + 1e-9, side="right"))
        return float(min(1.0, max(0.0, self.mass[:upto].sum())))


def lattice_step(values: Sequence[float] | Floats) -> float | None:
    """The widest step s with every value at min + k·s, or None when there is no fine one.

    A single distinct value has step 1.
    """
    return _step(np.unique(np.asarray(values, dtype=np.float64)))


def _step(distinct: Floats) -> float | None:
    if len(distinct) > MAX_DENOMINATOR:
        return None
    offsets: list[Fraction] = []
    common = 1
    for value in distinct - distinct[0]:
        offset = Fraction(float(value)).limit_denominator(MAX_DENOMINATOR)
        if abs(float(offset) - value) > 1e-9:
            return None
        offsets.append(offset)
        common = math.lcm(common, offset.denominator)
        if common > MAX_DENOMINATOR:
            return None
    whole = math.gcd(*(int(offset * common) for offset in offsets))
    return whole / common if whole else 1.0


def exact_mean(values: Sequence[float] | Floats) -> Distribution | None:
    """The exact bootstrap distribution of the mean of n values; None off the lattice.

    The n-th power of the characteristic function, by one real FFT.
    """
    data = np.asarray(values, dtype=np.float64)
    n = len(data)
    if n == 0:
        return None
    distinct, counts = np.unique(data, return_counts=True)
    step = _step(distinct)
    if step is None:
        return None
    index = np.rint((distinct - distinct[0]) / step).astype(np.int64)
    points = int(n * index[-1] + 1)
    if points > MAX_POINTS:
        return None
    one = np.zeros(int(index[-1]) + 1)
    np.add.at(one, index, counts / n)
    first, mass = _power(one, n)
    support = distinct[0] + step * np.arange(first, first + len(mass)) / n
    return Distribution(support, mass, "exact bootstrap")


def _power(one: Floats, n: int) -> tuple[int, Floats]:
    """The n-fold convolution of `one` where it has mass, and the first point of that window.

    Powers of an FFT convolve in a circle, so a window that holds all mass is all it has to hold.
    """
    width = len(one) - 1
    mean, reach = n * float(one @ np.arange(width + 1)), _REACH * width * math.sqrt(n)
    first = max(0, math.floor(mean - reach))
    points = min(n * width, math.ceil(mean + reach)) - first + 1
    size = _size(points)
    transformed = np.fft.rfft(one, size)
    # Few frequencies are left of the n-th power, and a complex power is what takes long.
    left = np.flatnonzero(np.abs(transformed) > math.exp(_LOG_LOST / n))
    powers = np.zeros_like(transformed)
    powers[left] = transformed[left] ** n
    circle = np.asarray(np.fft.irfft(powers, size), dtype=np.float64)
    mass = np.roll(circle, -(first % size))[:points]
    np.clip(mass, 0.0, None, out=mass)
    mass /= mass.sum()
    return first, mass


def _size(points: int) -> int:
    """The least m·2^k ≥ points with m = 4 … 7: an FFT of it is as fast as one of a power of two."""
    unit = 1 << max(0, points.bit_length() - 3)
    return max(4, -(-points // unit)) * unit


def resampled_mean(
    values: Sequence[float] | Floats, *, seed: int = 0, resamples: int = RESAMPLES
) -> Distribution:
    """The bootstrap distribution of the mean by seeded resampling (TR App. E.4).

    Few distinct values are drawn as multinomial counts, which is the same law in a tenth of the
    time; else in blocks of about a million indices: memory stays below 16 MB at any n.
    """
    data = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    distinct, counts = np.unique(data, return_counts=True)
    if len(distinct) <= FEW_VALUES:
        drawn = rng.multinomial(len(data), counts / len(data), size=resamples)
        means = drawn @ distinct / len(data)
    else:
        means = _drawn_means(data, rng, resamples)
    means.sort()
    mass = np.full(resamples, 1.0 / resamples)
    return Distribution(means, mass, f"bootstrap {resamples:,}, seed {seed}")


def _drawn_means(data: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    means = np.empty(resamples)
    block = max(1, 1_000_000 // max(1, len(data)))
    for start in range(0, resamples, block):
        stop = min(resamples, start + block)
        drawn = rng.integers(0, len(data), size=(stop - start, len(data)), dtype=np.int32)
        means[start:stop] = data[drawn].mean(axis=1)
    return means


def bootstrap_mean(values: Sequence[float] | Floats, *, seed: int = 0) -> Distribution:
    """The exact distribution where the values sit on a lattice, the seeded one elsewhere."""
    return exact_mean(values) or resampled_mean(values, seed=seed)
