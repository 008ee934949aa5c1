"""Every time bound of METHODS §1, against a callee that really hangs, spins or will not stop."""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from harness_cli.errors import HookError
from harness_cli.models.scripted import ScriptedPolicy, tool_reply
from harness_cli.records.config import Limits
from harness_cli.records.trajectory import Route, StopReason, ToolErrorKind
from harness_cli.runtime.clock import within
from harness_cli.runtime.hooks.patterns import (
    STEPS,
    bounded,
    compiled,
    find,
    may_spin,
    may_take,
)
from harness_cli.runtime.process import run_process

LOOK = ("get_product", {"link_id": "1"})
SPIN = r"^(a+)+$"
SPUN = "a" * 40 + "b"


class Deaf:
    """A policy that never answers and swallows its cancellation."""

    name, id = "deaf", "deaf@1"

    def __init__(self, answers=(), seconds=3.0):
        self.answers, self.seconds = list(answers), seconds

    async def complete(self, request, deadline):
        if self.answers:
            return self.answers.pop(0)
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            try:
                await asyncio.sleep(end - time.monotonic())
            except asyncio.CancelledError:
                continue
        return None

    async def close(self):
        pass


def timed(run):
    started = time.monotonic()
    done = run()
    return done, time.monotonic() - started


async def deaf_tool(arguments=None):
    return await Deaf(seconds=1.5).complete(None, None)


def play_and_leave(stage, agent, request=None):
    """Run on a loop that is not waited out: what swallowed its cancellation is left behind."""
    from harness_cli.runtime.loop import rollout

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(rollout(request or stage.ask_for(), agent, request_id="r-1"))
    finally:
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False
        loop.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_first_call_that_never_answers_ends_at_its_bound(stage):
    agent = stage.agent([], limits=Limits(first_call_s=0.1, fallback_s=0.1))
    object.__setattr__(agent, "policy", Deaf())
    done, took = timed(lambda: play_and_leave(stage, agent))
    assert took < 1.0
    assert (done.stop, done.route) == (StopReason.TIMEOUT, Route.SUPPRESSED)
    assert not done.errored


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_later_call_has_its_own_bound(stage):
    agent = stage.agent([], limits=Limits(first_call_s=5, later_call_s=0.1, fallback_s=0.1))
    object.__setattr__(agent, "policy", Deaf([tool_reply(LOOK)]))
    done, took = timed(lambda: play_and_leave(stage, agent))
    assert took < 1.0
    assert done.stop is StopReason.TIMEOUT
    assert len(done.calls) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_without_a_profile_bound_the_ceiling_holds_and_it_is_the_providers_error(stage):
    agent = stage.agent([], limits=Limits(call_ceiling_s=0.1, fallback_s=0.1))
    object.__setattr__(agent, "policy", Deaf())
    done, took = timed(lambda: play_and_leave(stage, agent))
    assert took < 1.0
    assert done.stop is StopReason.PROVIDER_ERROR


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_first_policy_that_hangs_is_replaced_by_the_fallback_for_one_call(stage):
    agent = stage.agent(
        [], limits=Limits(first_call_s=0.1), fallback=ScriptedPolicy(["Here I am."])
    )
    object.__setattr__(agent, "policy", Deaf())
    done = play_and_leave(stage, agent)
    assert done.reply == "Here I am."
    assert done.steps[0].error.startswith("timeout:")


def test_a_stream_that_stalls_for_good_ends_at_the_bound_by_the_loops_clock(stage):
    async def stalls(request):
        await asyncio.sleep(30)

    done, took = timed(
        lambda: stage.run([stalls, "Back."], limits=Limits(first_call_s=0.1, fallback_s=1))
    )
    assert took < 1.0
    assert (done.stop, done.route, done.reply) == (StopReason.TIMEOUT, Route.COMPACT, "Back.")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_tool_that_never_returns_is_a_typed_timeout(stage):
    deaf = stage.TableExecutor({"get_product": deaf_tool})
    agent = stage.agent(
        [tool_reply(LOOK), "I could not look it up."],
        state=stage.state(tools=(stage.tool("get_product", "link_id", executor="python"),)),
        executors={"python": deaf},
        limits=Limits(tool_s=0.1),
    )
    done, took = timed(lambda: play_and_leave(stage, agent))
    assert took < 1.0
    assert done.calls[0].result.error is ToolErrorKind.TIMEOUT
    assert done.stop is StopReason.COMPLETED


def test_the_whole_trajectory_has_a_bound_and_goes_on_by_the_compact_route(stage):
    async def slow(arguments):
        await asyncio.sleep(30)

    done, took = timed(
        lambda: stage.run(
            [tool_reply(("get_product", {"link_id": 1})), "Short answer."],
            answers={"get_product": slow},
            limits=Limits(trajectory_s=0.15, tool_s=5, fallback_s=1),
        )
    )
    assert took < 1.0
    assert (done.stop, done.route) == (StopReason.TIMEOUT, Route.COMPACT)
    assert done.reply == "Short answer."


