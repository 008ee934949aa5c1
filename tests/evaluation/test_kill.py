"""kill -9 and ^C of a real `harness eval` process, at random moments."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time

import pytest
from faulty_endpoint import Endpoint, serving

from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.store.journal import cut_torn_tail, scan
from harness_cli.store.runs import RunStore

C = 8
JUDGE = "grounded"


def harness(project, *words):
    command = [sys.executable, "-m", "harness_cli.main", *words, "--judge", JUDGE]
    return subprocess.Popen(
        command, cwd=project.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def evaluated(project, **options):
    return asyncio.run(
        evaluate(project, EvalOptions(evalset="bench", concurrency=C, judge=JUDGE, **options))
    )


def started(endpoint, calls, process):
    """Wait until the endpoint has been asked so often."""
    while endpoint.calls.total() < calls:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def models(run):
    return [line for line in scan(run.journal) if line.kind == "model"]


def killed_and_resumed(make_project, seeds, *, items):
    endpoint = Endpoint(think_s=0.02)
    with serving(endpoint) as url:
        # Limits that a busy machine does not reach: a call asked again for a stall of the test's
        # own server is none that a kill repeated.
        project = make_project(url, items=items, stall_timeout_s=60, attempt_timeout_s=60)
        whole = evaluated(project).run.canonical.read_bytes()
        for seed in seeds:
            endpoint.calls.clear()
            endpoint.answers.clear()
            rng = random.Random(seed)
            process = harness(project, "eval", "bench", "--concurrency", str(C), "--quiet")
            started(endpoint, rng.randrange(1, 2 * items - 2 * C), process)
            time.sleep(rng.uniform(0, 0.03))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            run = RunStore(project.runs).list()[0]
            asked, answered = endpoint.calls.total(), endpoint.answers.total()
            cut_torn_tail(run.journal)
            recorded = len(models(run))
            # What the server had answered is recorded but for what was on its way back.
            assert answered - C <= recorded <= asked
            assert run.status() == "killed"
            outcome = evaluated(project, resume=run)
            assert outcome.report.status == "complete"
            assert outcome.report.counts["passed"] == items
            assert run.canonical.read_bytes() == whole
            repeated = endpoint.calls.total() - 2 * items
            assert 0 <= repeated <= min(C, asked - recorded)


def test_kills_at_random_moments_lose_nothing_and_repeat_only_what_was_in_flight(make_project):
    killed_and_resumed(make_project, range(3), items=60)


@pytest.mark.accept
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_kills_at_random_moments(make_project):
    killed_and_resumed(make_project, range(100, 120), items=150)


def test_a_run_killed_twice_is_still_the_same_run(make_project):
    endpoint = Endpoint(think_s=0.02)
    with serving(endpoint) as url:
        project = make_project(url, items=80)
        whole = evaluated(project).run.canonical.read_bytes()
        endpoint.calls.clear()
        process = harness(project, "eval", "bench", "--concurrency", str(C), "-q")
        for calls in (40, 90):
            started(endpoint, calls, process)
            process.kill()
            process.communicate()
            run = RunStore(project.runs).list()[0]
            process = harness(project, "eval", "--resume", run.id, "--concurrency", str(C), "-q")
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert "passed 80 / failed 0 / unscored 0 / errored 0 of 80" in out
        assert run.canonical.read_bytes() == whole
        assert endpoint.calls.total() - 160 <= 2 * C


def test_ctrl_c_finishes_what_is_in_flight_writes_and_says_how_to_resume(make_project):
    endpoint = Endpoint(think_s=0.05)
    with serving(endpoint) as url:
        project = make_project(url, items=100)
        process = harness(project, "eval", "bench", "--concurrency", str(C))
        started(endpoint, 40, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        run = RunStore(project.runs).list()[0]
        assert process.returncode == 130
        assert f"harness eval --resume {run.id}" in err
        assert "Traceback" not in err
        assert endpoint.in_flight == 0
        assert len(models(run)) == endpoint.calls.total()  # nothing in flight was thrown away
        report = run.report()
        assert report.status == "interrupted"
        assert report.counts["missing"] > 0
        assert sum(report.counts.values()) == 100
        assert "of 100 (interrupted)" in out
        again = evaluated(project, resume=run)
    assert again.report.counts["passed"] == 100
    assert set(endpoint.calls.values()) == {1}


def test_a_second_ctrl_c_stops_at_once_and_the_run_is_still_resumable(make_project):
    endpoint = Endpoint(think_s=0.01)
    with serving(endpoint) as url:
        project = make_project(url, items=60, stall_timeout_s=60, attempt_timeout_s=60)
        process = harness(project, "eval", "bench", "--concurrency", str(C))
        started(endpoint, 30, process)
        endpoint.faults = {"hang": 1.0}
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None  # it waits for calls that never come back
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=10)
        assert process.returncode == 130
        assert "--resume" in err
        endpoint.faults = {}
        run = RunStore(project.runs).list()[0]
        outcome = evaluated(project, resume=run)
    assert outcome.report.counts["passed"] == 60


def test_a_term_signal_is_taken_as_ctrl_c(make_project):
    endpoint = Endpoint(think_s=0.05)
    with serving(endpoint) as url:
        project = make_project(url, items=100)
        process = harness(project, "eval", "bench", "--json", "-q")
        started(endpoint, 10, process)
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"


def test_two_processes_of_the_same_evaluation_exclude_each_other(make_project):
    endpoint = Endpoint(think_s=0.5)
    with serving(endpoint) as url:
        project = make_project(url, items=400)
        first = harness(project, "eval", "bench", "-q")
        started(endpoint, 4, first)
        second = harness(project, "eval", "bench", "-q")
        _, err = second.communicate(timeout=60)
        assert second.returncode == 12
        assert f"process {first.pid}" in err
        third = harness(project, "eval", "bench", "-q", "--if-locked", "skip")
        out, err = third.communicate(timeout=60)
        assert third.returncode == 0
        assert "skipped" in err
        assert out == ""
        first.kill()
        first.communicate()
