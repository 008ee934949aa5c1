"""MTP off against on by hand: the boundary, the advice, quality with a verdict, the tables."""

import asyncio
import json
import threading
from contextlib import contextmanager
from xml.etree import ElementTree

import msgspec
import pytest
from bench_endpoint import Endpoint, project_at, serving
from hypothesis import given
from hypothesis import strategies as st
from test_bench_numbers import call, request, run
from typer.testing import CliRunner

from harness_cli.commands._bench_mtp import on_which
from harness_cli.errors import UsageError
from harness_cli.main import app
from harness_cli.serving.bench.mtp import compare, quality
from harness_cli.serving.bench.mtp_tables import (
    across_concurrency,
    chart,
    page,
    qualities,
    validities,
)
from harness_cli.serving.bench.tables import markdown


def runs(walls, speeds, *, name, malformed=0, repeat=1, noise=0.0, cases=80):
    """One run a concurrency: so many cases of that wall time and decode speed."""
    made = []
    for n in range(repeat):
        for level, (wall, speed) in enumerate(zip(walls, speeds, strict=True)):
            requests = [
                request(
                    case,
                    call(0.5 + 100 / speed, 0.5, 100),
                    wall=wall * (1 + noise * ((case * 7 + n) % 11 - 5) / 5),
                    malformed_calls=1 if case < malformed else 0,
                )
                for case in range(cases)
            ]
            made.append(run(requests, run=f"{name}-{level}-{n}", concurrency=2**level, policy=name))
    return made


OFF = runs([9.0, 10.0, 11.0, 18.0], [160.3, 129.2, 99.7, 59.0], name="off", noise=0.05)


def test_table_17_comes_out_with_its_boundary_and_advice():
    """TR Table 17's numbers: gains at 1 and 2, no better P95 from 4 on."""
    on = runs([8.1, 9.0, 12.4, 20.3], [271.4, 196.2, 126.6, 70.2], name="on", noise=0.05)
    found = compare("mtp on", OFF, on)
    assert [round(v.speedup.mean, 2) for v in found.levels] == [1.69, 1.52, 1.27, 1.19]
    assert [v.gain for v in found.levels] == ["gains", "gains", "none", "none"]
    assert found.boundary == 4
    said = " ".join(found.advice)
    assert "from C=4 on" in said
    assert "replicas" in said
    assert "--speculative-adaptive" in said
    table = markdown(across_concurrency([found]))
    assert "160.30→271.40" in table
    assert "1.69× [1.69, 1.69]" in table
    assert "100.0→100.0%" in table


@pytest.mark.parametrize(
    ("walls", "boundary", "word"),
    [
        ([8, 9, 10, 17], None, "keep MTP up to C=8"),
        ([9.5, 11, 12, 19], 1, "P95 gains nowhere"),
        ([8, 12, 10, 17], None, "keep MTP up to C=8"),  # one bad level below good ones is no end
        ([8, 9, 10, 19], 8, "from C=8 on"),
    ],
)
def test_the_boundary_is_where_p95_stops_gaining_for_good(walls, boundary, word):
    found = compare("mtp on", OFF, runs(walls, [200] * 4, name="on", noise=0.05))
    assert found.boundary == boundary
    assert word in " ".join(found.advice)


def test_a_mean_above_1_alone_does_not_give_mtp_up():
    """A few slow cases make a P95: its ratio is above 1, its interval holds 1."""
    put = msgspec.structs.replace
    ((off,), (on,)) = (runs([9.0], [100], name=n, noise=0.6) for n in ("off", "on"))
    most = max(q.wall_s for q in on.requests)
    walls = [q.wall_s * (1.3 if q.wall_s == most else 0.75) for q in on.requests]
    slower = [put(q, wall_s=w) for q, w in zip(on.requests, walls, strict=True)]
    found = compare("mtp on", [off], [put(on, requests=tuple(slower))])
    (level,) = found.levels
    (ratio,) = [c.wall_p95 for c in level.contrasts]
    assert ratio.value > 1 > ratio.low
    assert (level.gain, level.no_better, found.boundary) == ("unclear", True, 1)
    assert "do not exclude a gain" in found.advice[0]
    assert "serve without MTP" not in " ".join(found.advice)


