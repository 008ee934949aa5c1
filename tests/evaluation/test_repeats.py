"""k of n: an item's verdict first, the suite second; flaky items by name; the A/A noise floor."""

import json
import xml.etree.ElementTree as ET
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from harness_cli.errors import UsageError
from harness_cli.evaluation import report as shown
from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.comparison_text import markdown, remarks
from harness_cli.evaluation.noise import find, floor, forecast, keep, kept, measure
from harness_cli.evaluation.noise_text import forecast_line
from harness_cli.evaluation.noise_text import remarks as noise_remarks
from harness_cli.evaluation.repeats import (
    RepeatTally,
    check_need,
    flaky_line,
    suite_line,
    verdict,
)
from harness_cli.main import app
from harness_cli.records.gates import Gate
from harness_cli.records.run import EvalsetRef, Report, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.store.runs import RunStore

STATES = ("passed", "failed", "unscored", "errored")


def config(run="r1", *, repeat=3, n=4, **more):
    settings = {"harness_id": "h" * 40, "policy": "p", "policy_id": "p@1", "judge": "grounded",
                "judge_id": "grounded@1", **more}  # fmt: skip
    evalset = EvalsetRef(name="qa", split="dev", digest="d", n=n)
    return RunConfig(id=run, evalset=evalset, repeat=repeat, **settings)


def repeats_of(item, states, *, category="chat"):
    values = {"passed": 1.0, "failed": 0.0, "unscored": None, "errored": None}
    return [
        ItemResult(item_id=item, repeat=r, category=category, state=s, reply=f"{item} {r}",
                   scores={"accuracy": values[s]}, wall_s=0.25,
                   error="x" if s == "errored" else None)
        for r, s in enumerate(states)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("states", "need", "of", "ended"),
    [
        (["passed", "passed", "failed"], 2, 3, "passed"),
        (["passed", "failed", "failed"], 2, 3, "failed"),
        (["passed", "unscored", "failed"], 2, 3, "unscored"),
        (["passed", "errored", "failed"], 2, 3, "errored"),
        (["passed", "passed"], 2, 3, "passed"),
        (["passed", "failed"], 2, 3, "missing"),
        (["failed", "failed"], 2, 3, "failed"),
        (["failed", "passed", "passed"], 3, 3, "failed"),
        (["passed", "failed", "failed"], 1, 3, "passed"),
        (["unscored"], 1, 1, "unscored"),
    ],
)
def test_a_verdict_is_decided_by_known_outcomes_alone(states, need, of, ended):
    assert verdict(states, need, of) == ended


@given(st.lists(st.sampled_from(STATES), max_size=4), st.integers(1, 4))
def test_no_outcome_of_the_unknown_repeats_could_change_a_decided_verdict(states, need):
    of = 4
    unknown = of - sum(s in ("passed", "failed") for s in states)
    known = [s for s in states if s in ("passed", "failed")]
    possible = {
        verdict([*known, *rest], need, of) for rest in product(("passed", "failed"), repeat=unknown)
    }
    found = verdict(states, need, of)
    if found in ("passed", "failed"):
        assert possible == {found}
    else:
        assert possible == {"passed", "failed"}


def tally(rows, planned, **more):
    made = RepeatTally.of_run(config(**more))
    for item, states in rows.items():
        made.add(repeats_of(item, states))
    return made.summary(planned)


ROWS = {
    "a": ["passed", "passed", "passed"],
    "b": ["passed", "failed", "passed"],
    "c": ["failed", "passed", "failed"],
    "d": ["unscored", "passed", "failed"],
}


def test_items_are_counted_by_verdict_and_the_flaky_ones_are_named():
    found = tally(ROWS, 15)  # one item of five was never begun
    assert found.items == {"passed": 2, "failed": 1, "unscored": 1, "errored": 0, "missing": 1}
    assert (found.begun, found.need, found.of) == (4, 2, 3)
    assert [(f.item_id, f.passed, f.verdict) for f in found.flaky] == [
        ("b", 2, "passed"), ("c", 1, "failed"), ("d", 1, "unscored"),
    ]  # fmt: skip
    assert found.pass_rate == pytest.approx(2 / 3)
    assert "passed 2 / failed 1 / unscored 1 / errored 0 / missing 1" in suite_line(found)
    assert flaky_line(found) == "flaky: 3 items: b (2 of 3), c (1 of 3), d (1 of 3)"
    assert flaky_line(found, shown=1).endswith("b (2 of 3), … 2 more")


