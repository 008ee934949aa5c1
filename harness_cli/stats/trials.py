"""Repeated trials and repeated runs: pass^k, spread, significance in σ (T2)."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Two sets of run-level scores. Deviations are sample ones (n − 1)."""

    mean_a: float
    mean_b: float
    sd_a: float
    sd_b: float
    delta: float
    """b − a of the raw means."""
    delta_rounded: float
    """b − a of the means as a table prints them: T2 subtracts these (0.7 and 4.7 for 0.6, 4.8)."""
    sigma_combined: float
    significance: float | None
    """delta / sigma_combined; None when neither side varies."""
    reading: str


def mean_sd(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; the deviation of one value is 0."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def spread(a: Sequence[float], b: Sequence[float], *, digits: int = 1) -> Spread:
    """σ_combined = √(σ_a² + σ_b²), significance = Δ/σ_combined (T2, "Evaluation Details")."""
    mean_a, sd_a = mean_sd(a)
    mean_b, sd_b = mean_sd(b)
    sigma = math.hypot(sd_a, sd_b)
    delta = mean_b - mean_a
    significance = delta / sigma if sigma else None
    return Spread(
        mean_a=mean_a,
        mean_b=mean_b,
        sd_a=sd_a,
        sd_b=sd_b,
        delta=delta,
        delta_rounded=round(round(mean_b, digits) - round(mean_a, digits), digits),
        sigma_combined=sigma,
        significance=significance,
        reading=sigma_reading(significance),
    )


def sigma_table(
    a: Sequence[Mapping[str, float]],
    b: Sequence[Mapping[str, float]],
    *,
    digits: int = 1,
    overall: str = "overall",
) -> dict[str, Spread]:
    """T2's table: one `Spread` a domain, and one of each run's average over its domains.

    A run is domain → score; the average is taken within a run first, so that its spread is that of
    whole runs. Raises ValueError when a run lacks a domain or a side has no run.
    """
    if not a or not b:
        raise ValueError("a side has no run")
    domains = list(a[0])
    for run in (*a, *b):
        if set(run) != set(domains):
            raise ValueError(f"a run covers {sorted(run)}, another {sorted(domains)}")
    table = {d: spread([r[d] for r in a], [r[d] for r in b], digits=digits) for d in domains}
    if len(domains) > 1:
        first, second = ([mean_sd(list(r.values()))[0] for r in runs] for runs in (a, b))
        table[overall] = spread(first, second, digits=digits)
    return table


def sigma_reading(significance: float | None) -> str:
    """T2's words for a difference in σ: > 3 definitive, > 2 significant, 1–2 suggestive."""
    if significance is None:
        return "undefined: no spread"
    size = abs(significance)
    if size > 3:
        return "definitive"
    if size > 2:
        return "significant"
    return "suggestive" if size >= 1 else "within random variation"


def pass_hat_k(trials: Iterable[tuple[int, int]], k: int) -> float | None:
    """pass^k = mean over items of C(c, k) / C(n, k), `trials` holding (n, c) of each item (T2).

    The chance that k trials all pass. None (undefined) when an item has n < k or there is none.
    """
    if k < 1:
        raise ValueError("k starts at 1")
    shares = []
    for n, c in trials:
        if not 0 <= c <= n:
            raise ValueError(f"{c} passes of {n} trials")
        if n < k:
            return None
        shares.append(math.comb(c, k) / math.comb(n, k))
    return math.fsum(shares) / len(shares) if shares else None
