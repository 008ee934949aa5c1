"""Each gate kind on evidence made by hand."""

import msgspec
import pytest

from harness_cli.records.calibration import Calibration, JudgeIdentity, KindCount, MetricAgreement
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.records.manifest import Approval, EvidenceLine
from harness_cli.records.run import Interval
from harness_cli.release.decide import decide
from harness_cli.release.evidence import RunEvidence
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts


def lines(scores, *, state=None, wall=0.5, run="r", **more):
    return tuple(
        EvidenceLine(
            run=run,
            item_id=f"i{n:04d}",
            category="product-qa",
            state=state or ("passed" if s == 1 else "failed"),
            scores={"avg": s},
            wall_s=wall,
            **more,
        )
        for n, s in enumerate(scores)
    )


def evidence(made, **more):
    settings = {"run": "r", "planned": len(made), "judge_id": "j", "evalset_digest": "d"}
    return RunEvidence(lines=made, **{**settings, **more})


def ask(gate: Gate, **facts):
    return run_gates(GatesFile(gates=(gate,)), Facts(**facts))[0]


BUSINESS = Gate(name="g", kind="regression", evalset="e", minimum_n=30, margin=0.02)


def compare(new, old, gate=BUSINESS, **more):
    return ask(
        gate,
        runs={"g": evidence(lines(new, **more))},
        incumbent_runs={"g": evidence(lines(old))},
        incumbent="m1",
    )


def test_an_equal_candidate_passes_the_regression_gate():
    result = compare([1.0, 0.5] * 100, [1.0, 0.5] * 100)
    assert (result.outcome, result.numbers["delta"], result.numbers["n"]) == ("PASS", 0.0, 200)


def test_a_clearly_worse_candidate_fails():
    assert compare([0.0] * 100 + [1.0] * 100, [1.0] * 200).outcome == "FAIL"


def test_a_straddling_interval_is_inconclusive_and_names_the_n_it_needs():
    new = [0.0, 0.0, 1.0, 1.0] + [1.0] * 36
    old = [1.0, 1.0, 0.0, 0.0] + [1.0] * 36
    result = compare(new, old)
    assert result.outcome == "INCONCLUSIVE"
    assert "n =" in result.needs


def test_too_few_items_are_inconclusive_even_when_better():
    assert compare([1.0] * 8, [0.0] * 8).outcome == "INCONCLUSIVE"


def test_a_must_pass_item_that_breaks_fails_whatever_the_mean():
    gate = Gate(name="g", kind="regression", evalset="e", must_pass=("refusal",))
    new = evidence((*lines([1.0] * 199), *lines([0.0], tags=("refusal",))[:0]))
    made = [*lines([1.0] * 200)]
    made[7] = EvidenceLine(
        run="r", item_id="i0007", category="refusal", state="failed", scores={"avg": 0.0}
    )
    result = ask(
        gate,
        runs={"g": evidence(tuple(made))},
        incumbent_runs={"g": evidence(lines([1.0] * 200))},
        incumbent="m1",
    )
    assert new.planned == 199
    assert (result.outcome, "i0007" in result.summary) == ("FAIL", True)


def test_without_an_incumbent_there_is_nothing_to_regress_from_but_a_floor_holds():
    runs = {"g": evidence(lines([0.5] * 50))}
    assert ask(BUSINESS, runs=runs).outcome == "PASS"
    floored = Gate(name="g", kind="regression", evalset="e", floor=0.6)
    assert ask(floored, runs=runs).outcome == "FAIL"


@pytest.mark.parametrize("field", ["judge_id", "evalset_digest"])
def test_another_judge_or_evalset_cannot_be_compared(field):
    result = ask(
        BUSINESS,
        runs={"g": evidence(lines([1.0] * 50))},
        incumbent_runs={"g": evidence(lines([1.0] * 50), **{field: "other"})},
        incumbent="m1",
    )
    assert result.outcome == "INCONCLUSIVE"


@pytest.mark.parametrize("state", ["unscored", "errored"])
def test_too_many_unscored_or_errored_items_are_inconclusive(state):
    made = (*lines([1.0] * 90), *lines([0.0] * 10, state=state))
    assert ask(BUSINESS, runs={"g": evidence(made)}).outcome == "INCONCLUSIVE"


def test_no_run_is_inconclusive_and_says_the_command():
    result = ask(BUSINESS)
    assert (result.outcome, result.needs) == ("INCONCLUSIVE", "harness eval e")


LATENCY = Gate(name="g", kind="latency", evalset="e", bound_s=15, warm_up=10, minimum_n=100)


