"""Online A/B: stable user-level buckets, the sample-ratio check, relative uplift (TR §6.4)."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from harness_cli.records.run import Interval
from harness_cli.stats.bootstrap import RESAMPLES, Floats
from harness_cli.stats.distributions import chi2_sf
from harness_cli.stats.resampled_sums import cells_of

SRM_ALPHA = 0.001
"""A sample ratio less likely than this is a fault of the experiment (**choice**)."""


class Uplift(msgspec.Struct, frozen=True, kw_only=True):
    """The relative change of a per-user ratio metric, treatment against control."""

    control: float
    treatment: float
    uplift: float | None
    """treatment / control − 1; None when the control's ratio is 0."""
    interval: Interval | None
    """None too for an arm of one user, whose resamples are all alike."""
    users_control: int
    users_treatment: int


class SampleRatio(msgspec.Struct, frozen=True, kw_only=True):
    """Arm sizes against the shares they were given."""

    observed: dict[str, int]
    expected: dict[str, float]
    """Users an arm should hold of those that are there."""
    chi2: float
    p: float
    mismatch: bool
    """p < 0.001: users are lost or counted unevenly, so that no metric can be read."""


def bucket(user: str, salt: str) -> float:
    """sha256(salt ‖ user id) as a number in [0, 1): the same user always lands in one place.

    The first 53 bits, which a double holds without rounding up to 1.
    """
    head = hashlib.sha256((salt + user).encode()).digest()[:8]
    return float((int.from_bytes(head, "big") >> 11) / (1 << 53))


def checked_shares(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """Arm and the end of its part of [0, 1), in the order given.

    Raises ValueError when shares are negative, no numbers, or sum to more than 1.
    """
    if not all(0 <= s <= 1 for s in shares.values()) or sum(shares.values()) > 1 + 1e-9:
        raise ValueError("shares must be at least 0 and sum to at most 1")
    ends, upto = [], 0.0
    for arm, share in shares.items():
        upto += share
        ends.append((arm, upto))
    if abs(upto - 1) < 1e-9 and ends:  # 0.1 + 0.9 or three thirds must leave nobody out
        ends[-1] = (ends[-1][0], 1.0)
    return ends


def arm_at(place: float, ends: Sequence[tuple[str, float]]) -> str | None:
    """The arm whose part of [0, 1) holds a bucket; None beyond all."""
    for arm, end in ends:
        if place < end:
            return arm
    return None


def assign(user: str, salt: str, shares: Mapping[str, float]) -> str | None:
    """The arm whose share of [0, 1) holds the user's bucket, in the order given; None beyond all.

    Raises ValueError when shares are negative or sum to more than 1.
    """
    return arm_at(bucket(user, salt), checked_shares(shares))


def sample_ratio(observed: Mapping[str, int], shares: Mapping[str, float]) -> SampleRatio:
    """Pearson's χ² of arm sizes against their shares, df = arms − 1.

    Shares are those of the arms at hand, scaled to 1. TR §6.4's 678,598 and 75,754 users at 9 : 1
    give p = 0.22. Raises ValueError for other arms or an arm that was given nothing.
    """
    if set(observed) != set(shares):
        raise ValueError(f"arms {sorted(observed)} have users, {sorted(shares)} have shares")
    total, whole = sum(observed.values()), sum(shares.values())
    if min(shares.values(), default=0) <= 0 or total == 0:
        raise ValueError("every arm needs a share above 0, and users")
    expected = {arm: total * shares[arm] / whole for arm in observed}
    chi2 = sum((observed[arm] - expected[arm]) ** 2 / expected[arm] for arm in observed)
    p = chi2_sf(chi2, len(observed) - 1) if len(observed) > 1 else 1.0
    return SampleRatio(
        observed=dict(observed), expected=expected, chi2=chi2, p=p, mismatch=p < SRM_ALPHA
    )


def ratio_uplift(
    control: Sequence[tuple[float, float]] | Floats,
    treatment: Sequence[tuple[float, float]] | Floats,
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
    interval = None
    if base > 0 and min(len(first), len(second)) > 1:
        interval = _interval(first, second, seed=seed, resamples=resamples, level=level)
    return Uplift(
        control=base,
        treatment=other,
        uplift=other / base - 1 if base > 0 else None,
        interval=interval,
        users_control=len(first),
        users_treatment=len(second),
    )


def _interval(
    first: Floats, second: Floats, *, seed: int, resamples: int, level: float
) -> Interval | None:
    """The percentile interval of the uplift; None when no resample of the control has a base."""
    rng = np.random.default_rng(seed)
    drawn_a, exact_a = _resampled(first, rng, resamples)
    drawn_b, exact_b = _resampled(second, rng, resamples)
    usable = np.isfinite(drawn_a) & np.isfinite(drawn_b) & (drawn_a > 0)
    if not usable.any():
        return None
    tail = (1 - level) / 2
    ends = np.quantile(drawn_b[usable] / drawn_a[usable] - 1, (tail, 1 - tail))
    merged = "" if exact_a and exact_b else ", users in cells"
    method = f"bootstrap over users {resamples:,}, seed {seed}{merged}"
    return Interval(low=float(ends[0]), high=float(ends[1]), method=method)


def _arm(users: Sequence[tuple[float, float]] | Floats, name: str) -> Floats:
    data = np.asarray(users, dtype=np.float64).reshape(-1, 2)
    if not len(data) or data[:, 1].sum() <= 0:
        raise ValueError(f"the {name} arm has nothing to divide by")
    return data


def _ratio(users: Floats) -> float:
    return float(users[:, 0].sum() / users[:, 1].sum())


def _resampled(users: Floats, rng: np.random.Generator, resamples: int) -> tuple[Floats, bool]:
    """Ratios of `resamples` draws of the arm's users, and whether no users were merged.

    A constant denominator (one per user) stays what it is in every resample, and is left out.
    """
    constant = bool((users[:, 1] == users[0, 1]).all())
    cells = cells_of(users[:, :1] if constant else users)
    sums = cells.sums(rng, resamples)
    below = users[0, 1] * len(users) if constant else sums[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sums[:, 0] / below), cells.exact
