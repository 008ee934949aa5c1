"""Numbers of a benchmark by hand: TTFT, decode speed, attainment, ranges, contrasts."""

from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.commands._benching import page
from harness_cli.errors import UsageError
from harness_cli.records.bench import BenchCall, BenchRequest, BenchRun, BenchTool
from harness_cli.records.reader import read_json
from harness_cli.records.serve_job import Desired, Live, Parallelism, ProcessRef, ServeJob
from harness_cli.serving.bench.contrast import contrast, contrasts_of
from harness_cli.serving.bench.figures import figures
from harness_cli.serving.bench.groups import groups
from harness_cli.serving.bench.route import arm_of, facts_of
from harness_cli.serving.bench.tables import contrasts, headline, markdown, ratio

GOLDEN = Path(__file__).parents[1] / "golden" / "schema1" / "bench.json"
CONTRACT = read_json(GOLDEN, BenchRun).contract


def call(seconds=1.0, ttft=0.5, tokens=100, **more):
    return BenchCall(
        index=0, latency_s=seconds, ttft_s=ttft, first_delta_s=ttft, output_tokens=tokens,
        input_tokens=1000, tokens_from="usage", **more,
    )  # fmt: skip


def request(n, *calls, wall=3.0, **more):
    given_ = {"success": True, "stop": "completed"} | more
    return BenchRequest(item=f"i{n}", wall_s=wall, calls=calls or (call(),), **given_)


def run(requests, **contract):
    made = msgspec.structs.replace(CONTRACT, **contract)
    return BenchRun(contract=made, planned=len(requests), requests=tuple(requests))


def test_a_short_answer_bends_the_mean_decode_speed_and_not_the_median():
    """TR App. F: nine tokens in one millisecond are 9,000 tokens a second."""
    requests = [request(n) for n in range(99)] + [request(99, call(0.501, 0.5, 9))]
    numbers = figures(run(requests)).decode
    assert numbers.mean == pytest.approx((99 * 200 + 9000) / 100)
    assert numbers.median == pytest.approx(200)
    assert numbers.short == 1


def test_attainment_counts_failures_and_stand_ins_as_misses():
    requests = [
        request(0, wall=15.0),
        request(1, wall=15.1),
        request(2, success=False, stop="provider_error"),
        request(3, fell_back=True, route="compact_fallback", stop="gate_failed"),
        request(4, warm_up=True, wall=99.0),
    ]
    numbers = figures(run(requests))
    assert (numbers.within, numbers.measured, numbers.attainment) == (1, 4, 0.25)
    assert numbers.succeeded == 3
    assert numbers.failures == {
        "provider_error": 1,
        "gate_failed, answered by compact_fallback": 1,
    }
    assert numbers.wall.longest == 15.1


def test_percentiles_are_nearest_rank_with_their_intervals():
    numbers = figures(run([request(n, wall=float(n + 1)) for n in range(100)])).wall
    assert (numbers.p50, numbers.p95) == (50.0, 95.0)
    low, high = numbers.p95_interval
    assert low < 95.0 < high <= 100.0
    few = figures(run([request(n, wall=float(n + 1)) for n in range(20)])).wall
    assert few.p95_interval[1] is None  # 20 samples do not bound a P95 from above


def test_several_runs_are_a_mean_and_a_range_and_never_one_sample():
    walls = ([1.0] * 95 + [9.0] * 5, [1.0] * 94 + [9.0] * 6)
    runs = [
        run([request(n, wall=w) for n, w in enumerate(values)], run=f"r{i}")
        for i, values in enumerate(walls)
    ]
    (group,) = groups(runs)
    found = group.values["wall_p95"]
    assert (found.mean, found.low, found.high, found.runs) == (5.0, 1.0, 9.0, 2)
    assert "5.000 (1.000–9.000)" in markdown(headline([group]))


def test_calls_tools_and_shares_of_time_are_shown_of_every_concurrency():
    tool = BenchTool(name="lookup", latency_s=0.25, ok=True)
    requests = [request(n, call(), call(2.0), tools=(tool,), wall=3.5) for n in range(3)]
    found = groups([run(requests, run="a"), run(requests, run="b", concurrency=8)])
    text = page(found, [])
    for level in (CONTRACT.concurrency, 8):
        name = f"| {found[0].name} | {level} |"
        assert f"{name} 2 | 3 | 2.000 | 0.500 |" in text
        assert f"{name} lookup | 3 | 0 | 0.250 | 0.250 |" in text
        assert f"{name} 3.000 | 0.250 | 0.250 |" in text
    bare = page(groups([run([request(0)])]), [])
    assert "| tool |" not in bare


def test_other_concurrency_or_another_arm_is_another_group():
    runs = [
        run([request(0)], run="a"),
        run([request(0)], run="b", concurrency=8),
        run([request(0)], run="c", arm="mtp off"),
    ]
    assert len(groups(runs)) == 3


# -- contrasts