def test_the_compact_route_stays_within_end_to_end(stage):
    async def stalls(request):
        await asyncio.sleep(30)

    limits = Limits(first_call_s=0.1, fallback_s=5, end_to_end_s=0.2, enforce_end_to_end=True)
    done, took = timed(lambda: stage.run([stalls, stalls], limits=limits))
    assert took < 1.0
    assert done.route is Route.SUPPRESSED


def test_a_regular_expression_that_spins_is_a_failed_hook_and_closed_means_refused(stage):
    gate = stage.hook(
        "spin", "before_reply", "forbid_pattern", "deny", settings={"patterns": [SPIN]}
    )
    done, took = timed(lambda: stage.run([SPUN], gate, limits=Limits(hook_s=0.1)))
    assert took < 2.0
    assert (done.stop, done.route) == (StopReason.GATE_FAILED, Route.SUPPRESSED)
    [event] = done.steps[0].hooks
    assert event.outcome == "failed"
    assert "0.1 s" in event.reason


@pytest.mark.parametrize("pattern", [r"(a|aa)+$", r"(a{1,10})+$", r"(a?b?)*$", r"(?:(?:a|b|ab))*$"])
def test_a_choice_or_a_short_repeat_inside_a_repeat_is_stopped_as_well(pattern):
    started = time.monotonic()
    with pytest.raises(HookError, match="more than"), bounded(0.1):
        find(compiled(pattern), "ab" * 40 + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + "!", 0.1)
    assert time.monotonic() - started < 5


def test_a_spinning_expression_is_stopped_away_from_the_main_thread_as_well():
    found = []

    def look():
        started = time.monotonic()
        with pytest.raises(HookError, match="more than"), bounded(0.2):
            find(compiled(SPIN), SPUN, 0.2)
        found.append(time.monotonic() - started)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(5)
    assert found
    assert found[0] < 2.0


def test_a_risky_expression_still_finds_what_it_should_away_from_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(find(compiled("(a+)+b"), "xaab")))
    thread.start()
    thread.join(10)
    assert found == ["aab"]


@pytest.mark.parametrize(
    ("pattern", "risky"),
    [
        (r"(a+)+$", True),
        (r".*a.*b", True),
        (r"(?:x|y*)*", True),
        (r"(a|aa)+$", True),
        (r"(a{1,10})+$", True),
        (r"(?:ab){2}+c", False),
        (r"(?:[ab]c)+d", False),
        (r"\bfree.*shipping\b", False),
        (r"\d{1,4} yuan", False),
        (r"(guarantee|promise)[a-z]*", False),
    ],
)
def test_only_patterns_with_more_than_one_unbounded_repeat_are_risky(pattern, risky):
    assert may_spin(pattern) is risky


def test_a_pattern_timer_leaves_no_timer_and_no_handler_behind():
    import signal

    before = signal.getsignal(signal.SIGVTALRM)
    with bounded(1.0):
        find(compiled("(a+)+b"), "xaab")
        assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGVTALRM) is before


@pytest.mark.parametrize(
    ("pattern", "text", "armed"),
    [
        (r"ship.*free.*", "how long does it ship", False),
        (r"ship.*free.*", "how long does it ship " * 20, True),
        (r"a{1,60}b{1,60}.*c.*d", "how long does it ship", True),
        (r"(x+)+y", "hi", True),
        (r"free.*shipping", "how long does it ship " * 100, False),
    ],
)
def test_the_timer_is_set_where_a_pattern_could_take_long_on_this_text(pattern, text, armed):
    import signal

    with bounded(1.0):
        find(compiled(pattern), text)
        assert (signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0) is armed


def test_the_time_a_short_text_may_take_without_a_timer_is_short():
    pattern, length = r"a*a*a*a*b", 1
    while may_take(pattern, length + 1) <= STEPS:
        length += 1
    started = time.process_time()
    with bounded(0.001):
        assert find(compiled(pattern), "a" * length) is None
    assert time.process_time() - started < 0.2


@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)"])
def test_a_command_hook_that_spins_or_sleeps_is_killed_at_its_bound(stage, code):
    gate = stage.hook("slow", "before_reply", action="deny", command=("{python}", "-c", code))
    done, took = timed(lambda: stage.run(["Hi."], gate, limits=Limits(hook_s=0.3)))
    assert took < 3.0
    assert done.steps[0].hooks[0].outcome == "failed"
    assert done.reply == ""


def test_a_killed_process_takes_its_children_along(tmp_path):
    code = (
        "import subprocess as s,sys,time\n"
        "p=s.Popen([sys.executable,'-c','import time;time.sleep(60)']);"
        "open('pid','w').write(str(p.pid));time.sleep(60)"
    )
    done = asyncio.run(run_process([sys.executable, "-c", code], b"", seconds=1.0, folder=tmp_path))
    assert done.timed_out
    assert gone(int((tmp_path / "pid").read_text()))


