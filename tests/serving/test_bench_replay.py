"""`harness bench replay` against real endpoints with every bad habit the issue names."""

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench_endpoint import Endpoint, project_at, serving

from harness_cli.errors import ProviderError, UsageError
from harness_cli.evaluation.agents import open_agent
from harness_cli.harness.load import load_state
from harness_cli.models.lean import LeanPolicy
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatRequest
from harness_cli.records.config import PolicyConfig
from harness_cli.runtime.ask import bounded_call
from harness_cli.serving.bench.arm import Arm, read_bench, resumed, run_arm
from harness_cli.serving.bench.figures import figures
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


def measured(tmp_path, endpoint, *, policy=None, **arm):
    """(the project, the run) of one arm against an endpoint."""

    async def go():
        async with serving(endpoint) as url:
            project = project_at(tmp_path / "p", url, **(policy or {}))
            given = {"policy": "stub", "evalset": "bench", "warm_up": 4} | arm
            return project, await run_arm(project, Arm(**given))

    return asyncio.run(go())


def test_warm_ups_are_over_before_anything_is_measured_and_are_left_out(tmp_path):
    endpoint = Endpoint(think_s=0.02)
    _, run = measured(tmp_path, endpoint, concurrency=4)
    assert endpoint.most == 4
    last_warm = max(end for sample, _, end in endpoint.spans if sample < 4)
    assert last_warm <= min(begun for sample, begun, _ in endpoint.spans if sample >= 4)
    assert [r.warm_up for r in run.requests].count(True) == 4
    numbers = figures(run)
    assert (numbers.measured, numbers.warm_up, numbers.missing) == (10, 4, 0)
    assert (numbers.succeeded, numbers.attainment) == (10, 1.0)


def test_a_run_is_bound_to_everything_that_made_it(tmp_path):
    project, run = measured(
        tmp_path,
        Endpoint(),
        concurrency=2,
        region="eu-central",
        policy={"temperature": 0.7, "checkpoint": {"uri": "file:///w", "sha256": "ab" * 32}},
    )
    contract = run.contract
    config = RunStore(project.runs).get(contract.run).config()
    assert contract.policy_id == config.policy_id
    assert contract.checkpoint.sha256 == "ab" * 32
    assert (contract.harness_id, contract.harness_commit) == (
        config.harness_id,
        config.harness_commit,
    )
    assert (contract.cases, contract.warm_up[0]) == (14, "bench-000000")
    assert contract.route.startswith("http://127.0.0.1:")
    assert (contract.concurrency, contract.client_region) == (2, "eu-central")
    assert contract.generation.temperature == 0.7
    assert (contract.limits.end_to_end_s, contract.bound_s) == (15.0, 15.0)
    assert contract.start
    assert contract.end
    assert abs(contract.clock_jump_s) < 1
    assert contract.status == "complete"
    call = run.measured[0].calls[0]
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (100, 20, 80)
    assert call.tokens_from == "usage"
    assert read_bench(RunStore(project.runs).get(contract.run)) == run


def test_times_are_those_of_the_wire(tmp_path):
    """Think 80 ms, decode 50 ms: TTFT, latency and decode speed follow from them."""
    _, run = measured(tmp_path, Endpoint(think_s=0.08, decode_s=0.05))
    for request in run.measured:
        assert len(request.calls) == 2
        for call in request.calls:
            assert 0.08 <= call.ttft_s < 0.2
            assert call.latency_s - call.ttft_s >= 0.05
            assert call.decode_tps == pytest.approx(20 / (call.latency_s - call.ttft_s))
            assert call.decode_tps <= 400
        spent = sum(c.latency_s for c in request.calls) + sum(t.latency_s for t in request.tools)
        assert spent <= request.wall_s
    numbers = figures(run)
    assert numbers.seconds["models"] > 0.26
    assert [row.n for row in numbers.by_call] == [10, 10]
    assert [(row.name, row.n) for row in numbers.by_tool] == [("lookup", 10)]
    assert numbers.shape.calls_per_request == 2
    assert numbers.shape.cached_share == 0.8