def test_a_handful_of_cases_does_not_tell_of_a_p95():
    """Every interval of three cases lies above 1 here; nothing is given up for that."""
    off = runs([9.0], [100], name="off", noise=0.05, cases=3)
    on = runs([9.5], [100], name="on", noise=0.05, cases=3)
    found = compare("mtp on", off, on)
    (ratio,) = [c.wall_p95 for c in found.levels[0].contrasts]
    assert ratio.low > 1
    assert found.levels[0].gain == "unclear"
    assert "serve without MTP" not in " ".join(found.advice)
    assert "fewer than 72 cases" in " ".join(found.advice)


def test_the_p_of_several_runs_is_no_pick_of_the_least():
    off = runs([9.0], [100], name="off", repeat=3)
    on = [*runs([9.0], [100], name="on", malformed=6), *runs([9.0], [100], name="on", repeat=2)]
    (one,) = [v for v in compare("on", off[:1], on[:1]).validity if v.arm == "on"]
    (three,) = [v for v in compare("on", off, on).validity if v.arm == "on"]
    assert one.p == pytest.approx(2 * 0.5**6)
    assert three.p == pytest.approx(3 * one.p)


def test_a_gain_within_the_noise_is_said_to_be_unclear():
    off = runs([9.0], [100], name="off", noise=0.6)
    on = runs([8.95], [100], name="on", noise=0.61)
    found = compare("mtp on", off, on)
    assert found.levels[0].gain in ("unclear", "none")
    if found.levels[0].gain == "unclear":
        assert "holds 1" in " ".join(found.advice)


def test_no_p95_at_all_is_not_taken_for_no_gain():
    """Every request failed with MTP: nobody knows whether it pays."""
    put = msgspec.structs.replace
    on = [
        put(r, requests=tuple(put(q, success=False, stop="provider_error") for q in r.requests))
        for r in runs([8.0], [200], name="on")
    ]
    found = compare("mtp on", OFF[:1], on)
    assert (found.levels[0].gain, found.boundary) == ("unclear", None)
    assert found.advice == ("at C=1 there is no P95 of both: nothing is known of the gain there",)


def test_items_that_broke_with_mtp_alone_are_no_evidence_for_it():
    same = [1.0] * 200
    assert quality("mtp on", "avg", same, same, 0.02).verdict == "non-inferior"
    found = quality("mtp on", "avg", same, same, 0.02, lost=10)
    assert (found.verdict, found.lost) == ("inconclusive", 10)
    assert "200 (10 broke with it alone)" in markdown(qualities([found]))


def test_several_runs_give_a_mean_and_a_range_of_speed_ups():
    off = runs([9.0], [100], name="off", repeat=3)
    on = [
        one
        for n, speed in enumerate((150, 160, 170))
        for one in runs([8.0], [speed], name=f"on{n}")
    ]
    found = compare("mtp on", off, on).levels[0]
    assert len(found.contrasts) == 3
    assert (found.speedup.mean, found.speedup.runs) == (pytest.approx(1.6), 3)
    assert found.speedup.low == pytest.approx(1.5)


def test_tool_calls_that_drafting_spoilt_are_counted_by_case():
    """vLLM #35615: parameters lost with two or more drafts."""
    found = compare("mtp on", OFF[:1], runs([8], [200], name="on", malformed=6))
    off, on = found.validity
    assert (off.malformed, on.malformed, on.cases_gained, on.cases_lost) == (0, 6, 6, 0)
    assert on.p == pytest.approx(2 * 0.5**6)
    assert "| mtp on | 1 | 0 | 6 | 6 | 0 |" in markdown(validities(found.validity))


def test_other_cases_are_not_compared():
    put = msgspec.structs.replace
    other = [put(r, contract=put(r.contract, cases_digest="x")) for r in OFF]
    with pytest.raises(UsageError, match="differ in cases digest"):
        compare("mtp on", OFF, other)
    assert compare("mtp on", OFF, []).advice == ("no concurrency was measured with both",)