def test_children_that_hold_the_output_open_do_not_hold_us(tmp_path):
    code = (
        "import subprocess as s,sys;p=s.Popen([sys.executable,'-c','import time;time.sleep(60)']);"
        "open('pid','w').write(str(p.pid));print('{}')"
    )
    started = time.monotonic()
    done = asyncio.run(run_process([sys.executable, "-c", code], b"", seconds=20, folder=tmp_path))
    assert time.monotonic() - started < 5
    assert done.problem == ""
    assert done.stdout == b"{}\n"
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_process_that_writes_without_end_is_stopped_at_one_mebibyte(tmp_path):
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    done = asyncio.run(run_process([sys.executable, "-c", code], b"", seconds=10, folder=tmp_path))
    assert "1 MiB" in done.problem
    assert len(done.stdout) == 1 << 20


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = bytearray(3 << 30)", "MemoryError"),
        ("f = open('big', 'wb'); f.write(b'x' * (32 << 20)); f.flush(); print('wrote')", ""),
        ("fs = [open('/dev/null') for _ in range(200)]", "Too many open files"),
    ],
)
def test_memory_files_and_descriptors_are_bounded(tmp_path, code, expected):
    done = asyncio.run(run_process([sys.executable, "-c", code], b"", seconds=10, folder=tmp_path))
    assert done.code != 0
    assert expected in done.stderr
    assert b"wrote" not in done.stdout


def test_a_process_sees_no_key_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    done = asyncio.run(run_process([sys.executable, "-c", code], b"", seconds=10, folder=tmp_path))
    assert b"secret" not in done.stdout
    assert str(tmp_path).encode() in done.stdout


def test_a_program_that_is_not_there_is_a_problem_and_no_exception(tmp_path):
    done = asyncio.run(run_process(["no-such-program"], b"", seconds=5, folder=tmp_path))
    assert done.code == 127
    missing = tmp_path / "nowhere"
    done = asyncio.run(run_process(["true"], b"", seconds=5, folder=missing))
    assert done.problem.startswith("it could not be started")


def test_a_cancelled_wait_cancels_the_work():
    async def act():
        ended = asyncio.Event()

        async def work():
            try:
                await asyncio.sleep(30)
            finally:
                ended.set()

        waiting = asyncio.ensure_future(within(10, work()))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait_for(ended.wait(), 1)

    asyncio.run(act())


def gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_real_stream_that_stalls_half_way_ends_at_the_bound_of_the_profile(stage):
    from aiohttp import web

    from harness_cli.models.lean import LeanPolicy
    from harness_cli.records.config import PolicyConfig
    from harness_cli.runtime.loop import rollout

    half = b'data: {"choices": [{"index": 0, "delta": {"content": "It is"}}]}\n\n'

    async def stalls(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(half)
        await asyncio.sleep(30)
        return response

    async def act():
        app = web.Application()
        app.add_routes([web.post("/v1/chat/completions", stalls)])
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1"
        policy = LeanPolicy("stub", PolicyConfig(kind="openai", base_url=url, model="m"))
        limits = Limits(first_call_s=0.4, fallback_s=0.3)
        agent = stage.agent([], limits=limits)
        object.__setattr__(agent, "policy", policy)
        try:
            started = time.monotonic()
            done = await rollout(stage.ask_for(), agent, request_id="r")
            return done, time.monotonic() - started
        finally:
            await policy.close()
            await runner.cleanup()

    done, took = asyncio.run(act())
    assert took < 3.0
    assert (done.stop, done.route) == (StopReason.TIMEOUT, Route.SUPPRESSED)


@pytest.mark.parametrize(
    "text",
    [
        "<think>" * 40_000,
        "</think>" * 40_000,
        "<think>x</think>" * 20_000,
        "<" * 300_000,
        "\n" * 60_000,
        "- a " * 15_000,
        "-" + " " * 60_000,
        "[" * 60_000,
        "**" * 30_000,
        "1," * 30_000,
        "1" * 60_000,
        "<a " * 20_000,
        "{" * 60_000,
        "Hi. " * 15_000,
    ],
    ids=lambda text: f"{text[:8]!r}x{len(text)}",
)
def test_no_degenerate_answer_of_a_model_holds_the_loop(stage, text):
    hooks = [
        stage.hook("form", "after_model", "malformed_output", "allow"),
        stage.hook(
            "say",
            "before_reply",
            "output_format",
            "allow",
            settings={
                "forbid": ["markdown", "json", "tags", "urls", "list"],
                "language": "match_viewer",
            },
        ),
        stage.hook(
            "long", "before_reply", "length", "rewrite", settings={"constraint": "reply_words"}
        ),
        stage.hook(
            "plain",
            "before_reply",
            "output_format",
            "rewrite",
            settings={"forbid": ["list", "tags"]},
        ),
        stage.hook("true", "before_reply", "grounded_claims", "allow"),
        stage.hook("kind", "before_reply", "ai_identity", "allow"),
        stage.hook("oath", "before_reply", "unsupported_promise", "allow"),
    ]
    done, took = timed(lambda: stage.run([text, text], *hooks))
    assert took < 3.0
    assert done.error is None or not done.error.startswith("runtime:")