def test_a_role_chunk_at_once_is_seen_and_said(tmp_path):
    _, run = measured(tmp_path, Endpoint(think_s=0.12, role_first=True))
    numbers = figures(run)
    assert numbers.ttft.p95 < 0.1 < numbers.first_delta.p50
    assert "10 of 10 first calls" in numbers.warnings[0]
    honest = figures(measured(tmp_path / "other", Endpoint(think_s=0.01))[1])
    assert not any("role" in warning for warning in honest.warnings)


def test_without_usage_tokens_are_unknown_and_nothing_is_made_up(tmp_path):
    _, run = measured(tmp_path, Endpoint(usage=False))
    numbers = figures(run)
    assert {c.tokens_from for r in run.measured for c in r.calls} == {"none"}
    assert (numbers.calls_without_usage, numbers.decode.n, numbers.decode.mean) == (20, 0, None)
    assert numbers.shape.output_per_call is None
    assert "20 of 20 calls report no usage" in " ".join(numbers.warnings)


def test_failures_under_load_are_counted_retried_and_kept(tmp_path):
    """One item always fails, one call fails once: the first is a miss, the second a retry."""
    endpoint = Endpoint(refuse_items=("SID=7 ",), fail={9: 500})
    project, run = measured(tmp_path, endpoint, concurrency=1)
    numbers = figures(run)
    assert (numbers.measured, numbers.succeeded) == (10, 9)
    assert numbers.attainment == 0.9
    assert numbers.attainment_interval.low < 0.9
    (failed,) = [r for r in run.measured if not r.success]
    assert failed.item == "bench-000007"
    assert failed.calls[-1].error == "server"
    assert failed.calls[-1].latency_s > 0
    assert list(numbers.failures) == ["provider_error: server"]
    assert numbers.retries >= 1
    # A retried call's TTFT is from its first dispatch, its decode speed of the attempt that spoke.
    retried = [c for r in run.requests for c in r.calls if c.attempts > 1]
    assert all(c.ttft_s > 0.1 for c in retried)
    # A failure is a sample: going on with the run asks nothing again.
    asked = endpoint.asked
    again = asyncio.run(run_arm(project, resumed(RunStore(project.runs).get(run.contract.run))))
    assert endpoint.asked == asked
    assert again.requests == run.requests


def test_an_endpoint_that_dies_mid_run_leaves_failures_and_loses_nothing(tmp_path):
    endpoint = Endpoint(think_s=0.02)

    async def go():
        runner_gone = asyncio.Event()

        async def serve_until(url_ready):
            async with serving(endpoint) as url:
                url_ready.set_result(url)
                while len(endpoint.spans) < 17:
                    await asyncio.sleep(0.005)
            runner_gone.set()

        ready = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(serve_until(ready))
        project = project_at(tmp_path / "p", await ready, max_attempts=1)
        run = await run_arm(project, Arm(policy="stub", evalset="bench", warm_up=4))
        await server
        return run

    run = asyncio.run(go())
    numbers = figures(run)
    assert len(run.requests) == 14
    assert 0 < numbers.succeeded < 10
    assert sum(numbers.failures.values()) == 10 - numbers.succeeded
    assert set(numbers.call_failures) <= {"transport", "server"}


def test_a_killed_run_says_what_it_had_and_is_gone_on_with(tmp_path):
    endpoint = Endpoint(think_s=0.05)

    async def go():
        async with serving(endpoint) as url:
            project = project_at(tmp_path / "p", url)
            words = ["bench", "replay", "--evalset", "bench", "--warm-up", "4", "-q", "--json"]
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "harness_cli.main", *words, cwd=project.root,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            while len(endpoint.spans) < 16:
                await asyncio.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()
            (folder,) = RunStore(project.runs).list()
            killed = read_bench(folder)
            done = {r.item for r in killed.requests}
            run = await run_arm(project, resumed(folder))
            return killed, done, run

    killed, done, run = asyncio.run(go())
    assert (killed.contract.status, killed.contract.concurrency) == ("killed", 1)
    assert 6 <= len(done) < 14
    assert figures(killed).missing == 14 - len(killed.requests)
    assert run.contract.status == "complete"
    assert len(run.requests) == len({r.item for r in run.requests}) == 14
    assert run.contract.group == killed.contract.group
    kept = {r.item: r for r in killed.requests}
    assert all(kept[r.item] == r for r in run.requests if r.item in kept)
    # The one that was under way was made anew, from its first call.
    assert {len(r.calls) for r in run.requests} == {2}