def test_the_latency_gate_leaves_warm_ups_out_and_counts_every_failure_as_a_miss():
    slow = lines([1.0] * 10, wall=60.0)
    good = tuple(lines([1.0] * 110)[10:])
    result = ask(LATENCY, runs={"g": evidence((*slow, *good))})
    assert (result.outcome, result.numbers["n"], result.numbers["attainment"]) == ("PASS", 100, 1.0)


@pytest.mark.parametrize(
    "miss",
    [
        {"wall_s": 15.01},
        {"wall_s": None},
        {"fell_back": True, "wall_s": 1.0},
        {"state": "errored", "wall_s": 1.0},
    ],
    ids=["late", "never timed", "fell back", "errored"],
)
def test_a_miss_is_a_miss(miss):
    made = list(lines([1.0] * 110))
    for n in (20, 21):
        settings = {"run": "r", "item_id": f"i{n:04d}", "state": "passed", **miss}
        made[n] = EvidenceLine(**settings)
    result = ask(LATENCY, runs={"g": evidence(tuple(made))})
    assert (result.outcome, result.numbers["within"]) == ("FAIL", 98)


def test_replayed_answers_are_never_timed():
    assert (
        ask(LATENCY, runs={"g": evidence(lines([1.0] * 110), fresh=False)}).outcome
        == "INCONCLUSIVE"
    )


def test_one_fast_request_is_no_latency_evidence():
    assert ask(LATENCY, runs={"g": evidence(lines([1.0] * 11))}).outcome == "INCONCLUSIVE"


JUDGE = Gate(name="g", kind="judge", accept_judges=("grounded",))
BOUNDS = Interval(low=0.0, high=1.0, method="none")


def calibrated(
    accuracy, effectiveness, *, labels="construction", standing="current", name="final", kinds=()
):
    """A judge as `gather` tells of it, with so many of 100 replies graded alike."""

    def metric(alike, labels):
        return MetricAgreement(
            raw=alike / 100, raw_interval=BOUNDS, kappa=0.5, kappa_interval=None,
            weights="none", labels=labels, confusion=(),
        )  # fmt: skip

    record = Calibration(
        judge=JudgeIdentity(name=name, id=f"{name}@1"),
        evalset="judge_calibration", split="dev", evalset_digest="d", catalogue_digest="c",
        labels=labels, n=100, unscored=0,
        accuracy=metric(accuracy, (0.0, 1.0)),
        effectiveness=metric(effectiveness, (0.0, 0.5, 1.0)),
        kinds=tuple(KindCount(kind=k, n=10, caught=n, alike=0) for k, n in kinds),
        at="2026-11-29T00:00:00Z", by="Ann",
    )  # fmt: skip
    return {
        "name": name,
        "id": f"{name}@1",
        "standing": standing,
        "changes": ["its harness: tree a is now b"] if standing == "changed" else [],
        "calibration": msgspec.to_builtins(record),
    }


ABSENT = {"name": "final", "id": "final@1", "standing": "absent"}
HUMAN = Gate(name="g", kind="judge", labels=("human",))
LOW = Gate(name="g", kind="judge", agreement={"accuracy": 0.8})


@pytest.mark.parametrize(
    ("gate", "judge", "outcome", "said"),
    [
        (JUDGE, {"name": "grounded"}, "PASS", "it is not calibrated"),
        (JUDGE, calibrated(85, 78, name="grounded"), "PASS", "agreement accuracy 0.8500"),
        (JUDGE, ABSENT, "INCONCLUSIVE", "`final` is not calibrated"),
        (JUDGE, {}, "INCONCLUSIVE", "`none` is not calibrated"),
        (JUDGE, calibrated(92, 85), "PASS", "calibrated on 100 labels"),
        (JUDGE, calibrated(92, 85, labels="human"), "PASS", "labels of `human`"),
        (JUDGE, calibrated(92, 85, labels="team"), "INCONCLUSIVE", "labels of `team`"),
        (JUDGE, calibrated(92, 85, standing="changed"), "INCONCLUSIVE", "tree a is now b"),
        (JUDGE, calibrated(89, 85), "FAIL", "accuracy 0.8900 < 0.9"),
        (JUDGE, calibrated(92, 79), "FAIL", "effectiveness 0.7900 < 0.8"),
        (JUDGE, calibrated(99, 99, kinds=[("partial", 8)]), "PASS", "calibrated on 100"),
        (JUDGE, calibrated(99, 99, kinds=[("partial", 7)]), "FAIL", "partial marked down 7 of 10"),
        (JUDGE, calibrated(99, 99, labels="human", kinds=[("partial", 7)]), "PASS", "`human`"),
        (LOW, calibrated(82, 10, kinds=[("partial", 7)]), "PASS", "calibrated on 100 labels"),
        (HUMAN, calibrated(99, 99), "INCONCLUSIVE", "not of human"),
        (HUMAN, calibrated(99, 99, labels="human"), "PASS", "calibrated"),
    ],
)
def test_the_judge_gate_takes_accepted_or_calibrated_judges(gate, judge, outcome, said):
    found = ask(gate, judge=judge)
    assert (found.outcome, said in found.summary) == (outcome, True), found.summary
    assert bool(found.needs) == (outcome != "PASS")


