"""Exact tests of two outcomes: the binomial test and blind preference."""

import msgspec

from harness_cli.records.run import Interval
from harness_cli.stats.distributions import binomial_pmf
from harness_cli.stats.intervals import wilson


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """A blind comparison: wins of two sides, ties shown and left out of the test."""

    wins: int
    losses: int
    ties: int
    win_rate: float | None
    """wins / (wins + losses); None when every pair tied."""
    interval: Interval | None
    p: float


def binomial_p(k: int, n: int, p: float = 0.5) -> float:
    """Two-sided exact binomial p: the mass of every outcome no likelier than k.

    Equals the doubled tail at p = ½. 35 of 36 gives 1.1e-9 (TR §5.6).
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count")
    seen = binomial_pmf(k, n, p)
    # 1e-7: outcomes as likely as the seen one must not be lost to rounding (R's binom.test).
    masses = (binomial_pmf(i, n, p) for i in range(n + 1))
    return min(1.0, sum(m for m in masses if m <= seen * (1 + 1e-7)))


def preference(wins: int, losses: int, ties: int = 0) -> Preference:
    """The non-tie win rate with its Wilson interval and the exact two-sided p (TR §5.6)."""
    clear = wins + losses
    return Preference(
        wins=wins,
        losses=losses,
        ties=ties,
        win_rate=wins / clear if clear else None,
        interval=wilson(wins, clear) if clear else None,
        p=binomial_p(wins, clear) if clear else 1.0,
    )