def test_a_clock_that_jumps_changes_no_latency_and_is_told(tmp_path, monkeypatch):
    real, endpoint = time.time, Endpoint(think_s=0.03)
    # In the middle of the run, however slowly it came to its first request.
    monkeypatch.setattr(time, "time", lambda: real() + (3600 if endpoint.asked > 9 else 0))
    _, run = measured(tmp_path, endpoint)
    assert run.contract.clock_jump_s == pytest.approx(3600, abs=5)
    numbers = figures(run)
    assert numbers.wall.longest < 5
    assert any("clock jumped by +3600" in warning for warning in numbers.warnings)


def test_too_few_cases_are_refused(tmp_path):
    with pytest.raises(UsageError, match="leave none to measure"):
        measured(tmp_path, Endpoint(), limit=4)


def test_the_command_measures_levels_and_reports_them(tmp_path):
    """In one process each: two levels, two runs each, then their contrast with themselves."""
    endpoint = Endpoint()

    async def harness(project, *words):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "harness_cli.main", *words, cwd=project.root,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    async def go():
        async with serving(endpoint) as url:
            project = project_at(tmp_path / "p", url, items=8)
            words = ["bench", "replay", "--evalset", "bench", "--warm-up", "2", "-c", "1,2"]
            code, out, err = await harness(project, *words, "--runs", "2", "--json", "-q")
            assert code == 0, err
            made = json.loads(out)
            group = made["contracts"][0]["group"]
            page = tmp_path / "page.md"
            told = await harness(
                project, "bench", "report", group, "--against", group, "-o", str(page)
            )
            return made, told, page.read_text()

    made, (code, out, err), page = asyncio.run(go())
    assert [(g["concurrency"], len(g["runs"])) for g in made["groups"]] == [(1, 2), (2, 2)]
    assert made["groups"][0]["values"]["wall_p95"]["runs"] == 2
    assert (code, err) == (0, err)
    assert "speed-up" in out
    assert "| configuration |" in page
    for word in ("prefill", "tpot", "inter-token"):
        assert word not in (out + page).lower()


def test_a_benchmark_starts_the_tool_servers_before_its_first_request():
    """However few warm-ups there are, no measured request waits for a server to start."""
    project = Project.find(Path(__file__).parents[2])
    state = load_state(project)

    async def starts(started):
        agent = open_agent(
            project, state, "builtin", world=Catalogue(snapshot="none"), started=started
        )
        async with agent as opened:
            return dict(opened.executors["mcp"]._starts)

    assert state.mcp
    assert asyncio.run(starts(started=False)) == {}
    assert asyncio.run(starts(started=True)) == dict.fromkeys(state.mcp, 1)


def test_a_client_without_a_task_of_its_own_is_ended_by_our_clock():
    """A bound that is over ends `LeanPolicy`'s call and gives the connection back."""
    request = ChatRequest(messages=({"role": "user", "content": "SID=1 ?"},))

    async def go():
        async with serving(Endpoint(think_s=5.0)) as url:
            policy = LeanPolicy("stub", PolicyConfig(kind="openai", model="m", base_url=url))
            begun = time.monotonic()
            with pytest.raises(ProviderError, match=r"no answer within 0\.3 s") as raised:
                await bounded_call(policy, request, 0.3)
            await policy.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            clients = [t for t in others if "complete" in repr(t.get_coro())]
            return raised.value.kind, time.monotonic() - begun, clients

    kind, took, clients = asyncio.run(go())
    assert (kind, clients) == ("timeout", [])
    assert took < 3


def test_a_benchmark_leaves_the_garbage_collector_as_it_was(tmp_path):
    before = gc.get_threshold(), gc.isenabled()
    measured(tmp_path, Endpoint(), limit=6)
    assert (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()) == (*before, 0)
