"""Replicas behind the real `sglang-router`: balanced, added, removed, killed under load."""

import asyncio
import os
import signal

import pytest
from job_bench import ask, end_all, make_project, scripted, standin, until

from harness_cli.errors import ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.lean import LeanPolicy
from harness_cli.records.chat import ChatRequest
from harness_cli.records.config import PolicyConfig
from harness_cli.records.serve_job import Admission
from harness_cli.serving.control import down, switch, up
from harness_cli.serving.job_folder import JobFolder, runs

pytest.importorskip("sglang_router", reason="the extra `serve` is not installed")


@pytest.fixture
def project(tmp_path):
    made = make_project(tmp_path)
    yield made
    end_all(made)


async def load(url, count, concurrency, *, attempts=5, during=None):
    """(replies, failures) of a closed loop of clients that retry, and what they retried for."""
    config = PolicyConfig(kind="openai", model="agent", base_url=url, max_attempts=attempts)
    client = LeanPolicy("c", config)
    numbers = iter(range(count))
    replies, failures = [], []

    async def worker():
        for number in numbers:
            if during is not None:
                during(number)
            request = ChatRequest(messages=({"role": "user", "content": f"hi {number}"},))
            try:
                replies.append(await client.complete(request, Deadline.within(60)))
            except ProviderError as exc:
                failures.append(exc)

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    await client.close()
    return replies, failures


def served_by(replies):
    return {reply.content.rsplit(" ", 1)[-1] for reply in replies}


def test_two_replicas_share_the_load_and_more_come_and_go_while_it_runs(project):
    job = standin("pair", replicas=2, habits={"think_s": 0.05}, router=True)
    live, _ = up(project, job)
    assert live.router is not None
    replies, failures = asyncio.run(load(live.url, 24, 4))
    assert (len(replies), failures) == (24, [])
    ports = {reply.content.rsplit(" ", 1)[-1] for reply in replies}
    assert ports == {r.url.rsplit(":", 1)[-1] for r in live.replicas}

    grown = switch(project, "pair", replicas=3)
    assert [r.state for r in grown.replicas] == ["ready"] * 3
    assert len({r.worker_id for r in grown.replicas}) == 3
    replies, failures = asyncio.run(load(live.url, 36, 6))
    assert (len(served_by(replies)), failures) == (3, [])

    shrunk = switch(project, "pair", replicas=1)
    assert len(shrunk.replicas) == 1
    replies, failures = asyncio.run(load(live.url, 6, 2))
    assert (len(served_by(replies)), failures) == (1, [])


def test_a_replica_killed_under_load_costs_retries_and_no_answer(project):
    live, _ = up(project, standin("pair", replicas=2, habits={"think_s": 0.05}, router=True))
    victim = live.replicas[0].process.pid

    def during(number):
        if number == 12:
            os.kill(victim, signal.SIGKILL)

    replies, failures = asyncio.run(load(live.url, 60, 4, attempts=8, during=during))
    assert (len(replies), failures) == (60, [])
    # Every failure the client saw is counted on the reply that was got in spite of it.
    for reply in replies:
        assert reply.attempts == 1 + len(reply.retry_reasons)
    folder = JobFolder.of(project.root, "pair")
    until(lambda: all(r.state == "ready" for r in folder.live().replicas))
    assert folder.live().replicas[0].restarts == 1
    assert "ended with code -9" in " ".join(folder.live().events)


def test_with_retries_bounded_the_client_reports_what_it_could_not_get(project):
    live, _ = up(project, standin("pair", replicas=1, habits={"fail_every": 1}, router=True))
    replies, failures = asyncio.run(load(live.url, 3, 1, attempts=2))
    assert replies == []
    assert [(f.kind, "attempt 2" in str(f)) for f in failures] == [("server", True)] * 3


def test_admission_stands_at_the_router_and_the_queue_is_bounded(project):
    job = standin(
        "pair",
        habits={"think_s": 0.6},
        router=True,
        admission=Admission(per_replica=1, queue=2, queue_s=20),
    )
    live, _ = up(project, job)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        codes = sorted(code for code, _ in pool.map(lambda _: ask(live.url), range(8)))
    assert codes.count(200) >= 3
    assert set(codes) - {200} == {429}


def test_our_own_server_behind_the_router_is_switched_by_new_replicas_without_a_gap(project):
    live, _ = up(project, scripted(replicas=1))
    old = live.replicas[0]

    async def go():
        loading = asyncio.create_task(load(live.url, 30, 2))
        moved = await asyncio.to_thread(switch, project, "pair", model="other")
        return moved, await loading

    moved, (replies, failures) = asyncio.run(go())
    assert (len(replies), failures) == (30, [])
    assert [(r.number, r.model) for r in moved.replicas] == [(1, "other")]
    assert not runs(old.process)


def test_a_router_that_dies_is_started_again_and_knows_the_replicas(project):
    live, _ = up(project, standin("pair", router=True))
    os.kill(live.router.pid, signal.SIGKILL)
    folder = JobFolder.of(project.root, "pair")
    until(lambda: folder.live().router not in (None, live.router))
    until(lambda: folder.live().phase == "ready" and folder.live().replicas[0].worker_id)
    assert until(lambda: ask(live.url)[0] == 200)
    down(project.root, "pair")
    assert not runs(folder.live().router if folder.live() else None)
