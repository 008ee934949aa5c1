"""A run's rollouts before another judge: the policy is asked nothing, every verdict is new."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from panel_stub import PanelStub, serving

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call

from harness_cli.errors import BadFile, BudgetReached, Stale, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.rejudge import is_another_judge, rejudge, resume_rejudged
from harness_cli.store.journal import scan
from harness_cli.store.project import Project
from harness_cli.store.rollout_index import RolloutIndex
from harness_cli.store.runs import RunStore

ROOT = Path(__file__).parents[2]
MEMBERS = ("a", "b", "c")
ITEMS = 6


@pytest.fixture
def shop(make_project):
    """The bench project with a policy and a panel at one endpoint, and one run without a judge."""

    def make(url, repeat=2):
        project = make_project(url, items=ITEMS, stall_timeout_s=60, attempt_timeout_s=60)
        shutil.copytree(ROOT / "harness_repo/judges", project.harness / "judges")
        config = json.loads((project.root / "harness.yaml").read_text())
        config["policies"] |= {m: {**config["policies"]["stub"], "model": m} for m in MEMBERS}
        config["judges"] = {"final": {"panel": list(MEMBERS)}}
        (project.root / "harness.yaml").write_text(json.dumps(config))
        for words in (("add", "-A"), ("commit", "-qm", "panel")):
            subprocess.run(["git", *words], cwd=project.root, check=True)
        project = Project.find(project.root)
        asked = EvalOptions(evalset="bench", judge="none", repeat=repeat)
        outcome = asyncio.run(evaluate(project, asked))
        assert outcome.report.status == "complete"
        return project, outcome.run

    return make


def judged(project, run, **options):
    options = {"judge": "final", "rescore": run, **options}
    return asyncio.run(rejudge(project, run, EvalOptions(**options)))


def without_votes(calls):
    return {model: n for model, n in calls.items() if model not in MEMBERS}


def test_the_policy_is_not_asked_again_and_every_verdict_is_the_new_judges(shop):
    stub = PanelStub()
    with serving(stub) as url:
        project, run = shop(url)
        before = without_votes(stub.calls)
        outcome = judged(project, run)
    assert without_votes(stub.calls) == before
    assert sum(stub.calls[m] for m in MEMBERS) == 3 * 2 * ITEMS * 2
    config = outcome.run.config()
    assert (config.rescored_of, config.rejudged, config.judge) == (run.id, "none", "final")
    assert config.judge_id.startswith("final@")
    assert config.judge_harness
    assert (config.policy_id, config.harness_id) == (
        run.config().policy_id,
        run.config().harness_id,
    )
    assert not config.fresh
    assert outcome.report.timing["fresh"] is False
    assert [r.wall_s for r in outcome.run.results()] == [None] * 2 * ITEMS
    assert outcome.report.counts["passed"] == 2 * ITEMS
    assert outcome.report.usage["judge"]["votes"] == 3 * 2 * ITEMS
    old = {(t.item_id, t.repeat): t for t in run.trajectories()}
    assert {(t.item_id, t.repeat): t for t in outcome.run.trajectories()} == old
    sums = {(r.item_id, r.repeat): r.trajectory_sha256 for r in run.results()}
    assert {(r.item_id, r.repeat): r.trajectory_sha256 for r in outcome.run.results()} == sums


def test_a_budget_stops_it_and_a_resume_asks_for_the_votes_that_are_missing(shop):
    stub = PanelStub()
    with serving(stub) as url:
        project, run = shop(url, repeat=1)
        cut = judged(project, run, budget=Budget(tokens=900), concurrency=1)
        assert cut.report.status == "budget"
        with pytest.raises(BudgetReached, match="budget of tokens"):
            cut.check()
        asked = sum(stub.calls[m] for m in MEMBERS)
        assert 0 < asked < 3 * ITEMS * 2
        resumed = asyncio.run(resume_rejudged(project, cut.run, EvalOptions(resume=cut.run)))
        assert resumed.report.status == "complete"
        assert sum(stub.calls[m] for m in MEMBERS) == 3 * ITEMS * 2, "nothing twice"
        again = judged(project, run)
        assert sum(stub.calls[m] for m in MEMBERS) == 3 * ITEMS * 2, "all from the cache"
    assert again.run.config().rejudged == "none"
    assert again.report.usage["judge"]["cached"] == 3 * ITEMS
    assert {r.state for r in again.run.results()} == {"passed"}


def test_the_command_marks_the_run_and_a_plain_rescore_stays_as_it_was(shop):
    with serving(PanelStub()) as url:
        project, run = shop(url)
        done = call(project.root, "eval", "--rescore", run.id, "--judge", "final", "-q")
        assert done.code == 0, done.err
        assert f"rollouts of {run.id} judged anew, its judge was none" in done.out
        page = call(project.root, "report", "-o", "page.html", "-q")
        assert page.code == 0, page.err
        html = (project.root / "page.html").read_text()
        assert f"Rollouts of run {run.id}, judged anew; its judge was none." in html
        newest = RunStore(project.runs).list()[0]
        wrong = call(project.root, "eval", "--rescore", run.id, "--judge", "final", "--seed", "3")
        assert wrong.code == 2
        assert "seed has no say" in wrong.err
        assert RunStore(project.runs).list()[0].id == newest.id, "and no run is left"
        plain = call(project.root, "eval", "--rescore", run.id, "-q")
        assert plain.code == 0, plain.err
        assert RunStore(project.runs).list()[0].config().rejudged is None
        unknown = call(project.root, "eval", "--rescore", run.id, "--judge", "fnal")
        assert unknown.code == 2
        assert "final" in unknown.err


def test_another_judge_is_told_by_its_id(shop):
    with serving(PanelStub()) as url:
        project, run = shop(url)
        outcome = judged(project, run, judge="grounded")
    assert outcome.run.config().judge == "grounded"
    assert is_another_judge(project, run, "grounded")
    assert not is_another_judge(project, outcome.run, "grounded")
    assert is_another_judge(project, outcome.run, "final")
    assert not is_another_judge(project, run, None)
    assert not is_another_judge(project, run, "none")


def test_what_does_not_fit_is_refused_and_leaves_no_run(shop):
    with serving(PanelStub()) as url:
        project, run = shop(url)
        before = [r.id for r in RunStore(project.runs).list()]
        items = project.evalsets / "bench/items.jsonl"
        kept = items.read_text()
        items.write_text(kept.replace("item-0000", "item-9999"))
        with pytest.raises(UsageError, match="changed since run"):
            judged(project, run)
        items.write_text(kept)
        report = run.report_file.read_bytes()
        run.report_file.unlink()
        with pytest.raises(UsageError, match="is killed"):
            judged(project, run)
        run.report_file.write_bytes(report)
        assert [r.id for r in RunStore(project.runs).list()] == before
        cut = judged(project, run, budget=Budget(tokens=900), concurrency=1)
        shutil.rmtree(run.path)
        with pytest.raises(Stale, match="is gone"):
            asyncio.run(resume_rejudged(project, cut.run, EvalOptions(resume=cut.run)))


def test_a_rollout_is_read_by_item_and_repeat_with_its_texts(shop):
    with serving(PanelStub()) as url:
        _, run = shop(url)
    index = RolloutIndex(run)
    assert len(index) == 2 * ITEMS
    for wanted in run.trajectories():
        assert index.get(wanted.item_id, wanted.repeat) == wanted
    assert index.get("item-9999") is None
    texts = [line.offset for line in scan(run.journal) if line.kind == "text"]
    data = bytearray(run.journal.read_bytes())
    for at in texts:
        data[at + 60] ^= 1
    run.journal.write_bytes(bytes(data))
    if texts:
        with pytest.raises(BadFile):
            RolloutIndex(run)
