"""Online A/B: stable user-level buckets and relative uplift (TR §6.4)."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from harness_cli.records.run import Interval
from harness_cli.stats.bootstrap import RESAMPLES, Floats


class Uplift(msgspec.Struct, frozen=True, kw_only=True):
    """The relative change of a per-user ratio metric, treatment against control."""

    control: float
    treatment: float
    uplift: float | None
    """treatment / control − 1; None when the control's ratio is 0."""
    interval: Interval | None
    users_control: int
    users_treatment: int


def bucket(user: str, salt: str) -> float:
    """sha256(salt ‖ user id) as a number in [0, 1): the same user always lands in one place.

    The first 53 bits, which a double holds without rounding up to 1.
    """
    head = hashlib.sha256((salt + user).encode()).digest()[:8]
    return float((int.from_bytes(head, "big") >> 11) / (1 << 53))


def assign(user: str, salt: str, shares: Mapping[str, float]) -> str | None:
    """The arm whose share of [0, 1) holds the user's bucket, in the order given; None beyond all.

    Raises ValueError when shares are negative or sum to more than 1.
    """
    if any(s < 0 for s in shares.values()) or sum(shares.values()) > 1 + 1e-9:
        raise ValueError("shares must be at least 0 and sum to at most 1")
    at, upto = bucket(user, salt), 0.0
    for arm, share in shares.items():
        upto += share
        if at < upto:
            return arm
    return None


def ratio_uplift(
    control: Sequence[tuple[float, float]],
    treatment: Sequence[tuple[float, float]],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Uplift:
    """Uplift of Σ numerator / Σ denominator over users, bootstrap over users within each arm.

    Each user is (numerator, denominator), e.g. (orders, 1) or (revenue, visits). Arms may differ
    in size. Raises ValueError for an arm without users or whose denominators sum to 0.
    """
    first, second = _arm(control, "control"), _arm(treatment, "treatment")
    base, other = _ratio(first), _ratio(second)
    rng = np.random.default_rng(seed)
    drawn_a = _resampled(first, rng, resamples)
    drawn_b = _resampled(second, rng, resamples)
    usable = np.isfinite(drawn_a) & np.isfinite(drawn_b) & (drawn_a > 0)
    interval = None
    if base > 0 and usable.any():
        tail = (1 - level) / 2
        ends = np.quantile(drawn_b[usable] / drawn_a[usable] - 1, (tail, 1 - tail))
        method = f"bootstrap over users {resamples:,}, seed {seed}"
        interval = Interval(low=float(ends[0]), high=float(ends[1]), method=method)
    return Uplift(
        control=base,
        treatment=other,
        uplift=other / base - 1 if base > 0 else None,
        interval=interval,
        users_control=len(first),
        users_treatment=len(second),
    )


def _arm(users: Sequence[tuple[float, float]], name: str) -> Floats:
    data = np.asarray(users, dtype=np.float64).reshape(-1, 2)
    if not len(data) or data[:, 1].sum() <= 0:
        raise ValueError(f"the {name} arm has nothing to divide by")
    return data


def _ratio(users: Floats) -> float:
    return float(users[:, 0].sum() / users[:, 1].sum())


def _resampled(users: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Ratios of `resamples` draws of the arm's users, in blocks of about a million indices."""
    ratios = np.empty(resamples)
    block = max(1, 1_000_000 // len(users))
    for start in range(0, resamples, block):
        stop = min(resamples, start + block)
        rows = rng.integers(0, len(users), size=(stop - start, len(users)), dtype=np.int32)
        sums = users[rows].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[start:stop] = sums[:, 0] / sums[:, 1]
    return ratios
