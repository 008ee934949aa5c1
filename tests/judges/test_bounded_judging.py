"""A calibration within a budget: what was voted is kept, and the same command goes on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judging_endpoint import JudgeEndpoint, in_turns, panel_project, serving, verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call

from harness_cli.errors import BudgetReached, UsageError
from harness_cli.evaluation.bounded_judging import Bounds, all_of, judge_within, spent_words
from harness_cli.evaluation.calibrating import measure_judge, record_path
from harness_cli.evaluation.gate import Budget, Spending
from harness_cli.evaluation.labelled import labels_of
from harness_cli.judges.label_file import read_label_file
from harness_cli.records.verdict import Verdict

ALL_GOOD = in_turns(verdict(accuracy=1, effectiveness=1))
MODELS = {"a": ALL_GOOD, "b": ALL_GOOD, "c": ALL_GOOD}
JUDGES = {"final": {"panel": ["a", "b", "c"]}}
REPLIES = 12
VOTE_CALLS, VOTE_TOKENS = 2, 220
"""Of one vote here: the rubrics and the verdict, 100 + 10 tokens each."""


def project_with(root, url, **settings):
    project = panel_project(root, url, MODELS, JUDGES, **settings)
    labels = root / "labels.jsonl"
    line = {
        "room": "room-beauty",
        "current_link": 1,
        "comments": ["how much is #1"],
        "expect": {"answers": ["price"]},
        "labels": [{"annotator": "ann", "accuracy": 1, "effectiveness": 1}],
    }
    rows = [{**line, "id": f"r-{n}", "reply": f"Reply {n}."} for n in range(REPLIES)]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = root / "evalsets"
    folder.mkdir(exist_ok=True)
    shipped = Path(__file__).parents[2] / "evalsets" / "catalogue"
    if not (folder / "catalogue").exists():
        (folder / "catalogue").symlink_to(shipped)
    return project, labels_of(project, read_label_file(labels), "live_stream_qa", None, "human")


def measured(project, labels, **bounds):
    made = Bounds(Budget(**bounds))
    return made, lambda: asyncio.run(measure_judge(project, "final", labels, bounds=made))


def test_a_budget_stops_between_replies_and_what_was_voted_is_not_asked_again(tmp_path):
    endpoint = JudgeEndpoint(MODELS)
    with serving(endpoint) as url:
        project, labels = project_with(tmp_path / "p", url)
        bounds, go = measured(project, labels, tokens=5 * 3 * VOTE_TOKENS)
        with pytest.raises(BudgetReached, match=r"budget of tokens is reached: \d+ of 12 replies"):
            go()
        spent = endpoint.calls.total()
        assert 0 < bounds.spending.tokens <= 5 * 3 * VOTE_TOKENS
        assert spent % (3 * VOTE_CALLS) == 0, "a reply that was begun got all its votes"
        _, again = measured(project, labels)
        report = again().report
    assert (report.n, report.unscored) == (REPLIES, 0)
    assert endpoint.calls.total() == REPLIES * 3 * VOTE_CALLS, "nothing was asked twice"


def test_a_budget_smaller_than_one_reply_still_makes_progress(tmp_path):
    endpoint = JudgeEndpoint(MODELS)
    with serving(endpoint) as url:
        project, labels = project_with(tmp_path / "p", url)
        for attempt in (1, 2, 3):
            _, go = measured(project, labels, tokens=1)
            with pytest.raises(BudgetReached, match=f"{attempt} of 12"):
                go()
            assert endpoint.calls.total() == attempt * 3 * VOTE_CALLS
        assert endpoint.most_in_flight <= 3, "until one reply's cost is known, one by one"


def test_money_needs_a_price_and_is_counted_with_one(tmp_path):
    endpoint = JudgeEndpoint(MODELS)
    with serving(endpoint) as url:
        project, labels = project_with(tmp_path / "p", url)
        _, go = measured(project, labels, cost=1.0)
        with pytest.raises(UsageError, match="price of `a` is unknown"):
            go()
        assert endpoint.calls.total() == 0
        price = {"input": 1000.0, "output": 0.0}
        project, labels = project_with(tmp_path / "q", url, price=price)
        bounds, go = measured(project, labels, cost=1.3)
        with pytest.raises(BudgetReached, match="budget of cost"):
            go()
    assert 0.6 <= bounds.spending.cost <= 1.3


def test_no_time_asks_nothing(tmp_path):
    endpoint = JudgeEndpoint(MODELS)
    with serving(endpoint) as url:
        project, labels = project_with(tmp_path / "p", url)
        _, go = measured(project, labels, seconds=0)
        with pytest.raises(BudgetReached, match="budget of seconds is reached: 0 of 12"):
            go()
    assert endpoint.calls.total() == 0


def test_the_command_exits_13_writes_no_record_and_goes_on(tmp_path):
    endpoint = JudgeEndpoint(MODELS)
    with serving(endpoint) as url:
        project, _ = project_with(tmp_path / "p", url)
        words = ["judge", "calibrate", "--judge", "final", "--labels", "labels.jsonl"]
        stopped = call(project.root, *words, "--max-tokens", "1500")
        assert stopped.code == 13, stopped.err
        assert "the same command goes on" in stopped.err
        assert not record_path(project, "final").exists()
        done = call(project.root, *words)
        assert done.code == 0, done.err
        assert "asked: " in done.err
    assert record_path(project, "final").exists()
    assert endpoint.calls.total() == REPLIES * 3 * VOTE_CALLS


def test_an_interrupt_lets_the_votes_in_flight_come_in(tmp_path):
    endpoint = JudgeEndpoint(MODELS, think_s=0.3)
    with serving(endpoint) as url:
        project, _ = project_with(tmp_path / "p", url)
        words = ["judge", "calibrate", "--judge", "final", "--labels", "labels.jsonl"]
        program = [sys.executable, "-m", "harness_cli.main", *words]
        started = subprocess.Popen(program, cwd=project.root, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while not endpoint.calls.total() and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(started.pid, signal.SIGINT)
        err = started.communicate(timeout=60)[1]
        assert started.returncode == 130, err
        assert "replies are judged" in err
        asked = endpoint.calls.total()
        assert asked % VOTE_CALLS == 0, "every vote that was begun came in"
        assert call(project.root, *words).code == 0
    assert endpoint.calls.total() == REPLIES * 3 * VOTE_CALLS


class Cached:
    """A judge that asks nobody."""

    name, id = "j", "j@0"

    async def judge(self, item, trajectory, world, *, calls=None):
        return Verdict(judge=self.id)


def test_replies_that_cost_nothing_never_wait_for_one_that_does():
    cases = [(None, None)] * 40
    bounds = Bounds(Budget(tokens=1))
    found = asyncio.run(judge_within(Cached(), cases, None, bounds))
    assert len(all_of(found, bounds)) == 40
    assert bounds.paid == 0


def test_what_was_spent_is_said_with_what_nobody_knows():
    known = Spending(calls=2, input_tokens=10, output_tokens=3, cost=0.5)
    assert spent_words(known) == "2 model calls, 10 + 3 tokens, $0.5000"
    unknown = Spending(calls=2, input_tokens=10, unknown_usage=1, unknown_cost=2)
    assert spent_words(unknown) == (
        "2 model calls, 10 + 0 tokens + unknown for 1 calls, cost unknown"
    )
    assert spent_words(Spending()) == "0 model calls"
