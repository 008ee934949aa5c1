"""What guardrails caught and what had to be repaired, counted by version and by day."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.results import hooks_fired
from harness_cli.records.durations import seconds_of
from harness_cli.records.served import Served
from harness_cli.records.trajectory import Route, Trajectory
from harness_cli.store.runs import RunFolder
from harness_cli.store.served import BadLine, read_served

AXES = ("harness", "policy", "day")
"""What incidents may be counted by; a day is one of UTC."""
BAD_KEPT = 100
"""So many damaged lines are named; all of them are counted."""
Event = tuple[datetime | None, str, str, int, Counter[str]]
"""(when, harness, policy, rollouts, incidents)."""


@dataclass(frozen=True, slots=True)
class Span:
    """From `since` (included) to `until` (not included); None: open at that end."""

    since: datetime | None = None
    until: datetime | None = None

    def __contains__(self, when: datetime) -> bool:
        return (self.since is None or self.since <= when) and (
            self.until is None or when < self.until
        )


class IncidentRow(msgspec.Struct, frozen=True, kw_only=True):
    """How often one thing happened under one version (on one day)."""

    harness: str = ""
    policy: str = ""
    day: str = ""
    release: str = ""
    """The manifest that proves the version; empty where none does."""
    incident: str
    """Empty in the row of a version under which nothing happened."""
    count: int
    rollouts: int
    """Requests that this version (on this day) answered."""
    per_100: float


class Incidents(msgspec.Struct, frozen=True, kw_only=True):
    """`harness incidents`."""

    source: str
    """`served` or `runs`."""
    by: tuple[str, ...]
    since: str | None
    until: str | None
    rollouts: int
    incidents: tuple[IncidentRow, ...]
    bad_lines: int = 0
    bad: tuple[tuple[str, str], ...] = ()
    """(place, problem) of the first damaged lines."""


@dataclass(slots=True)
class Count:
    """Incidents and rollouts by key."""

    found: dict[tuple[str, ...], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    rollouts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    bad: list[BadLine] = field(default_factory=list)
    bad_lines: int = 0

    def add(self, event: Event, by: Sequence[str]) -> None:
        """One rollout, or all of one run."""
        when, harness, policy, n, incidents = event
        day = when.date().isoformat() if when else "unknown"
        known = {"harness": harness, "policy": policy, "day": day}
        key = tuple(known[axis] for axis in by)
        self.rollouts[key] += n
        self.found[key].update(incidents)


def incidents_in(trajectory: Trajectory) -> Counter[str]:
    """What went another way than planned in one rollout, under the names of reports.

    A hook that rewrote, denied, asked again or suppressed; a route that stood in for the normal
    one, silence among them; a fallback policy; retries and failures of the provider.
    """
    found = Counter(f"hook {fired}" for fired in hooks_fired(trajectory))
    if trajectory.route is not Route.NORMAL:
        found[f"route {trajectory.route}"] += 1
    elif trajectory.fell_back:
        found["fallback policy"] += 1
    found["provider retries"] = sum(step.reply.attempts - 1 for step in trajectory.steps)
    failed = sum(step.error is not None for step in trajectory.steps)
    found["provider failures"] = failed + (trajectory.stop == "provider_error")
    return +found


def of_logs(paths: Iterable[Path], span: Span, by: Sequence[str]) -> Count:
    """The lines of serving logs that fall into the span."""
    count = Count()
    for path in paths:
        for line in read_served(path):
            if isinstance(line, BadLine):
                count.bad_lines += 1
                if len(count.bad) < BAD_KEPT:
                    count.bad.append(line)
            else:
                _take(count, line, span, by)
    return count


def _take(count: Count, line: Served, span: Span, by: Sequence[str]) -> None:
    when, done = line.moment(), line.trajectory
    if when in span:
        event = (when, done.harness_id, done.policy_id, 1, incidents_in(done))
        count.add(event, by)


def of_runs(runs: Iterable[RunFolder], span: Span, by: Sequence[str]) -> Count:
    """The reports of evaluation runs that began in the span."""
    count = Count()
    for event in _reports(runs):
        when = event[0]
        if span == Span() or (when is not None and when in span):
            count.add(event, by)
    return count


def _reports(runs: Iterable[RunFolder]) -> Iterator[Event]:
    for run in runs:
        if run.report_file.exists():
            config, report = run.config(), run.report()
            n = report.planned - report.counts["missing"]
            found = Counter({k: v for k, v in report.incidents.items() if v})
            yield _instant(config.started), config.harness_id, config.policy_id, n, found


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def rows(
    count: Count, by: Sequence[str], releases: dict[tuple[str, str], str]
) -> tuple[IncidentRow, ...]:
    """Rows by version, then incident. `releases`: (policy id, harness id) → manifest."""
    made = []
    for key in sorted(count.rollouts):
        n = count.rollouts[key]
        known = dict(zip(by, key, strict=True))
        release = releases.get((known.get("policy", ""), known.get("harness", "")), "")
        for incident, found in sorted(count.found[key].items()) or [("", 0)]:
            per = round(100 * found / n, 2) if n else 0.0
            made.append(
                IncidentRow(
                    **known, release=release, incident=incident, count=found, rollouts=n,
                    per_100=per,
                )
            )  # fmt: skip
    return tuple(made)


def axes(text: str) -> tuple[str, ...]:
    """`harness,policy` as a tuple. Raises `UsageError` for another word."""
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    wrong = [word for word in found if word not in AXES]
    if wrong or not found or len(set(found)) < len(found):
        told = f"`{wrong[0]}` is none of them" if wrong else f"`{text}` is no list of them"
        raise UsageError(f"--by takes {', '.join(AXES)}: {told}", hint="--by harness,policy")
    return found


def span_of(since: str | None, until: str | None, now: datetime) -> Span:
    """The span that two options name."""
    found = Span(
        since=instant("--since", since, now) if since else None,
        until=instant("--until", until, now) if until else None,
    )
    if found.since and found.until and found.since >= found.until:
        raise UsageError(f"nothing lies between --since {since} and --until {until}")
    return found


def instant(option: str, text: str, now: datetime) -> datetime:
    """`24h` before `now`, a day (its midnight), or an instant; UTC where no offset is named."""
    ago = seconds_of(text)
    try:
        if ago is not None:
            return now - timedelta(seconds=ago)
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise UsageError(
            f"{option} takes no `{text}`", hint="24h, 7d, 2026-11-29 or 2026-11-29T18:00+08:00"
        ) from None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
