"""An online A/B test in numbers: arm sizes, sample ratio, relative uplift of per-user metrics."""

from collections.abc import Mapping

import msgspec
import numpy as np

from harness_cli.errors import UsageError
from harness_cli.evaluation.ab.users import Users
from harness_cli.evaluation.comparison_text import chance
from harness_cli.stats.bootstrap import RESAMPLES
from harness_cli.stats.online import SampleRatio, Uplift, assign, ratio_uplift, sample_ratio

ENOUGH = 100
"""Users an arm needs before its interval is read (choice): the percentile bootstrap is too narrow
for fewer."""
COLUMNS = ("metric", "arm", "control", "treatment", "uplift %", "95 % interval", "reading")


class MetricUplift(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one arm against the control."""

    metric: str
    kind: str
    """mean: per user; ratio: of sums; share: of users."""
    arm: str
    uplift: Uplift
    reading: str
    """up, down, no difference seen, too few, undefined."""


class AbReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the experiment says."""

    schema: int = 1
    users: int
    control: str
    arms: dict[str, int]
    sample_ratio: SampleRatio | None
    """None where the shares were not given."""
    misplaced: int | None
    """Users in another arm than their bucket says; None without a salt."""
    metrics: tuple[MetricUplift, ...]
    resamples: int
    seed: int


def ab_report(
    users: Users,
    *,
    shares: Mapping[str, float] | None = None,
    salt: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> AbReport:
    """The report of one table of users. Raises `UsageError` for shares of other arms, a salt
    without shares, or a ratio whose denominator is 0 over an arm."""
    sizes = users.sizes()
    ratio = None
    if shares:
        if set(shares) != set(sizes):
            raise UsageError(
                f"the users are in the arms {_listed(sizes)}, shares are given for "
                f"{_listed(shares)}",
                hint="--arm NAME=SHARE for every arm",
            )
        ratio = sample_ratio(sizes, shares)
    elif salt is not None:
        raise UsageError("--salt needs the shares", hint="--arm NAME=SHARE in the order assigned")
    return AbReport(
        users=len(users.ids),
        control=users.arms[0],
        arms=sizes,
        sample_ratio=ratio,
        misplaced=_misplaced(users, salt, shares) if salt is not None and shares else None,
        metrics=tuple(_uplifts(users, seed=seed, resamples=resamples)),
        resamples=resamples,
        seed=seed,
    )


def _uplifts(users: Users, *, seed: int, resamples: int) -> list[MetricUplift]:
    found = []
    for metric in users.metrics:
        rows = metric.rows(users.columns)
        control = rows[users.arm == 0]
        for at, arm in enumerate(users.arms[1:], 1):
            try:
                uplift = ratio_uplift(
                    control, rows[users.arm == at], seed=seed, resamples=resamples
                )
            except ValueError as exc:
                raise UsageError(f"`{metric.name}`: {exc}") from exc
            found.append(
                MetricUplift(
                    metric=metric.name,
                    kind=metric.kind,
                    arm=arm,
                    uplift=uplift,
                    reading=_reading(uplift),
                )
            )
    return found


def _reading(found: Uplift) -> str:
    if found.uplift is None or found.interval is None:
        return "undefined"
    if min(found.users_control, found.users_treatment) < ENOUGH:
        return "too few"
    if found.interval.low > 0:
        return "up"
    return "down" if found.interval.high < 0 else "no difference seen"


def _misplaced(users: Users, salt: str, shares: Mapping[str, float]) -> int:
    names = np.asarray(users.arms, dtype=object)[users.arm]
    return sum(
        assign(user, salt, shares) != arm for user, arm in zip(users.ids, names, strict=True)
    )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def rows(report: AbReport) -> list[tuple[str, ...]]:
    """One row a metric and arm."""
    return [
        (
            m.metric, m.arm, f"{m.uplift.control:.6g}", f"{m.uplift.treatment:.6g}",
            "–" if m.uplift.uplift is None else f"{100 * m.uplift.uplift:+.2f}",
            _ends(m.uplift), m.reading,
        )
        for m in report.metrics
    ]  # fmt: skip


def _ends(found: Uplift) -> str:
    if found.interval is None:
        return "–"
    return f"{100 * found.interval.low:+.2f} … {100 * found.interval.high:+.2f}"


def remarks(report: AbReport) -> list[str]:
    """Arm sizes, the sample ratio, what the table must not be taken for."""
    sizes = [f"{name} {n:,} ({100 * n / report.users:.2f} %)" for name, n in report.arms.items()]
    found = [f"{report.users:,} users: {', '.join(sizes)}; control is {report.control}"]
    ratio = report.sample_ratio
    if ratio is None:
        found.append("sample ratio not checked: --arm NAME=SHARE for every arm")
    elif ratio.mismatch:
        found.append(
            f"SAMPLE RATIO MISMATCH: χ² {ratio.chi2:.1f}, p {chance(ratio.p)}: users are lost or "
            "counted unevenly; find out where before any of these numbers is read"
        )
    else:
        found.append(f"sample ratio as it should be: χ² {ratio.chi2:.2f}, p {chance(ratio.p)}")
    if report.misplaced is not None:
        found.append(f"{report.misplaced:,} users in another arm than their bucket says")
    if len(report.metrics) > 1:
        found.append(
            f"{len(report.metrics)} intervals, each 95 % for itself: one in twenty misses by chance"
        )
    return found
