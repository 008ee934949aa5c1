"""Runs judged by a panel on the loopback: journaled, resumed, bounded, cached, shown."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from panel_stub import PanelStub, serving

from harness_cli.commands._verdict import verdict_lines
from harness_cli.errors import HarnessError, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.report import judge_lines, markdown
from harness_cli.evaluation.verdicts import verdict_of
from harness_cli.store.journal import scan
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

ROOT = Path(__file__).parents[2]
MEMBERS = ("a", "b", "c")
CALLS = 2
"""Of one vote: rubrics in the first answer, the verdict in the second."""


@pytest.fixture
def shop(make_project):
    """`shop(url, items=…)`: the bench project with a panel of three at the same endpoint."""

    def make(url, items=8, price=None, judges=None, roles=None, **kwargs):
        # Limits that a busy machine does not reach: after one attempt a stall is a failed vote.
        patient = {"stall_timeout_s": 60, "attempt_timeout_s": 60, **kwargs}
        project = make_project(url, items=items, **patient)
        shutil.copytree(ROOT / "harness_repo/judges", project.harness / "judges")
        config = json.loads((project.root / "harness.yaml").read_text())
        served = {**config["policies"]["stub"], **({"price": price} if price else {})}
        config["policies"] |= {m: {**served, "model": m} for m in MEMBERS}
        config["policies"]["stub"] = served
        config["judges"] = judges or {"final": {"panel": list(MEMBERS)}}
        config["roles"] = roles or {"final_judge": "final", "teacher": "a"}
        (project.root / "harness.yaml").write_text(json.dumps(config))
        for words in (("add", "-A"), ("commit", "-qm", "panel")):
            subprocess.run(["git", *words], cwd=project.root, check=True)
        return Project.find(project.root)

    return make


def evaluated(project, **options):
    options = {"evalset": "bench", "judge": "final", "concurrency": 4, **options}
    return asyncio.run(evaluate(project, EvalOptions(**options)))


def records(run, kind):
    return [json.loads(line.data) for line in scan(run.journal) if line.kind == kind]


def test_every_vote_stands_in_the_journal_and_its_calls_are_the_judges(shop):
    stub = PanelStub()
    with serving(stub) as url:
        outcome = evaluated(shop(url))
    assert outcome.report.counts["passed"] == 8
    models = records(outcome.run, "model")
    judged = [m for m in models if m.get("judge")]
    assert len(judged) == 8 * len(MEMBERS) * CALLS
    assert len(models) - len(judged) == 8 * 2
    verdict = records(outcome.run, "verdict")[0]["verdict"]
    assert [v["voter"] for v in verdict["votes"]] == list(MEMBERS)
    assert all(v["reasons"]["accuracy"] and v["evidence"] for v in verdict["votes"])
    assert outcome.report.usage["calls"] == 16, "the policy's calls alone"
    judge = outcome.report.usage["judge"]
    assert (judge["votes"], judge["calls"], judge["cached"]) == (24, 48, 0)
    assert outcome.report.run.judge_harness
    assert not outcome.report.run.judge_dirty


def test_the_times_of_a_run_are_the_policys_not_the_judges(shop):
    stub = PanelStub(judge_s=1.5)
    with serving(stub) as url:
        timing = evaluated(shop(url, items=2)).report.timing
    assert timing["call_latency_s"]["mean"] < 1.5
    assert timing["call_latency_s"]["median"] < 1.0


def test_the_role_table_and_the_judges_work_stand_in_every_form_of_a_report(shop):
    with serving(PanelStub()) as url:
        outcome = evaluated(shop(url, items=2))
    text = "\n".join(judge_lines(outcome.report))
    page = markdown(outcome.report)
    plain = json.loads(msgspec.json.encode(outcome.report))
    assert "final_judge final (a: openai a; b: openai b; c: openai c)" in text
    assert "6 votes" in text
    assert "| final_judge | final |" in page
    assert {r["role"] for r in plain["run"]["roles"]} == {"teacher", "final_judge"}


def test_a_second_run_takes_the_votes_from_the_cache_and_says_so(shop):
    stub = PanelStub()
    with serving(stub) as url:
        project = shop(url)
        first = evaluated(project)
        asked = dict(stub.calls)
        again = evaluated(project)
        assert {m: stub.calls[m] for m in MEMBERS} == {m: asked[m] for m in MEMBERS}
        fresh = evaluated(project, fresh_verdicts=True)
        assert all(stub.calls[m] == 2 * asked[m] for m in MEMBERS)
    assert again.report.usage["judge"]["cached"] == 24
    assert again.report.usage["judge"]["calls"] == 0
    assert "24 cached" in judge_lines(again.report)[0]
    assert fresh.report.usage["judge"]["cached"] == 0
    for outcome in (again, fresh):
        assert outcome.report.metrics == first.report.metrics
    verdicts = records(again.run, "verdict")
    assert all(v["verdict"]["cached"] for v in verdicts)


def killed(project, stub, calls):
    """`harness eval` killed once the endpoint was asked so often: its run."""
    words = ["eval", "bench", "--judge", "final", "--concurrency", "4", "--quiet"]
    command = [sys.executable, "-m", "harness_cli.main", *words]
    process = subprocess.Popen(command, cwd=project.root, stdout=subprocess.DEVNULL)
    while sum(stub.calls.values()) < calls:
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.1)  # what was in flight still arrives and is counted
    return RunStore(project.runs).list()[0]


@pytest.mark.parametrize("kill_at", [11, 40, 57])
def test_a_killed_run_repeats_no_call_of_a_judge_that_was_acknowledged(shop, kill_at):
    stub = PanelStub(judge_s=0.02)
    with serving(stub) as url:
        project = shop(url, items=12)
        whole = evaluated(project).run.canonical.read_bytes()
        shutil.rmtree(project.runs.parent / "verdicts")
        stub.calls.clear()
        run = killed(project, stub, kill_at)
        known = {(m["item"], m.get("judge", ""), m["index"]) for m in records(run, "model")}
        before = stub.asked.copy()
        outcome = evaluated(project, resume=run)
        again = {key for key, count in stub.asked.items() if count > before.get(key, 0)}
    assert known
    assert outcome.report.status == "complete"
    assert not known & again, "an acknowledged call was made twice"
    assert outcome.run.canonical.read_bytes() == whole


def test_a_budget_of_tokens_counts_the_judges_calls_and_stops_between_them(shop):
    stub = PanelStub()
    with serving(stub) as url:
        project = shop(url, items=12)
        outcome = evaluated(project, budget=Budget(tokens=3_000), concurrency=1)
        assert outcome.report.status == "budget"
        assert outcome.stopped == "tokens"
        spent = sum(stub.calls.values())
        done = evaluated(project, resume=outcome.run)
    assert done.report.status == "complete"
    assert sum(stub.calls.values()) == 12 * (2 + CALLS * len(MEMBERS)), "nothing was asked twice"
    assert spent < sum(stub.calls.values())


def test_a_bound_on_money_needs_the_price_of_every_member(shop):
    with serving(PanelStub()) as url:
        project = shop(url, items=2, price={"input": 1.0, "output": 1.0})
        config = json.loads((project.root / "harness.yaml").read_text())
        del config["policies"]["b"]["price"]
        (project.root / "harness.yaml").write_text(json.dumps(config))
        with pytest.raises(UsageError, match="price of `b` is unknown"):
            evaluated(Project.find(project.root), budget=Budget(cost=1.0))


def test_calls_of_judges_side_by_side_stay_within_the_concurrency(shop):
    stub = PanelStub(judge_s=0.05)
    with serving(stub) as url:
        evaluated(shop(url, items=6), concurrency=4)
    assert stub.most_in_flight <= 4 + 4, "four rollouts and four judge calls at most"
    assert stub.most_judging <= 4


def test_rubrics_in_words_are_decided_by_the_panel_and_count_as_assertions(shop):
    def with_rubric(n):
        rubrics = [
            {"type": "llm-rubric", "value": "Says a code."},
            {"type": "not-llm-rubric", "value": "Says a price."},
        ]
        request = {"comments": [{"text": f"What about SID={n}?"}]}
        returns = {"lookup": {"article": n}}
        return {
            "id": f"item-{n:04d}",
            "request": request,
            "assert": rubrics,
            "tool_returns": returns,
        }

    stub = PanelStub(rubrics=[("rubric:1", True), ("rubric:2", False)])
    with serving(stub) as url:
        outcome = evaluated(shop(url, items=2, item=with_rubric))
    results = list(outcome.run.results())
    assert [[a.passed for a in r.assertions] for r in results] == [[True, True]] * 2
    assert outcome.report.counts["passed"] == 2


def test_a_judge_whose_endpoint_is_down_leaves_items_unscored_with_the_reason(shop):
    stub = PanelStub(broken=("b", "c"))
    with serving(stub) as url:
        outcome = evaluated(shop(url, items=3, max_attempts=1))
    assert outcome.report.counts["unscored"] == 3
    reason = next(iter(outcome.run.results())).error
    assert "1 of 3 votes, 2 are needed" in reason
    assert "b: policy: server" in reason
    assert outcome.report.incidents["judge failures"] == 6


def test_a_resume_asks_again_for_the_votes_whose_provider_failed_and_for_no_others(shop):
    stub = PanelStub(broken=("b", "c"))
    with serving(stub) as url:
        first = evaluated(shop(url, items=3, max_attempts=1))
        project = Project.find(first.run.path)
        assert first.report.counts["unscored"] == 3
        stub.broken = ()
        calls = dict(stub.calls)
        again = evaluated(project, resume=first.run)
    assert again.report.counts == {**first.report.counts, "passed": 3, "unscored": 0}
    assert (stub.calls["a"], stub.calls["stub"]) == (calls["a"], calls["stub"])
    assert stub.calls["b"] == calls["b"] + 3 * CALLS


def test_a_judge_that_answers_nothing_from_the_start_stops_the_run_and_says_so(shop):
    stub = PanelStub(broken=MEMBERS)
    with serving(stub) as url:
        outcome = evaluated(shop(url, items=60, max_attempts=1))
        assert outcome.report.status == "failed"
        assert outcome.report.counts["missing"] > 0
        with pytest.raises(HarnessError, match="failed from the start"):
            outcome.check()
        stub.broken = ()
        done = evaluated(Project.find(outcome.run.path), resume=outcome.run)
    assert done.report.counts["passed"] == 60


def test_the_votes_of_a_rollout_are_shown_with_what_they_rest_on(shop):
    with serving(PanelStub(broken=("c",))) as url:
        outcome = evaluated(shop(url, items=1, max_attempts=1))
    said = verdict_of(outcome.run, "item-0000")
    text = "\n".join(verdict_lines(said))
    assert "accuracy 1, effectiveness 1, avg 1" in text
    assert "vote of a (a@" in text
    assert "accuracy: a finds nothing" in text
    assert "evidence reply" in text
    assert "vote of c" in text
    assert "unscored, policy: server" in text
    assert verdict_of(outcome.run, "item-0009") is None
