"""The A/A noise floor: what two runs of one and the same thing differ by (METHODS §3)."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from harness_cli.records.noise import MetricNoise
from harness_cli.records.run import Interval
from harness_cli.stats.bootstrap import Distribution, lattice_step
from harness_cli.stats.clustered import variance_components
from harness_cli.stats.distributions import normal_quantile
from harness_cli.stats.power import attainable_p, minimum_detectable

MOST_WORK = 10_000_000
"""Points of the lattice times distinct items: beyond, the normal interval stands in for the exact
one, whose last digit would cost seconds."""


def noise_of(metric: str, items: Sequence[Sequence[float]]) -> MetricNoise | None:
    """The noise of one metric; `items` holds each item's score in every run that scored it.

    None when no item was scored twice. The interval is exact where scores lie on a lattice.
    """
    twice = [tuple(values) for values in items if len(values) > 1]
    if not twice:
        return None
    within, between = variance_components(twice)
    sd = math.sqrt(2 * (within or 0.0))
    n = len(twice)
    ties = sum(_tie_rate(values) for values in twice) / n
    found = minimum_detectable(n, sd)
    return MetricNoise(
        metric=metric,
        items=n,
        runs=max(len(values) for values in twice),
        mean=sum(sum(v) / len(v) for v in twice) / n,
        within=within or 0.0,
        between=between,
        tie_rate=ties,
        sd=sd,
        interval=noise_interval(twice, sd),
        detectable=None if found is None else max(found.difference, 1 / n),
        attainable_p=attainable_p(n * (1 - ties)),
    )


def _tie_rate(values: Sequence[float]) -> float:
    """Share of pairs of an item's runs with equal scores."""
    pairs = list(combinations(values, 2))
    return sum(abs(a - b) <= 1e-9 for a, b in pairs) / len(pairs)


def noise_interval(items: Sequence[Sequence[float]], sd: float) -> Interval:
    """±c with P(|Δ| ≤ c) ≥ 0.95 for the mean difference Δ of two runs of the same thing."""
    found = exchanged(items)
    if found is None:
        half = normal_quantile(0.975) * sd / math.sqrt(len(items))
        return Interval(low=-half, high=half, method="normal")
    half = max(0.0, found.quantile(0.975))
    return Interval(low=-half, high=half, method=found.method)


def exchanged(items: Sequence[Sequence[float]]) -> Distribution | None:
    """The exact distribution of the mean difference when two of each item's runs are drawn.

    An item's difference takes xᵢ − xⱼ for every ordered pair i ≠ j of its runs; the sum over items
    is one product of characteristic functions Π φ(θ), φ = mean of cos((xᵢ − xⱼ)θ). With two runs
    it is the distribution of the sign-flip test. None off the lattice.
    """
    gaps = Counter(
        tuple(sorted(abs(a - b) for a, b in combinations(values, 2))) for values in items
    )
    distinct = sorted({round(g, 9) for shape in gaps for g in shape} | {0.0})
    step = lattice_step(distinct)
    if step is None or not items:
        return None
    reach = sum(round(max(shape) / step) * count for shape, count in gaps.items())
    if (2 * reach + 1) * len(gaps) > MOST_WORK:
        return None
    n = len(items)
    size = 1 << max(1, (2 * reach).bit_length())
    theta = 2 * np.pi * np.arange(size // 2 + 1) / size
    transform = np.ones(len(theta))
    for shape, count in gaps.items():
        one = sum(np.cos(round(gap / step) * theta) for gap in shape) / len(shape)
        transform *= one**count
    mass = np.clip(np.fft.irfft(transform, size), 0.0, None)
    # Index size − k holds the sum −k.
    mass = np.concatenate([mass[size - reach :], mass[: reach + 1]]) if reach else mass[:1]
    support = np.arange(-reach, reach + 1) * step / n
    return Distribution(support, mass / mass.sum(), "exact, runs exchanged within items")
