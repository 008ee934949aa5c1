import asyncio
import json

import msgspec
import pytest
from aiohttp import web
from faulty_endpoint import Endpoint, answer, serving

from harness_cli.errors import BudgetReached, HarnessError, Interrupted, Locked, Stale, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.records.config import PolicyConfig
from harness_cli.store.journal import scan
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunStore


def run(project, observe=None, **options):
    chosen = {"evalset": "bench", "concurrency": 8, **options}
    return asyncio.run(evaluate(project, EvalOptions(**chosen), observe=observe))


def records(run_folder):
    return [json.loads(line.data) for line in scan(run_folder.journal)]


@pytest.fixture
def endpoint():
    endpoint = Endpoint()
    with serving(endpoint) as endpoint.url:
        yield endpoint


def test_every_item_is_asked_judged_and_counted(endpoint, make_project):
    outcome = run(make_project(endpoint.url, items=30))
    report = outcome.report
    assert report.status == "complete"
    assert report.counts == {"passed": 30, "failed": 0, "unscored": 0, "errored": 0, "missing": 0}
    assert report.planned == 30
    assert set(endpoint.calls.values()) == {1}
    assert len(endpoint.calls) == 60
    results = list(outcome.run.results())
    assert [r.item_id for r in results] == [f"item-{n:04d}" for n in range(30)]
    assert [r.reply for r in results] == [answer(n) for n in range(30)]
    assert report.usage["calls"] == 60
    assert report.usage["cost"] is None
    assert report.usage["results_without_cost"] == 30


def test_the_journal_has_one_record_a_model_call_tool_call_verdict_and_item(endpoint, make_project):
    outcome = run(make_project(endpoint.url, items=5))
    kinds = [record["kind"] for record in records(outcome.run)]
    counted = {kind: kinds.count(kind) for kind in set(kinds)}
    assert counted == {
        "note": 1,
        "model": 10,
        "tool": 5,
        "text": 1,
        "trajectory": 5,
        "verdict": 5,
        "item": 5,
    }


def test_a_long_prompt_is_journaled_once_and_trajectories_come_back_whole(endpoint, make_project):
    outcome = run(make_project(endpoint.url, items=12))
    size = outcome.run.journal.stat().st_size
    trajectories = list(outcome.run.trajectories())
    assert len(trajectories) == 12
    prompts = {t.steps[0].messages[0]["content"] for t in trajectories}
    assert len(prompts) == 1
    assert len(prompts.pop().encode()) >= 8192
    assert size < 8192 + 12 * 6000
    one = outcome.run.trajectory("item-0003")
    assert one.item_id == "item-0003"
    assert one.reply == answer(3)
    assert one.steps[0].messages[1]["content"].strip() == "What about SID=3 today?"


def test_repeats_have_their_own_seeds_and_give_pass_hat_k(endpoint, make_project):
    outcome = run(make_project(endpoint.url, items=4), repeat=3, seed=5)
    report = outcome.report
    assert report.planned == 12 == report.counts["passed"]
    assert report.pass_hat == {"1": 1.0, "2": 1.0, "3": 1.0}
    assert {body["seed"] for body in endpoint.bodies} == {5, 6, 7}
    assert [(r.item_id, r.repeat) for r in outcome.run.results()][:3] == [
        ("item-0000", 0),
        ("item-0000", 1),
        ("item-0000", 2),
    ]


def test_the_canonical_report_has_no_clock_run_or_process_in_it(endpoint, make_project):
    project = make_project(endpoint.url, items=10)
    one = run(project, concurrency=1)
    two = run(project, concurrency=7)
    assert one.run.id != two.run.id
    assert one.run.canonical.read_bytes() == two.run.canonical.read_bytes()
    canonical = json.loads(one.run.canonical.read_bytes())
    assert len(canonical["items"]) == 10
    assert one.run.id not in one.run.canonical.read_text()