def test_a_stricter_rule_makes_other_verdicts():
    assert tally(ROWS, 12, need=3).items["passed"] == 1
    assert tally(ROWS, 12, need=1).items["passed"] == 4
    assert RepeatTally.of_run(config(repeat=1)).summary(4) is None
    with pytest.raises(UsageError, match="--need 4 passes of 3 repeats"):
        check_need(4, 3)
    with pytest.raises(UsageError, match="of 1 repeat an item"):
        check_need(2, 1)


def test_components_of_variance_tell_items_from_chance():
    same = tally({f"i{n}": ["passed" if n % 2 else "failed"] * 3 for n in range(40)}, 120)
    assert same.variance["accuracy"].icc == 1.0
    assert same.variance["accuracy"].design_effect == pytest.approx(3.0, rel=0.05)
    assert same.flaky == ()


def test_junit_has_one_case_an_item_with_its_reruns():
    summary = tally(ROWS, 12)
    counts = {"passed": 7, "failed": 4, "unscored": 1, "errored": 0, "missing": 0}
    report = Report(
        run=config(), status="complete", planned=12, metrics=(), repeats=summary, counts=counts
    )
    results = [r for item, states in ROWS.items() for r in repeats_of(item, states)]
    suite = ET.fromstring("".join(shown.junit(report, results)))[0]
    numbers = {"tests": "4", "failures": "1", "errors": "0", "skipped": "1"}
    assert {k: suite.attrib[k] for k in numbers} == numbers
    tags = {case.attrib["name"]: [c.tag for c in case] for case in suite.iter("testcase")}
    assert tags == {
        "a": ["properties"],
        "b": ["properties", "flakyFailure"],
        "c": ["properties", "failure", "rerunFailure"],
        "d": ["properties", "skipped"],
    }
    c = suite.findall("testcase")[2]
    assert c[1].attrib["message"].startswith("1 of 3 repeats passed, 2 needed: accuracy 0")
    assert [p.attrib["value"] for p in c[0]] == ["1 of 3 repeats passed, 2 needed", "true"]
    assert c.attrib["time"] == "0.750"


def rows(table):
    return [r for item, states in table.items() for r in repeats_of(item, states)]


