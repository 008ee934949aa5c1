"""Dates of a release: a clock that was set back must not reorder what is on record."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import msgspec

from harness_cli.errors import Stale
from harness_cli.records.gates import Gate
from harness_cli.records.manifest import Approval, Channel, Manifest, Predicate
from harness_cli.release.checks import Check

SLACK = timedelta(minutes=5)
"""What clocks of two machines may differ by before it is called a wrong order (choice)."""


def moment(text: str) -> datetime | None:
    """An instant, or None where the text is none (hand-made records have such)."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def now() -> str:
    """This second, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age_days(began: str, at: str) -> float | None:
    """Days from one instant to another; None where either is none."""
    one, two = moment(began), moment(at)
    return None if one is None or two is None else (two - one) / timedelta(days=1)


def too_old(gate: Gate, began: str, at: str) -> bool:
    """Whether evidence of that day is older than a gate takes. An unknown day is too old."""
    if gate.max_age_days is msgspec.UNSET:
        return False
    age = age_days(began, at)
    return age is None or age > gate.max_age_days


def later(a: str, b: str) -> bool:
    """Whether `a` lies after `b` by more than the slack."""
    one, two = moment(a), moment(b)
    return one is not None and two is not None and one - two > SLACK


def refuse_clock(
    at: str, channel: Channel, manifests: Iterable[Manifest], approvals: Iterable[Approval] = ()
) -> None:
    """Raise `Stale` where this instant lies before what is on record already."""
    known = [
        *((e.at, f"the last switch of `{channel.name}`") for e in channel.history),
        *((m.predicate.created, f"manifest `{m.predicate.id}`") for m in manifests),
        *((a.at, f"the approval by {a.by}") for a in approvals),
    ]
    for when, what in known:
        if later(when, at):
            raise Stale(
                f"the clock stands at {at}, before {what} of {when}",
                hint="set the clock right; the order of releases is read from it",
            )


def check_dates(bound: Predicate, incumbent: Predicate | None, now: str) -> Check:
    """Runs, then approvals, then the manifest, after its incumbent, and none of it to come."""
    what = "dates"
    rows = [
        *(
            (r.started, bound.created, f"run `{r.run}` began after the manifest")
            for r in bound.evidence
        ),
        *((a.at, bound.created, f"{a.by} approved after the manifest") for a in bound.approvals),
        (bound.created, now, "the manifest is of a day to come"),
    ]
    if incumbent is not None:
        rows.append((incumbent.created, bound.created, "the incumbent is newer than the manifest"))
    wrong = [told for first, second, told in rows if first and later(first, second)]
    return Check(what, "wrong" if wrong else "verified", "; ".join(wrong[:3]) or bound.created)