def test_an_endpoint_that_is_down_stops_the_run_early_and_says_why(make_project):
    outcome = run(make_project(items=200, max_attempts=1), concurrency=4)
    assert outcome.report.status == "failed"
    assert outcome.report.counts["errored"] < 60
    assert outcome.report.counts["missing"] > 100
    assert sum(outcome.report.counts.values()) == 200
    with pytest.raises(Exception, match="provider failed") as caught:
        outcome.check()
    assert caught.value.exit_code == 1


def test_errored_items_are_asked_again_by_a_resume(make_project):
    endpoint = Endpoint(faults={"500": 0.35}, seed=3)
    with serving(endpoint) as url:
        project = make_project(url, items=40, max_attempts=1)
        first = run(project)
        first.check()  # complete, with errored items: not an error
        assert first.report.counts["errored"] > 5
        assert first.report.counts["errored"] + first.report.counts["passed"] == 40
        endpoint.faults = {}
        calls = endpoint.calls.total()
        second = run(project, resume=first.run)
    assert second.report.counts["passed"] == 40
    # Only what failed was asked again: a first turn that was answered is not.
    assert endpoint.calls.total() - calls <= 2 * first.report.counts["errored"]
    assert {n for (_, turn), n in endpoint.answers.items() if turn == 2} == {1}
    trajectories = list(second.run.trajectories())
    assert len(trajectories) == 40
    assert not any(t.errored for t in trajectories)


def test_a_resume_of_another_question_is_refused_with_the_fields(endpoint, make_project):
    project = make_project(endpoint.url, items=6)
    first = run(project, limit=3, seed=1)
    with pytest.raises(
        Stale, match=r"limit: was `3`, is `4`(.|\n)*seed: was `1`, is `2`"
    ) as caught:
        run(project, resume=first.run, limit=4, seed=2)
    assert caught.value.exit_code == 12


def test_a_resume_with_a_changed_policy_evalset_or_judge_is_refused(endpoint, make_project):
    project = make_project(endpoint.url, items=6)
    first = run(project, limit=3)
    policy = msgspec.structs.replace(project.config.policies["stub"], model="other")
    config = msgspec.structs.replace(project.config, policies={"stub": policy})
    with pytest.raises(Stale, match="policy_id"):
        run(Project(root=project.root, config=config), resume=first.run)
    with pytest.raises(Stale, match="judge"):
        run(project, resume=first.run, judge="none")
    items = project.root / "evalsets/bench/items.jsonl"
    items.write_text(items.read_text().replace("today", "tonight"))
    with pytest.raises(Stale, match=r"evalset\.digest"):
        run(project, resume=first.run)


def test_a_resume_takes_the_harness_of_the_run_not_the_working_files(endpoint, make_project):
    project = make_project(endpoint.url, items=4)
    base = project.root / "harness_repo/prompts/blocks/base.md"
    base.write_text(base.read_text() + "\nUncommitted.\n")
    first = run(project, budget=Budget(tokens=1))
    config = first.run.config()
    assert config.dirty
    assert config.harness_ref == f"refs/harness/runs/{first.run.id}"
    assert config.harness_ref in Repo.open(project.harness).refs("refs/harness/runs")
    base.write_text("Something else.\n")
    second = run(project, resume=first.run)
    assert second.report.status == "complete"
    assert all("Uncommitted." in body["messages"][0]["content"] for body in endpoint.bodies)


def test_a_token_budget_stops_before_a_call_and_a_resume_finishes(endpoint, make_project):
    project = make_project(endpoint.url, items=30)
    first = run(project, budget=Budget(tokens=2000), concurrency=4)
    spent = first.report.timing["calls"] * 111
    assert first.report.status == "budget"
    assert 1000 < spent <= 2000 + 4 * 111
    with pytest.raises(BudgetReached, match="tokens is reached") as caught:
        first.check()
    assert caught.value.exit_code == 13
    assert f"--resume {first.run.id}" in caught.value.hint
    second = run(project, resume=first.run)
    assert second.report.status == "complete"
    assert set(endpoint.calls.values()) == {1}