def test_a_comparison_names_flaky_items_and_counts_verdicts_by_each_runs_rule():
    before = {**ROWS, "e": ["failed"] * 3}
    after = {**ROWS, "c": ["passed"] * 3, "e": ["failed", "passed", "failed"]}
    found = compare(rows(before), rows(after), config_a=config("a", n=5), config_b=config("b", n=5))
    assert (found.flaky_a, found.flaky_b) == (("b", "c", "d"), ("b", "d", "e"))
    assert [(c.item_id, c.flaky) for c in found.fixed] == [("c", True)]
    assert found.b.verdicts["passed"] == 3
    said = remarks(found)
    assert "flaky in b: 3 items (b, d, e)" in said
    assert any("items of a by verdict: passed 2" in s for s in said)
    spread = next(m.spread for m in found.metrics if m.metric == "accuracy")
    assert spread is not None
    assert any("over repeats Δ" in s for s in said)
    strict = compare(rows(before), rows(after), config_a=config("a", need=3), config_b=config("b"))
    assert {c.item_id for c in strict.fixed} == {"b", "c"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def write_run(project, run, table, *, seed=0, **more):
    from msgspec.json import encode

    from harness_cli.evaluation.summary import write_reports
    from harness_cli.records.journal import ItemRecord
    from harness_cli.store.journal import line_of

    made = config(run, repeat=len(next(iter(table.values()))), n=len(table), seed=seed, **more)
    folder = RunStore(project / ".harness" / "runs").create(made)
    records = [ItemRecord(item=r.item_id, repeat=r.repeat, result=r) for r in rows(table)]
    folder.journal.write_bytes(b"".join(line_of(encode(r)) for r in records))
    planned = len(records)
    write_reports(folder, planned=planned, status="complete", metrics=("accuracy",))
    return folder


def noisy(flips, n=60):
    return {f"i{i:02}": ["failed" if i < flips else "passed"] for i in range(n)}


def test_the_floor_of_two_runs_is_kept_beside_them_and_scales_with_n(project):
    a = write_run(project, "r1", noisy(5))
    b = write_run(project, "r2", noisy(11), seed=1)
    gate = Gate(name="business", kind="regression", evalset="qa", metric="accuracy", margin=0.01)
    found = measure([a, b], [gate])
    accuracy = next(m for m in found.metrics if m.metric == "accuracy")
    assert (accuracy.tie_rate, accuracy.items) == (0.9, 60)
    # Six items flip: all 64 sign patterns; |Δ| ≤ 4/60 holds 62 of them, 6/60 all.
    assert accuracy.interval.high == pytest.approx(4 / 60)
    assert floor(found, "accuracy", n=240) == pytest.approx(2 / 60)
    assert floor(found, "accuracy", n=60, repeat=4) == pytest.approx(2 / 60)
    assert floor(found, "nothing", n=60) is None
    (outlook,) = found.gates
    assert not outlook.can_pass
    assert outlook.needed > 1000
    assert "no chance even without Δ" in forecast_line(outlook)
    keep([a, b], found)
    (whole,) = forecast(RunStore(project / ".harness" / "runs"), a.config(), [gate])
    assert (whole.n, whole.needed) == (60, outlook.needed)
    assert (
        forecast(RunStore(project / ".harness" / "runs"), config("x", judge_id="j"), [gate]) == ()
    )


def test_fewer_items_than_a_gate_wants_decide_nothing_however_even_the_runs(project):
    a = write_run(project, "r1", noisy(3, n=10))
    b = write_run(project, "r2", noisy(3, n=10), seed=1)
    gate = Gate(name="business", kind="regression", evalset="qa", metric="accuracy", margin=0.02)
    found = measure([a, b], [gate])
    (outlook,) = found.gates
    assert (outlook.can_pass, outlook.power, outlook.needed) == (False, 0.0, 30)
    assert "gate business: 10 items decide nothing, it wants at least 30" in noise_remarks(found)
    assert "fewer than it wants" in forecast_line(outlook)


def test_one_run_alone_has_no_noise_unless_its_items_repeat(project):
    alone = write_run(project, "r1", noisy(5))
    with pytest.raises(UsageError, match="one rollout an item"):
        measure([alone])
    other = write_run(project, "r2", noisy(5), policy_id="q@2")
    with pytest.raises(UsageError, match="differ in policy_id"):
        measure([alone, other])
    repeated = write_run(project, "r3", ROWS)
    found = measure([repeated])
    assert (found.repeat, found.runs) == (1, ("r3",))
    accuracy = next(m for m in found.metrics if m.metric == "accuracy")
    assert accuracy.runs == 3


def test_compare_holds_a_difference_against_the_newest_floor_that_fits(project):
    runs = [write_run(project, f"r{n}", noisy(4 + n), seed=n) for n in range(3)]
    noise = measure(runs[:2])
    keep(runs[:2], noise)
    assert kept(runs[0]) == noise
    assert kept(runs[2]) is None
    store = RunStore(project / ".harness" / "runs")
    assert find(store, config("x", n=60)) == noise
    assert find(store, config("x", n=60, harness_id="other")) == noise
    assert find(store, config("x", n=60, judge_id="other")) is None
    done = CliRunner().invoke(app, ["compare", "r1", "r2", "--json"])
    accuracy = next(m for m in json.loads(done.stdout)["metrics"] if m["metric"] == "accuracy")
    assert accuracy["noise"] == pytest.approx(1 / 60)
    text = CliRunner().invoke(app, ["compare", "r1", "r2"]).stdout
    assert "two runs of the same thing differ by up to ±1.67 points (A/A r0, r1)" in text
    assert "is inside" in text
    for run in (runs[1], runs[2]):
        (run.path / "noise.json").unlink(missing_ok=True)
    kept_now = CliRunner().invoke(app, ["compare", "r1", "r2", "--aa"])
    assert kept(runs[2]).runs == ("r1", "r2")
    assert "(A/A r1, r2)" in kept_now.stdout
    seeded = CliRunner().invoke(app, ["compare", "r1", "r2", "--resamples", "500", "--json"])
    methods = {m["paired"]["method"] for m in json.loads(seeded.stdout)["metrics"]}
    assert methods == {"bootstrap 500, seed 0"}


def test_reports_of_repeats_are_in_markdown_and_json(project):
    folder = write_run(project, "r1", ROWS)
    report = folder.report()
    assert report.repeats.items["passed"] == 2
    assert "flaky: 3 items: b (2 of 3)" in shown.markdown(report)
    assert json.loads(folder.canonical.read_text())["repeats"]["begun"] == 4
    assert "### Comparison" in markdown(compare(rows(ROWS), rows(ROWS)))


def test_show_run_tells_verdicts_flaky_items_and_the_floor(project):
    folder = write_run(project, "r1", ROWS)
    keep([folder], measure([folder]))
    shown_run = CliRunner().invoke(app, ["show", "run", "r1"]).stdout
    assert "items, 2 of 3 repeats: passed 2" in shown_run
    assert "flaky: 3 items: b (2 of 3)" in shown_run
    assert "A/A: the repeats of r1 against each other" in shown_run