def advisory(judge, *, gates=(), metric="avg", kind="regression", judge_id="final@1"):
    gate = Gate(name="business", kind=kind, evalset="e", metric=metric)
    made = tuple(
        msgspec.structs.replace(line, scores={"avg": 1.0, "tc": 1.0}) for line in lines([1.0] * 50)
    )
    runs = {"business": evidence(made, judge_id=judge_id)}
    return run_gates(GatesFile(gates=(*gates, gate)), Facts(runs=runs, judge=judge))[-1]


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (ABSENT, "not calibrated"),
        (calibrated(92, 85, standing="changed"), "changed since it was calibrated"),
        (calibrated(70, 85), "agrees too little"),
    ],
)
def test_a_gate_on_the_grades_of_an_untrusted_judge_says_so_and_does_not_pass(judge, said):
    found = advisory(judge)
    assert found.outcome == "INCONCLUSIVE"
    assert found.summary.startswith("advisory")
    assert said in found.summary
    assert "it would pass: avg 1.0000" in found.summary
    assert found.needs


def test_grades_of_a_calibrated_or_accepted_judge_decide():
    assert advisory(calibrated(92, 85)).outcome == "PASS"
    by_name = Gate(name="judge", kind="judge", accept_judges=("final",))
    assert advisory(ABSENT, gates=(by_name,)).outcome == "PASS"


def test_what_no_judge_graded_is_decided_without_one():
    assert advisory(ABSENT, metric="tc").outcome == "PASS"
    assert advisory(ABSENT, metric="passed", kind="capability").outcome == "PASS"
    assert advisory(ABSENT, metric="passed", kind="regression").outcome == "INCONCLUSIVE"


def test_a_failure_stays_one_whoever_judged():
    floor = Gate(name="business", kind="regression", evalset="e", floor=0.9)
    runs = {"business": evidence(lines([0.5] * 50))}
    facts = Facts(runs=runs, judge=ABSENT)
    assert run_gates(GatesFile(gates=(floor,)), facts)[0].outcome == "FAIL"


def test_a_run_that_another_judge_graded_is_advisory():
    found = advisory(calibrated(92, 85), judge_id="final@older")
    assert (found.outcome, "graded by final@older" in found.summary) == ("INCONCLUSIVE", True)


TOOLS = Gate(name="g", kind="tools")


@pytest.mark.parametrize(
    ("drift", "outcome"),
    [
        ((), "PASS"),
        (("marketing.x",), "DRIFT"),
        (None, "INCONCLUSIVE"),
        ("`marketing` did not start", "ERROR"),
    ],
)
def test_drifted_tools_stop_a_promotion(drift, outcome):
    assert ask(TOOLS, drift=drift).outcome == outcome


def approval(by, subject="s"):
    return Approval(by=by, at="2026-01-01T00:00:00Z", subject=subject)


@pytest.mark.parametrize(
    ("approvals", "outcome"),
    [
        ((), "PENDING"),
        ((approval("Ann"), approval("Ann")), "PENDING"),
        ((approval("Ann"), approval("Bo", subject="another pair")), "PENDING"),
        ((approval("Ann"), approval("Bo")), "PASS"),
    ],
)
def test_approvals_are_of_different_people_and_of_this_pair(approvals, outcome):
    gate = Gate(name="g", kind="approvals", approvals=2)
    assert ask(gate, approvals=approvals, subject="s").outcome == outcome


def test_provenance_findings_fail():
    gate = Gate(name="g", kind="provenance")
    assert ask(gate, provenance=("made from uncommitted files",)).outcome == "FAIL"
    assert ask(gate).outcome == "PASS"


def test_a_gate_whose_evidence_cannot_be_read_is_an_error_and_the_others_decide():
    gates = GatesFile(gates=(BUSINESS, msgspec.structs.replace(BUSINESS, name="other")))
    runs = {"other": evidence(lines([1.0] * 50))}
    broken, good = run_gates(gates, Facts(runs=runs, errors={BUSINESS.name: "run.json: damaged"}))
    assert (broken.outcome, broken.summary) == ("ERROR", "run.json: damaged")
    assert good.outcome == "PASS"
    assert decide([broken, good]).exit_code == 1