def pair(speed=2.0, n=40):
    """Off and on over the same cases: twice the decode speed, and the wall that follows."""
    off, on = [], []
    for i in range(n):
        tokens = 60 + 7 * (i % 9)
        decoding = tokens / (100 + i % 5)
        off.append(request(i, call(0.5 + decoding, 0.5, tokens), wall=1.0 + decoding))
        fast = decoding / speed
        on.append(request(i, call(0.5 + fast, 0.5, tokens), wall=1.0 + fast))
    return run(off, run="off"), run(on, run="on")


def test_a_known_speed_up_comes_out_with_an_interval_around_it():
    found = contrast(*pair(2.0))
    assert found.decode.value == pytest.approx(2.0)
    assert found.decode.low <= 2.0 <= found.decode.high
    assert found.decode_median.value == pytest.approx(2.0, rel=0.05)
    assert found.wall.mean < 0
    assert found.wall.high < 0
    assert found.wall_p95.value < 1
    assert found.ttft.mean == pytest.approx(0.0)
    assert found.output.mean == 0.0
    assert (found.pairs, found.unpaired) == (40, ())
    assert "2.00× [" in ratio(found.decode)
    assert "speed-up" in markdown(contrasts([found]))


def test_runs_are_paired_one_to_one_or_not_at_all():
    off, on = pair()
    assert len(contrasts_of([off, off], [on, on])) == 2
    with pytest.raises(UsageError, match=r"C=\d+: 1 runs against 2 cannot be paired"):
        contrasts_of([off, off], [on])


def test_the_same_run_twice_is_no_difference():
    off, _ = pair()
    found = contrast(off, off)
    assert (found.decode.value, found.decode.low, found.decode.high) == (1.0, 1.0, 1.0)
    assert (found.wall.mean, found.attainment.gained, found.attainment.lost) == (0.0, 0, 0)


def test_cases_that_one_arm_lost_are_named_and_not_paired():
    off, on = pair(n=10)
    lost = msgspec.structs.replace(on.requests[3], success=False, stop="provider_error")
    spoilt = (*on.requests[:3], lost, *on.requests[4:9])
    found = contrast(off, msgspec.structs.replace(on, requests=spoilt))
    assert (found.pairs, found.unpaired) == (8, ("i3", "i9"))
    assert (found.attainment.gained, found.attainment.lost) == (0, 1)


def test_tool_calls_that_speculation_mangles_show():
    off, on = pair(n=10)
    mangled = tuple(msgspec.structs.replace(r, malformed_calls=1) for r in on.requests)
    found = contrast(off, msgspec.structs.replace(on, requests=mangled)).malformed
    assert (found.gained, found.lost) == (10, 0)
    assert found.p < 0.01


def test_unknown_tokens_leave_the_speed_up_unknown():
    off, on = pair(n=5)
    silent = tuple(msgspec.structs.replace(r, calls=(call(tokens=None),)) for r in on.requests)
    found = contrast(off, msgspec.structs.replace(on, requests=silent))
    assert (found.decode.value, found.output.n) == (None, 0)
    assert ratio(found.decode) == "–"


@pytest.mark.parametrize("name", ["cases_digest", "concurrency", "harness_id"])
def test_runs_of_other_cases_are_not_paired(name):
    off, on = pair(n=3)
    other = 5 if name == "concurrency" else "ff"
    with pytest.raises(UsageError, match="differ in"):
        contrast(off, run(on.requests, **{name: other}))


@given(st.lists(st.floats(0.01, 30), min_size=1, max_size=60))
def test_figures_hold_for_any_walls(walls):
    numbers = figures(run([request(n, wall=w) for n, w in enumerate(walls)]))
    assert numbers.wall.n == len(walls)
    assert numbers.wall.mean == pytest.approx(fmean(walls))
    assert numbers.wall.p50 in walls
    assert numbers.wall.p50 <= numbers.wall.p95 <= numbers.wall.longest == max(walls)
    assert numbers.within == sum(w <= 15 for w in walls)


@pytest.mark.parametrize(
    ("engine", "gpus", "dtype"),
    [("sglang", 4, "bfloat16"), ("builtin", None, ""), ("checkpoint", None, "")],
)
def test_a_run_is_not_bound_to_what_its_engine_does_not_know(engine, gpus, dtype):
    process = ProcessRef(pid=1, begun=1, boot_id="b")
    asked = ServeJob(name="x", engine=engine, parallelism=Parallelism(tp=2), replicas=2)
    desired = Desired(generation=1, job=asked, digest="d", model="m", replicas=2, at="")
    live = Live(
        name="x", generation=1, phase="ready", url="u", digest="d", model="m", supervisor=process
    )
    told = facts_of(desired, live)
    assert (told.engine, told.gpus, told.dtype) == (engine, gpus, dtype)


def test_the_arm_is_named_by_what_the_server_was_started_with():
    facts = CONTRACT.serving
    assert arm_of(facts, None) == "mtp on, lossy"
    exact = msgspec.structs.replace(
        facts.mtp, accept_threshold_single=1.0, accept_threshold_acc=1.0
    )
    assert arm_of(msgspec.structs.replace(facts, mtp=exact), None) == "mtp on"
    assert arm_of(msgspec.structs.replace(facts, mtp=None), None) == "mtp off"
    assert arm_of(None, None) == ""
    assert arm_of(facts, "base") == "base"
