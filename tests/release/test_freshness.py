"""Evidence has an age: a gate may ask that it is young on the day it decides."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from released import GATES, chosen, git, measured_project, promoted, wrong

from harness_cli.errors import BudgetReached
from harness_cli.evaluation.gate import Budget
from harness_cli.records.gates import Gate, GatesFile
from harness_cli.records.manifest import EvidenceLine
from harness_cli.release import gather as gathering
from harness_cli.release.candidate import PROMOTE, named_run
from harness_cli.release.evidence import RunEvidence
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts, result
from harness_cli.release.gates.standing import aged
from harness_cli.release.gather import missing
from harness_cli.release.session import Wish, run_promotion
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

AT = "2026-11-30T12:00:00Z"


def decided(started: str, days: float | None, *, score: float = 1.0, kind: str = "regression"):
    made = tuple(
        EvidenceLine(run="r", item_id=f"i{n}", state="passed", scores={"avg": score}, wall_s=1.0)
        for n in range(40)
    )
    run = RunEvidence(run="r", lines=made, planned=40, started=started)
    more = {} if days is None else {"max_age_days": days}
    gate = Gate(
        name="g", kind=kind, evalset="e", metric="avg", minimum_n=5, floor=0.5, warm_up=0, **more
    )
    return run_gates(GatesFile(gates=(gate,)), Facts(runs={"g": run}, at=AT))[0]


@pytest.mark.parametrize("kind", ["regression", "latency"])
@pytest.mark.parametrize(
    ("started", "days", "outcome"),
    [
        ("2026-11-23T12:00:00Z", 7, "PASS"),
        ("2026-11-23T11:59:59Z", 7, "INCONCLUSIVE"),
        ("2026-11-23T19:30:00+08:00", 7, "INCONCLUSIVE"),
        ("2026-11-30T06:00:00Z", 0.5, "PASS"),
        ("2026-01-01T00:00:00Z", None, "PASS"),
        ("", 7, "INCONCLUSIVE"),
        ("2026-11-23 no time", 7, "INCONCLUSIVE"),
    ],
)
def test_a_pass_needs_evidence_of_the_last_days(kind, started, days, outcome):
    found = decided(started, days, kind=kind)
    assert found.outcome == outcome
    if outcome == "INCONCLUSIVE":
        assert "run `r` is" in found.summary
        assert found.needs.startswith("harness eval e")


def test_what_fails_on_old_evidence_fails():
    assert decided("2026-01-01T00:00:00Z", 7, score=0.1).outcome == "FAIL"


@pytest.mark.parametrize(
    ("at", "outcome"), [("2026-11-29T00:00:00Z", "PASS"), ("2026-10-01T00:00:00Z", "INCONCLUSIVE")]
)
def test_a_calibration_ages_as_well(at, outcome):
    gate = Gate(name="g", kind="judge", max_age_days=30)
    facts = Facts(judge={"name": "final", "calibration": {"at": at}}, at=AT)
    found = aged(gate, facts, result(gate, "PASS", "calibrated"))
    assert found.outcome == outcome
    if outcome != "PASS":
        assert found.needs == "harness judge calibrate --judge final"


def test_a_judge_that_is_accepted_by_name_has_no_calibration_to_age():
    gate = Gate(name="g", kind="judge", accept_judges=("final",), max_age_days=30)
    found = run_gates(GatesFile(gates=(gate,)), Facts(judge={"name": "final", "id": "x"}, at=AT))
    assert found[0].outcome == "PASS"


@pytest.fixture(scope="module")
def measured(tmp_path_factory, isolated_session) -> Path:
    root = tmp_path_factory.mktemp("fresh") / "shop"
    measured_project(root, GATES.replace("minimum_n: 2", "minimum_n: 2, max_age_days: 2"))
    return root


@pytest.fixture
def project(measured, tmp_path) -> Project:
    return Project.find(shutil.copytree(measured, tmp_path / "shop", symlinks=True))


def in_days(days: float) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_an_old_run_does_not_promote_and_a_release_does_not_age(project):
    late = promoted(project, at=in_days(3), approver=None)
    assert (late.decision.outcome, late.manifest) == ("INCONCLUSIVE", None)
    assert "3.0 days old, more than 2" in next(
        r.summary for r in late.results if r.name == "business"
    )
    made = promoted(project).manifest
    assert made.predicate.gate_settings[2].max_age_days == 2
    assert wrong(project, made.predicate.id) == {}


def test_a_run_that_is_too_old_counts_as_missing(project, monkeypatch):
    assert missing(chosen(project)) == []
    monkeypatch.setattr(gathering, "now", lambda: in_days(3))
    assert [(g.name, role) for g, role in missing(chosen(project))] == [("business", "candidate")]


def test_a_promotion_that_stops_at_its_budget_goes_on_with_the_run_it_began(project):
    """The gate on another evalset has no run yet: the promotion makes it."""
    text = project.gates.read_text()
    gate = "  - {name: general, kind: capability, evalset: general_instructions, metric: passed}\n"
    project.gates.write_text(text + gate)
    git(project.root, "commit", "-qam", "another gate")

    def wish(**more) -> Wish:
        return Wish(run=named_run(project, None), write=False, **more)

    with pytest.raises(BudgetReached):
        asyncio.run(run_promotion(project, wish(budget=Budget(tokens=1)), None))
    store = RunStore(project.runs)
    [begun] = [r for r in store.list() if r.config().command[:2] == PROMOTE]
    assert begun.status() != "complete"
    done = asyncio.run(run_promotion(project, wish(), None))
    [again] = [r for r in store.list() if r.config().command[:2] == PROMOTE]
    assert (again.id, again.status()) == (begun.id, "complete")
    assert next(g for g in done.gates if g.name == "general").outcome in ("PASS", "INCONCLUSIVE")
    assert done.missing == ()