@pytest.mark.parametrize(
    ("off", "on", "margin", "verdict"),
    [
        ([1.0] * 200, [1.0] * 200, 0.02, "non-inferior"),
        ([1.0] * 50, [1.0] * 50, 0.02, "inconclusive"),  # none of 50 worse says: below 6 %
        ([1.0] * 100, [1.0] * 60 + [0.0] * 40, 0.02, "inferior"),
        ([1.0] * 100, [1.0] * 97 + [0.0] * 3, 0.02, "inconclusive"),
        ([0.5] * 1000, [0.5] * 990 + [1.0] * 6 + [0.0] * 4, 0.02, "non-inferior"),
        ([], [], 0.02, "inconclusive"),
    ],
)
def test_quality_is_a_verdict_and_not_two_bare_numbers(off, on, margin, verdict):
    assert quality("mtp on", "avg", off, on, margin).verdict == verdict


GRADES = st.sampled_from([0, 0.5, 1])


@given(st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=60))
def test_the_two_verdicts_are_never_both_possible(pairs):
    off, on = [a for a, _ in pairs], [b for _, b in pairs]
    found = quality("mtp on", "avg", off, on, 0.05)
    if found.verdict == "non-inferior":
        assert found.difference.low > -0.05
    if found.verdict == "inferior":
        assert found.on < found.off


def test_the_page_and_the_chart_hold_every_number():
    found = compare("mtp on <1>", OFF, runs([8, 9, 12, 20], [200, 190, 120, 70], name="on"))
    drawn = ElementTree.fromstring(chart(found))
    assert len(drawn.findall("{*}polyline")) == 4
    assert len(drawn.findall("{*}circle")) == 16
    assert "C=8: decode 59.0→70.0" in drawn.find("{*}desc").text
    assert "## MTP across concurrency" in page([found])
    assert json.loads(msgspec.json.encode(found))["boundary"] == 4


@contextmanager
def endpoint(**habits):
    """An endpoint in a thread of its own; its address."""
    loop, found = asyncio.new_event_loop(), {}
    up = threading.Event()

    async def serve():
        found["end"] = asyncio.Event()
        async with serving(Endpoint(**habits)) as url:
            found["url"] = url
            up.set()
            await found["end"].wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert up.wait(20)
        yield found["url"]
    finally:
        loop.call_soon_threadsafe(found["end"].set)
        thread.join(20)
        loop.close()


def test_from_the_command_line_two_endpoints_are_measured_in_turns(tmp_path):
    with endpoint(decode_s=0.12) as slow, endpoint(decode_s=0.04) as fast:
        project = project_at(tmp_path / "p", slow)
        file = project.root / "harness.yaml"
        text = file.read_text()
        told = json.loads(text) if text.startswith("{") else None
        if told is None:
            told = msgspec.yaml.decode(file.read_bytes())
        for name in ("drafts", "lossy"):
            told["policies"][name] = told["policies"]["stub"] | {"base_url": f"{fast}"}
        file.write_bytes(msgspec.yaml.encode(told))
        words = "bench mtp stub --on drafts --lossy lossy -c 1,4 --evalset bench --warm-up 2 -o out"
        done = CliRunner().invoke(app, [*words.split(), "--json", "-C", str(project.root)])
    assert done.exit_code == 0, done.output
    found, lossy = json.loads(done.stdout)["mtp"]
    assert found["against_exact"] == []
    # Both draft at the same speed: only their thresholds could tell them apart.
    direct = lossy["against_exact"]
    assert [(c["concurrency"], c["pairs"]) for c in direct] == [(1, 12), (4, 12)]
    assert all(0.6 < c["decode"]["value"] < 1.6 for c in direct)
    assert "### Lossy against exact" in (project.root / "out/mtp.md").read_text()
    assert [level["concurrency"] for level in found["levels"]] == [1, 4]
    for level in found["levels"]:
        assert 1.5 < level["speedup"]["mean"] < 4.5
        assert level["p95"]["mean"] < 1
        assert level["gain"] == "unclear"  # a dozen cases do not tell of a P95
    assert found["boundary"] is None
    made = {p.name for p in (project.root / "out").iterdir()}
    assert made == {"mtp.json", "mtp.md", "mtp-on.svg", "mtp-on-lossy.svg"}


@pytest.mark.parametrize("text", ["qa@", "qa@2", "qa@-0.1", "qa@x"])
def test_a_margin_is_a_share(text):
    assert on_which("qa@0.05") == ("qa", 0.05)
    assert on_which("qa") == ("qa", 0.02)
    with pytest.raises(UsageError):
        on_which(text)
