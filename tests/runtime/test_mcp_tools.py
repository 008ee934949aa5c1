"""MCP over real processes and real HTTP: the shipped server, and servers that misbehave."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from harness_cli.errors import ToolError
from harness_cli.models.scripted import tool_reply
from harness_cli.records.config import Limits
from harness_cli.records.harness import McpLock, McpServer, Tool
from harness_cli.records.request import Request, Room
from harness_cli.records.trajectory import ToolErrorKind
from harness_cli.runtime.mcp import McpExecutor, locked
from harness_cli.runtime.mcp_server import Connection

RAW = Path(__file__).parent / "servers" / "raw.py"
CATALOGUE = Path(__file__).parents[2] / "evalsets" / "catalogue"
REQUEST = Request(room=Room(id="room-beauty"))


def server(mode, *more, start=10.0, call=5.0):
    return McpServer(
        command=("{python}", str(RAW), mode, *map(str, more)),
        start_timeout_s=start,
        call_timeout_s=call,
    )


ECHO = locked(
    Tool(
        name="echo",
        description="echoes",
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}},
        annotations={"readOnlyHint": True},
    ),
    "raw",
)
LOCK = McpLock(servers={"raw": {"echo": ECHO}})


def act(config, work, lock=LOCK):
    """Run `work` with an executor of one server and close it again."""

    async def run():
        executor = McpExecutor({"raw": config}, lock, catalogue=CATALOGUE)
        try:
            return await work(executor)
        finally:
            await executor.close()

    return asyncio.run(run())


def call(config, text="hi", lock=LOCK, tool=ECHO.tool):
    return act(config, lambda e: e.call(tool, {"text": text}, REQUEST), lock)


def test_the_sdk_is_not_loaded_before_a_server_is_needed():
    code = (
        "import sys\n"
        "from harness_cli.records.harness import McpLock\n"
        "from harness_cli.runtime.mcp import McpExecutor\n"
        "McpExecutor({}, McpLock(), catalogue=None)\n"
        "sys.exit('mcp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("mode", ["plain", "banner", "noise-in-call"])
def test_an_older_server_answers_whatever_else_it_prints(mode):
    done = call(server(mode))
    assert done.ok
    assert done.content == "hiroom-beauty"
    assert done.structured == {"t": "hi"}


@pytest.mark.parametrize(
    ("mode", "kind", "text"),
    [
        ("is-error", ToolErrorKind.UNAVAILABLE, "no stock"),
        ("typed-error", ToolErrorKind.NOT_FOUND, "gone"),
    ],
)
def test_is_error_is_an_error(mode, kind, text):
    done = call(server(mode))
    assert (done.ok, done.error, done.content) == (False, kind, text)


def test_content_that_is_no_text_is_named():
    assert call(server("image")).content == "[image]"


@pytest.mark.parametrize(
    ("config", "kind", "said"),
    [
        (server("never-answers", start=0.5), "timeout", "did not start within 0.5 s"),
        (server("silent-call", call=0.3), "timeout", "0.3 s|in time"),
        (server("dies-at-start"), "unavailable", "no such catalogue"),
        (server("invalid"), "malformed", "invalid"),
        (server("endless"), "malformed", "without end"),
        (server("drifted"), "unavailable", "changed `echo`"),
        (server("empty"), "unavailable", "no longer lists `echo`"),
        (McpServer(command=("no-such-program",)), "unavailable", "did not start"),
        (McpServer(command=()), "unavailable", "no command"),
        (McpServer(transport="http", url="http://127.0.0.1:9/mcp"), "unavailable", "did not start"),
    ],
)
def test_each_way_a_server_fails_is_a_typed_error_and_no_hang(config, kind, said):
    started = time.monotonic()
    with pytest.raises(ToolError, match=said) as caught:
        call(config)
    assert caught.value.kind == kind
    assert time.monotonic() - started < 12


def test_a_server_that_died_is_started_once_more(tmp_path):
    done = call(server("dies", tmp_path / "starts"))
    assert done.content == "hiroom-beauty"
    assert (tmp_path / "starts").read_text() == "2"


def test_a_call_that_may_have_changed_something_is_not_made_twice(tmp_path):
    import msgspec

    changing = msgspec.structs.replace(ECHO.tool, annotations={"readOnlyHint": False})
    lock = McpLock(servers={"raw": {"echo": locked(changing, "raw")}})
    tool = lock.servers["raw"]["echo"].tool
    with pytest.raises(ToolError, match="gone"):
        call(server("dies-changing", tmp_path / "starts"), lock=lock, tool=tool)
    assert (tmp_path / "starts").read_text() == "1"


def test_a_server_that_always_dies_is_started_twice_and_then_left(tmp_path):
    async def three_times(executor):
        said = []
        for _ in range(3):
            with pytest.raises(ToolError) as caught:
                await executor.call(ECHO.tool, {}, REQUEST)
            said.append(str(caught.value))
        return said

    said = act(server("always-dies", tmp_path / "starts"), three_times)
    assert (tmp_path / "starts").read_text() == "2"
    assert "died 2 times" in said[-1]


def test_calls_of_many_rollouts_share_one_server(tmp_path):
    async def many(executor):
        return await asyncio.gather(
            *(executor.call(ECHO.tool, {"text": str(n)}, REQUEST) for n in range(20))
        )

    done = act(server("plain", tmp_path / "starts"), many)
    assert [d.structured["t"] for d in done] == [str(n) for n in range(20)]
    assert (tmp_path / "starts").read_text() == "1"


def test_a_server_that_will_not_end_is_killed(tmp_path):
    async def pid_of(executor):
        await executor.call(ECHO.tool, {}, REQUEST)
        return children()

    pids = act(server("ignores-close"), pid_of)
    assert pids
    assert not [p for p in pids if Path(f"/proc/{p}").exists() and "raw.py" in cmdline(p)]


def test_a_renamed_tool_reaches_its_server_under_its_own_name():
    renamed = msgspec.structs.replace(ECHO.tool, name="repeat_words")
    assert call(server("plain"), tool=renamed).ok


def test_a_rollout_starts_a_server_outside_the_limit_of_the_call(stage):
    async def run():
        executor = McpExecutor({"raw": server("plain")}, LOCK, catalogue=CATALOGUE)
        from harness_cli.runtime.loop import rollout

        agent = stage.agent(
            [tool_reply(("echo", {"text": "x"})), "Done."],
            state=stage.state(tools=(), lock=LOCK),
            executors={"mcp": executor},
            limits=Limits(tool_s=0.25),
        )
        try:
            return await rollout(stage.ask_for(), agent, request_id="r")
        finally:
            await executor.close()

    done = asyncio.run(run())
    assert done.calls[0].executor == "mcp"
    assert done.calls[0].result.content == "xr"


def revision(config):
    """The protocol revision that client and server agree on."""

    async def run():
        connection = Connection("raw", config, catalogue=CATALOGUE)
        try:
            await connection.start()
            return connection._client.protocol_version
        finally:
            await connection.close()

    return asyncio.run(run())


def test_an_older_server_is_met_by_initialize():
    assert revision(server("plain")) < "2026"


# The shipped marketing server

MARKETING = McpServer(
    command=(
        "{python}",
        "-m",
        "harness_cli.simulator.marketing_server",
        "--catalogue",
        "{catalogue}",
    ),
    start_timeout_s=60,
    call_timeout_s=20,
)


def marketing(config, work):
    async def run():
        lister = McpExecutor({"marketing": config}, McpLock(), catalogue=CATALOGUE)
        listed = {t.name: locked(t, "marketing") for t in await lister.tools("marketing")}
        await lister.close()
        lock = McpLock(servers={"marketing": listed})
        executor = McpExecutor({"marketing": config}, lock, catalogue=CATALOGUE)
        try:
            return await work(executor, {n: t.tool for n, t in listed.items()})
        finally:
            await executor.close()

    return asyncio.run(run())


async def _all_four(executor, tools):
    room = Request(room=Room(id="room-beauty"))
    found = {}
    for name, arguments in (
        ("get_campaign_conditions", {"kind": "full_reduction"}),
        ("get_buyer_benefits", {}),
        ("calculate_promotion", {"link_id": 1}),
        ("calculate_optimal_promotion", {"link_id": 1, "quantity": 3}),
    ):
        found[name] = await executor.call(tools[name], arguments, room)
    found["wrong"] = await executor.call(tools["calculate_promotion"], {"link_id": "1"}, room)
    found["nowhere"] = await executor.call(tools["calculate_promotion"], {"link_id": 99}, room)
    return found


def check_four(found):
    assert found["get_campaign_conditions"].structured["summary"] == (
        "30 yuan off for orders from 200 yuan"
    )
    assert "members" in found["get_buyer_benefits"].structured["summary"]
    for name in ("calculate_promotion", "calculate_optimal_promotion"):
        assert found[name].ok, found[name].content
        assert found[name].structured["final_price"] <= found[name].structured["original_price"]
    assert found["wrong"].error is ToolErrorKind.INVALID_ARGUMENTS
    assert found["nowhere"].error is ToolErrorKind.NOT_FOUND


needs_catalogue = pytest.mark.skipif(
    not CATALOGUE.is_dir(), reason="the shipped catalogue is not there"
)


@needs_catalogue
def test_the_marketing_server_answers_over_stdio():
    check_four(marketing(MARKETING, _all_four))


@needs_catalogue
def test_a_server_that_knows_the_stateless_revision_speaks_it():
    assert revision(MARKETING) == "2026-07-28"


@needs_catalogue
def test_the_marketing_server_answers_over_streamable_http():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "harness_cli.simulator.marketing_server"]
    process = subprocess.Popen([*argv, "--catalogue", str(CATALOGUE), "--http", str(port)])
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        config = McpServer(transport="http", url=f"http://127.0.0.1:{port}/mcp", start_timeout_s=30)
        check_four(marketing(config, _all_four))
    finally:
        process.terminate()
        process.wait(10)


def children():
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append(int(folder.name))
    return found


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
