"""Two runs on the same items: the mean difference, its interval, and tests of no difference."""

from collections.abc import Sequence

import msgspec
import numpy as np

from harness_cli.records.run import Interval
from harness_cli.stats.binary import binomial_p
from harness_cli.stats.bootstrap import (
    MAX_POINTS,
    Floats,
    bootstrap_mean,
    lattice_step,
    resampled_mean,
)
from harness_cli.stats.intervals import SMALL, t_interval

_SAME = 1e-9


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of n paired differences b − a. No pair at all leaves every number None."""

    n: int
    mean: float | None
    low: float | None
    high: float | None
    p_le_0: float | None
    """P_boot(Δ ≤ 0): the mass of the bootstrap distribution at or below 0 (TR Table 15)."""
    method: str
    t: Interval | None = None
    """The t interval, shown beside the bootstrap's below 100 pairs."""
    sd: float | None = None
    """Sample deviation of the differences."""
    better: int = 0
    worse: int = 0
    ties: int = 0

    @property
    def tie_rate(self) -> float | None:
        """Share of pairs without a difference."""
        return self.ties / self.n if self.n else None


class McNemar(msgspec.Struct, frozen=True, kw_only=True):
    """Discordant pairs of two binary runs and the exact two-sided p."""

    gained: int
    """0 in a, 1 in b."""
    lost: int
    """1 in a, 0 in b."""
    p: float


def paired(
    diffs: Sequence[float] | Floats,
    *,
    level: float = 0.95,
    seed: int = 0,
    resamples: int | None = None,
) -> Paired:
    """The paired bootstrap of TR App. E.4 on item-wise differences b − a.

    Items are resampled and pairs stay together, which is what working on differences means. The
    distribution is exact on a lattice, the 10,000-resample form with `seed` off it; `resamples`
    asks for the seeded form wherever the values lie, as the report made its Table 15.
    """
    data = np.asarray(diffs, dtype=np.float64)
    n = len(data)
    if n == 0:
        return Paired(n=0, mean=None, low=None, high=None, p_le_0=None, method="no pairs")
    found = (
        bootstrap_mean(data, seed=seed)
        if resamples is None
        else resampled_mean(data, seed=seed, resamples=resamples)
    )
    tail = (1 - level) / 2
    return Paired(
        n=n,
        mean=float(data.mean()),
        low=found.quantile(tail),
        high=found.quantile(1 - tail),
        p_le_0=found.at_most(0.0),
        method=found.method,
        t=t_interval(data, level=level) if n < SMALL else None,
        sd=float(data.std(ddof=1)) if n > 1 else None,
        better=int((data > _SAME).sum()),
        worse=int((data < -_SAME).sum()),
        ties=int((np.abs(data) <= _SAME).sum()),
    )


def mcnemar(a: Sequence[float], b: Sequence[float]) -> McNemar:
    """McNemar's exact test: under no difference, gained ~ Binomial(gained + lost, ½).

    Source: McNemar 1947; the exact conditional form. Raises ValueError for scores other than 0/1.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"{len(first)} and {len(second)} scores are no pairs")
    if not (np.isin(first, (0, 1)).all() and np.isin(second, (0, 1)).all()):
        raise ValueError("McNemar's test needs scores of 0 and 1")
    gained = int(((first == 0) & (second == 1)).sum())
    lost = int(((first == 1) & (second == 0)).sum())
    return McNemar(gained=gained, lost=lost, p=binomial_p(gained, gained + lost))


def sign_flip_p(diffs: Sequence[float] | Floats, *, seed: int = 0) -> float:
    """Two-sided p of "no difference" when each item's two runs may be exchanged (Fisher 1935).

    p = P(|Σ ±dᵢ| ≥ |Σ dᵢ|) over all sign patterns: exact on a lattice by one FFT of Π cos(dᵢθ),
    by 10,000 seeded draws off it, with the observed pattern counted. On differences of ±1 it is
    McNemar's exact p.
    """
    data = np.abs(np.asarray(diffs, dtype=np.float64))
    total = abs(float(np.sum(diffs)))
    data = data[data > _SAME]
    if not len(data):
        return 1.0
    step = lattice_step(np.concatenate([data, [0.0]]))
    if step is not None and 2 * data.sum() / step < MAX_POINTS:
        return _exact_flip(data, step, total)
    rng = np.random.default_rng(seed)
    hits, draws = 1, 10_000
    for _ in range(draws):
        signs = rng.integers(0, 2, size=len(data)) * 2 - 1
        hits += abs(float(signs @ data)) >= total - _SAME
    return hits / (draws + 1)


def _exact_flip(data: Floats, step: float, total: float) -> float:
    """Mass of |S| ≥ total for S = Σ ±dᵢ; S has period 2·reach + 1 points of the lattice."""
    sizes, counts = np.unique(np.rint(data / step).astype(np.int64), return_counts=True)
    reach = int(sizes @ counts)
    size = 1 << (2 * reach).bit_length()
    theta = 2 * np.pi * np.arange(size // 2 + 1) / size
    transform = np.ones(len(theta))
    for magnitude, count in zip(sizes, counts, strict=True):
        transform *= np.cos(magnitude * theta) ** count
    mass = np.clip(np.fft.irfft(transform, size), 0.0, None)
    at = round(total / step)
    if at == 0:
        return 1.0
    # Index k is the sum k, index size − k the sum −k; the two tails are alike.
    return float(min(1.0, 2 * mass[at : reach + 1].sum()))
