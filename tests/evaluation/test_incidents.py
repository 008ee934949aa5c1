"""Incidents of serving logs: exact counts by version and day, spans, time zones, damaged lines."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import UsageError
from harness_cli.evaluation.incidents import (
    Span,
    axes,
    incidents_in,
    instant,
    of_logs,
    rows,
    span_of,
)
from harness_cli.records.chat import ChatReply
from harness_cli.records.served import Served
from harness_cli.records.trajectory import HookEvent, Route, Step, StopReason, Trajectory
from harness_cli.store.served import BadLine, append_served, read_served, served_logs

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
BY = ("harness", "policy")


def hook(name: str, outcome: str) -> HookEvent:
    return HookEvent(hook=name, event="before_reply", outcome=outcome)


def step(*events: HookEvent, attempts: int = 1, fallback: bool = False, error=None) -> Step:
    return Step(
        index=0, messages=(), reply=ChatReply(content="x", attempts=attempts), hooks=events,
        fallback=fallback, error=error,
    )  # fmt: skip


def rollout(harness: str = "h1", policy: str = "p@1", **more) -> Trajectory:
    return Trajectory(request_id="r", harness_id=harness, policy_id=policy, **more)


def logged(path: Path, *lines: tuple[datetime, Trajectory]) -> Path:
    for at, trajectory in lines:
        append_served(path, trajectory, at=at)
    return path


@pytest.mark.parametrize(
    ("trajectory", "found"),
    [
        (rollout(), {}),
        (rollout(steps=(step(hook("a", "allow")),)), {}),
        (rollout(steps=(step(hook("a", "deny"), hook("a", "deny")),)), {"hook a:deny": 2}),
        (rollout(hooks=(hook("greet", "rewrite"),)), {"hook greet:rewrite": 1}),
        (rollout(steps=(step(attempts=3), step(attempts=2))), {"provider retries": 3}),
        (rollout(route=Route.SUPPRESSED), {"route suppressed": 1}),
        (rollout(route=Route.COMPACT), {"route compact_fallback": 1}),
        (
            rollout(steps=(step(fallback=True, error="timeout: slow"),)),
            {"fallback policy": 1, "provider failures": 1},
        ),
        (rollout(stop=StopReason.PROVIDER_ERROR), {"provider failures": 1}),
    ],
)
def test_each_thing_that_went_another_way_is_counted_once(trajectory, found):
    assert incidents_in(trajectory) == found


KINDS = (
    rollout(),
    rollout(steps=(step(hook("price", "retry")),)),
    rollout(route=Route.SUPPRESSED, hooks=(hook("safe", "suppress"),)),
    rollout(steps=(step(attempts=2),)),
)


@settings(max_examples=25, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            st.sampled_from(["h1", "h2"]),
            st.sampled_from(["p@1", "p@2"]),
            st.integers(-72, 72),
            st.integers(-12, 14),
        ),
        max_size=40,
    ),
    since=st.integers(-72, 0),
    until=st.integers(1, 72),
)
def test_counts_are_exact_whatever_zone_the_times_are_written_in(
    drawn, since, until, tmp_path_factory
):
    """Against a count made the slow way."""
    path = tmp_path_factory.mktemp("log") / "room.jsonl"
    path.touch()
    wanted: Counter[tuple[str, str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    with path.open("ab") as file:
        for kind, harness, policy, hours, zone in drawn:
            at = NOW + timedelta(hours=hours)
            one = msgspec.structs.replace(kind, harness_id=harness, policy_id=policy)
            told = at.astimezone(timezone(timedelta(hours=zone))).isoformat()
            file.write(msgspec.json.encode(Served(at=told, trajectory=one)) + b"\n")
            if since <= hours < until:
                asked[harness, policy] += 1
                for name, n in incidents_in(one).items():
                    wanted[harness, policy, name] += n
    span = Span(NOW + timedelta(hours=since), NOW + timedelta(hours=until))
    made = rows(of_logs([path], span, BY), BY, {})
    assert {(r.harness, r.policy, r.incident): r.count for r in made if r.count} == wanted
    assert {(r.harness, r.policy): r.rollouts for r in made} == asked


def test_a_version_without_incidents_has_a_row_and_its_release(tmp_path):
    path = logged(tmp_path / "a.jsonl", (NOW, rollout()), (NOW, rollout("h2")))
    made = rows(of_logs([path], Span(), BY), BY, {("p@1", "h2"): "dev-p-20261129-1"})
    assert [(r.harness, r.incident, r.count, r.rollouts, r.release) for r in made] == [
        ("h1", "", 0, 1, ""),
        ("h2", "", 0, 1, "dev-p-20261129-1"),
    ]


def test_a_day_is_one_of_utc(tmp_path):
    east = datetime(2026, 11, 30, 2, 0, tzinfo=timezone(timedelta(hours=8)))
    path = logged(tmp_path / "a.jsonl", (east, rollout(route=Route.SUPPRESSED)))
    (row,) = rows(of_logs([path], Span(), ("day",)), ("day",), {})
    assert (row.day, row.incident, row.per_100) == ("2026-11-29", "route suppressed", 100.0)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("24h", NOW - timedelta(days=1)),
        ("90m", NOW - timedelta(minutes=90)),
        ("2w", NOW - timedelta(days=14)),
        ("2026-11-29", datetime(2026, 11, 29, tzinfo=UTC)),
        ("2026-11-29T18:00", datetime(2026, 11, 29, 18, tzinfo=UTC)),
        ("2026-11-29T18:00Z", datetime(2026, 11, 29, 18, tzinfo=UTC)),
        ("2026-11-29T18:00+08:00", datetime(2026, 11, 29, 10, tzinfo=UTC)),
        ("2026-11-29T18:00:30.5-05:30", datetime(2026, 11, 29, 23, 30, 30, 500000, tzinfo=UTC)),
    ],
)
def test_a_moment_may_be_an_age_a_day_or_an_instant(text, moment):
    assert instant("--since", text, NOW) == moment


@pytest.mark.parametrize("text", ["yesterday", "24", "-1h", "2026-13-01", "25:00", "999999w"])
def test_what_is_no_moment_is_a_wrong_option(text):
    with pytest.raises(UsageError, match="--since takes no"):
        instant("--since", text, NOW)


def test_an_empty_span_is_a_wrong_option():
    with pytest.raises(UsageError, match="nothing lies between"):
        span_of("1h", "2h", NOW)


@pytest.mark.parametrize("text", ["", "harness,harness", "model", ","])
def test_axes_are_named(text):
    with pytest.raises(UsageError, match="--by takes harness, policy, day"):
        axes(text)


def test_damaged_lines_are_named_and_the_others_counted(tmp_path):
    path = logged(tmp_path / "room.jsonl", (NOW, rollout(route=Route.SUPPRESSED)))
    good = path.read_text()
    plain = json.loads(good)
    wrong = [
        "{torn\n",
        json.dumps({**plain, "at": "2026-11-29T12:00:00"}) + "\n",
        json.dumps({**plain, "at": "noon"}) + "\n",
        json.dumps({**plain, "schema": 2}) + "\n",
        json.dumps({"at": plain["at"]}) + "\n",
        json.dumps({**plain, "trajectory": {**plain["trajectory"], "route": "sideways"}}) + "\n",
        "[" * 5000 + "\n",
    ]
    path.write_text(good + "".join(wrong) + "\n" + good + good[:40])
    found = list(read_served(path))
    bad = [line for line in found if isinstance(line, BadLine)]
    assert [line.place for line in bad] == [f"room.jsonl:{n}" for n in range(2, 9)]
    for line, said in zip(
        bad,
        ("", "without an offset", "noon", "schema 2", "trajectory", "sideways", ""),
        strict=True,
    ):
        assert said in line.problem
    count = of_logs([path], Span(), BY)
    assert (count.bad_lines, count.rollouts.total()) == (7, 2)


def test_a_line_that_is_no_text_at_all_is_named(tmp_path):
    path = tmp_path / "room.jsonl"
    path.write_bytes(b'{"at": "\xff\xfe"}\n\x00\x01\n')
    assert [line.place for line in read_served(path)] == ["room.jsonl:1", "room.jsonl:2"]


def test_logs_are_files_folders_or_those_of_the_project(tmp_path):
    folder = tmp_path / ".harness" / "served"
    for name in ("b.jsonl", "a.jsonl"):
        logged(folder / name, (NOW, rollout()))
    assert [p.name for p in served_logs(tmp_path, [])] == ["a.jsonl", "b.jsonl"]
    assert served_logs(tmp_path, [folder]) == served_logs(tmp_path, [])
    assert served_logs(tmp_path, [folder / "b.jsonl"]) == [folder / "b.jsonl"]
    for missing in (tmp_path / "none.jsonl", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(UsageError, match="no serving log"):
            served_logs(tmp_path, [missing])


def test_a_key_in_a_reply_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "value-of-a-shop-key")
    path = logged(tmp_path / "a.jsonl", (NOW, rollout(reply="it is value-of-a-shop-key")))
    assert "value-of-a-shop-key" not in path.read_text()
    assert "[redacted]" in path.read_text()