def test_a_server_without_usage_is_bounded_by_estimated_tokens(make_project):
    endpoint = Endpoint(usage=False)
    with serving(endpoint) as url:
        outcome = run(make_project(url, items=30), budget=Budget(tokens=20_000), concurrency=2)
    assert outcome.report.status == "budget"
    assert 2 <= endpoint.answers.total() <= 12  # a prompt of 8 KB is about 2,000 tokens
    assert outcome.report.usage["results_without_usage"] == outcome.report.counts["passed"]


def test_a_money_bound_with_an_unknown_price_is_refused_before_any_call(endpoint, make_project):
    with pytest.raises(UsageError, match=r"price of `stub` is unknown"):
        run(make_project(endpoint.url), budget=Budget(cost=1.0))
    assert not endpoint.calls


def test_a_money_bound_stops_a_priced_policy(endpoint, make_project):
    project = make_project(endpoint.url, items=50, price={"input": 10.0, "output": 10.0})
    outcome = run(project, budget=Budget(cost=0.02), concurrency=2)
    assert outcome.report.status == "budget"
    assert outcome.stopped == "cost"
    assert 0.01 < outcome.report.usage["cost"] <= 0.0205


def test_seconds_are_a_budget_too(make_project):
    with serving(Endpoint(think_s=0.05)) as url:
        outcome = run(make_project(url, items=200), budget=Budget(seconds=0.5), concurrency=2)
    assert outcome.stopped == "seconds"
    assert 0 < outcome.report.counts["passed"] < 100


def test_the_same_evaluation_is_not_paid_for_twice_at_once(endpoint, make_project):
    project = make_project(endpoint.url, items=4)
    first = run(project, limit=2)
    with (
        locked(first.run.lock, what="another process"),
        pytest.raises(Locked, match="another process"),
    ):
        run(project, resume=first.run)
    run(project, resume=first.run)


def test_a_bare_prompt_that_the_judge_has_nothing_to_say_about_is_left_to_its_assertions(
    make_project, tmp_path
):
    def bare(n):
        prompt = {"prompt": "Write a line with the word tea in it."}
        return {"id": f"b{n}", "request": prompt, "assert": [{"type": "contains", "value": "tea"}]}

    project = make_project(items=2, item=bare)
    file = tmp_path / "answers.jsonl"
    file.write_text('{"id": "b0", "reply": "A cup of tea."}\n{"id": "b1", "reply": "Coffee."}\n')
    outcome = run(project, responses=file, judge="grounded")
    assert [r.state for r in outcome.run.results()] == ["passed", "failed"]


def test_given_answers_are_scored_without_a_policy(make_project, tmp_path):
    project = make_project(items=5)
    lines = [{"id": f"item-{n:04d}", "reply": answer(n) if n else "no idea"} for n in range(4)]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    outcome = run(project, responses=file, judge="none")
    states = {r.item_id: r.state for r in outcome.run.results()}
    assert states == {
        "item-0000": "failed",
        "item-0001": "passed",
        "item-0002": "passed",
        "item-0003": "passed",
        "item-0004": "errored",
    }
    assert outcome.run.config().policy_id.startswith("responses@")
    assert outcome.report.timing == {**outcome.report.timing, "fresh": False}


def test_a_judge_that_breaks_leaves_items_unscored_with_the_reason(
    endpoint, make_project, monkeypatch
):
    async def broken(self, item, trajectory, world, *, calls=None):
        if item.id.endswith("3"):
            raise ZeroDivisionError("no scale")
        return await whole(self, item, trajectory, world, calls=calls)

    from harness_cli.judges.grounded.judge import GroundedJudge

    whole = GroundedJudge.judge
    monkeypatch.setattr(GroundedJudge, "judge", broken)
    outcome = run(make_project(endpoint.url, items=20))
    counts = outcome.report.counts
    assert counts == {"passed": 18, "failed": 0, "unscored": 2, "errored": 0, "missing": 0}
    bad = [r for r in outcome.run.results() if r.state == "unscored"]
    assert all("judge: ZeroDivisionError: no scale (line" in r.error for r in bad)
    accuracy = next(m for m in outcome.report.metrics if m.metric == "accuracy")
    assert (accuracy.scored, accuracy.of) == (18, 20)


def test_a_secret_in_an_answer_or_an_item_is_written_nowhere(make_project, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "abcdefgh-not-shaped-like-a-key")
    secret = "sk-proj-Ab3dEfGh1jKlMnOpQrStUv"

    def leaking(n):
        item = {"id": f"i{n}", "request": {"comments": [{"text": f"SID={n} {secret}"}]}}
        returned = {"token": "abcdefgh-not-shaped-like-a-key"}
        return {**item, "tool_returns": {"lookup": returned}}

    with serving(Endpoint()) as url:
        outcome = run(make_project(url, items=3, item=leaking), judge="none")
    written = b"".join(p.read_bytes() for p in outcome.run.path.iterdir())
    assert secret.encode() not in written
    assert b"abcdefgh-not" not in written
    assert b"[redacted]" in written


def test_a_secret_in_an_error_or_a_hook_is_written_nowhere(make_project, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "hunter2-but-longer")
    endpoint = Endpoint(faults={"500": 1.0})

    async def refuse(request, body):
        return web.json_response({"error": {"message": "no hunter2-but-longer"}}, status=400)

    endpoint._answer = refuse
    with serving(endpoint) as url:
        outcome = run(make_project(url, items=3), judge="none")
    assert outcome.report.counts["errored"] == 3
    assert "[redacted]" in outcome.run.result("item-0000").error
    written = b"".join(p.read_bytes() for p in outcome.run.path.iterdir())
    assert b"hunter2" not in written


def test_reports_that_cannot_be_written_lose_nothing(endpoint, make_project, monkeypatch):
    project = make_project(endpoint.url, items=3)

    def full(*args, **named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("harness_cli.evaluation.summary.atomic_file", full)
        with pytest.raises(HarnessError, match="No space left") as caught:
            run(project)
    (left,) = RunStore(project.runs).list()
    assert f"--resume {left.id}" in caught.value.hint
    assert left.status() == "killed"
    assert run(project, resume=left).report.counts["passed"] == 3
    assert set(endpoint.calls.values()) == {1}


def test_progress_counts_up_to_the_plan(endpoint, make_project):
    seen = []
    run(make_project(endpoint.url, items=10), observe=lambda p: seen.append((p.done, p.planned)))
    assert seen == [(n, 10) for n in range(1, 11)]


def test_an_interrupted_run_says_how_to_go_on(endpoint, make_project):
    outcome = run(make_project(endpoint.url, items=3))
    report = msgspec.structs.replace(outcome.report, status="interrupted")
    object.__setattr__(outcome, "report", report)
    with pytest.raises(Interrupted) as caught:
        outcome.check()
    assert caught.value.exit_code == 130
    assert f"harness eval --resume {outcome.run.id}" in caught.value.hint


def test_runs_are_found_by_id_beginning_or_newest(endpoint, make_project):
    project = make_project(endpoint.url, items=2)
    store = RunStore(project.runs)
    first = run(project)
    second = run(project, limit=1)
    assert [r.id for r in store.list()] == [second.run.id, first.run.id]
    assert store.get(first.run.id).status() == "complete"
    assert store.get("latest").id == second.run.id == store.newest(evalset="bench").id
    assert store.newest(fits=lambda c: c.limit is None).id == first.run.id


def test_a_policy_of_another_kind_needs_no_endpoint(make_project):
    project = make_project(items=3)
    script = project.root / "script.yaml"
    script.write_text("schema: 1\nrules: [{replies: [{text: hello}]}]\n")
    policies = {"stub": PolicyConfig(kind="scripted", script="script.yaml")}
    config = msgspec.structs.replace(project.config, policies=policies)
    outcome = run(Project(root=project.root, config=config), limit=1)
    assert outcome.report.status == "complete"
