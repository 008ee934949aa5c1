"""A sandbox over HTTP: bounded sessions, a token, tools for loops elsewhere, no crash shared."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import pytest
from live_rooms import CALM, DRAWS, ROOT, SHOP, STATE, looks_up_link_2, play

from harness_cli.errors import UsageError
from harness_cli.judges.rewards.judge import RuleRewards
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.clocks import trajectory_digest
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.actions import reply_of
from harness_cli.simulator.environment import Observation
from harness_cli.simulator.live.replaying import replay
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.states import Draws
from harness_cli.simulator.remote import RemoteEnvironment, RemoteExecutor, RemoteSandbox
from harness_cli.simulator.rooms import Rooms
from harness_cli.simulator.server import Sandbox, main, serve
from harness_cli.simulator.sessions import Bounds

TOKEN = "t0ken"
ROOMS = Rooms(SHOP, Draws(STATE), RuleRewards(), Settings(faults=CALM))


@asynccontextmanager
async def serving(bounds=None, rooms=ROOMS):
    """A sandbox on a loopback port: itself and its address."""
    sandbox, ended = Sandbox(rooms, TOKEN, bounds), asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(sandbox, 0, ready=address.set_result, ended=ended))
    try:
        yield sandbox, await address
    finally:
        ended.set()
        await task


async def asked(url, method, path, body=None, *, token=TOKEN, host=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if host:
        headers["Host"] = host
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, url + path, data=data, headers=headers) as answer,
    ):
        text = await answer.text()
        return answer.status, json.loads(text) if text else None


def run(work, *args, **kwargs):
    async def go():
        async with serving(*args, **kwargs) as (sandbox, url):
            return await work(sandbox, url)

    return asyncio.run(go())


def test_an_episode_over_http_is_the_one_in_this_process():
    async def go(sandbox, url):
        async with RemoteSandbox(url, TOKEN) as connection:
            env = RemoteEnvironment(connection, {"requests": 2})
            seen = await env.reset(5, group="g", rollout=1)
            outcomes = []
            while not env.done:
                action = looks_up_link_2(seen)
                stepped = await env.step({"content": action} if isinstance(action, str) else action)
                outcomes += stepped.finished
                seen = stepped.observation or seen
            record = await env.record()
            await env.close()
            return outcomes, record, len(sandbox.sessions)

    outcomes, record, left = run(go)
    chosen = Settings(requests=2, faults=CALM)
    here, _ = play(5, chosen=chosen, group="g", rollout=1)
    digests = [trajectory_digest(f.trajectory) for f in here.finished]
    assert [o.trajectory_sha256 for o in outcomes] == digests
    assert all(o.scores for o in outcomes)
    assert list(record.trajectories) == digests
    assert len(asyncio.run(replay(record, SHOP, DRAWS))) == 2
    assert left == 0


def test_a_loop_that_runs_elsewhere_calls_the_rooms_tools():
    """The same rollout, once in the sandbox and once here with the tools there."""
    script = [
        looks_up_link_2(Observation(request="", call=0, messages=())),
        {"role": "assistant", "content": "Link 2 is here in the room, have a look at it!"},
    ]

    async def go(sandbox, url):
        async with RemoteSandbox(url, TOKEN) as connection:
            env = RemoteEnvironment(connection)
            await env.reset(3)
            asked_for = sandbox.sessions.get(env.session).environment.episode.asked
            executor = RemoteExecutor(connection, env.session)
            agent = Agent(
                state=STATE,
                policy=ScriptedPolicy(
                    [reply_of(a, "outside") for a in script], policy_id="outside"
                ),
                executors={"sandbox": executor, "mcp": executor},
                world=SHOP.world,
                profile="simulator",
            )
            name = f"{asked_for.item.id}:seed-3:0"
            made = await rollout(
                asked_for.item.request, agent, request_id=name, item_id=asked_for.item.id
            )
            stepped = [await env.step(a) for a in script]
            return made, stepped[-1].finished[0]

    made, outcome = run(go)
    assert made.calls[1].result.ok
    assert trajectory_digest(made) == outcome.trajectory_sha256


@pytest.mark.parametrize(
    ("token", "host", "path", "status"),
    [
        (None, None, "/v1/sessions/x", 401),
        ("wrong", None, "/v1/sessions/x", 401),
        (TOKEN, "evil.example", "/v1/sessions/x", 403),
        (None, "evil.example", "/v1/health", 403),
        (None, None, "/v1/health", 200),
        (TOKEN, None, "/v1/sessions/x", 404),
        (TOKEN, None, "/v1/nothing", 404),
    ],
)
def test_only_this_machine_with_the_token_is_served(token, host, path, status):
    async def go(_, url):
        return await asked(url, "GET", path, token=token, host=host)

    assert run(go)[0] == status


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "cannot be read"),
        ({"seed": "x"}, "cannot be read"),
        ({"seed": 1, "setting": {}}, "cannot be read"),
        ({"seed": 1, "settings": {"split": "test"}}, "`settings`"),
        ({"seed": 1, "settings": {"room": "room-moon"}}, "room-moon"),
        ({"seed": 1, "settings": {"mix": {"gossip": 1}}}, "gossip"),
    ],
)
def test_a_session_that_cannot_be_meant_is_refused_and_leaves_nothing_open(body, words):
    async def go(sandbox, url):
        answer = await asked(url, "POST", "/v1/sessions", body)
        return answer, len(sandbox.sessions)

    (status, found), left = run(go)
    assert (status, left) == (400, 0)
    assert words in found["error"]["message"]


def test_a_bad_action_is_refused_and_the_session_goes_on():
    async def go(_, url):
        _, opened = await asked(url, "POST", "/v1/sessions", {"seed": 3})
        path = f"/v1/sessions/{opened['session']}"
        bad = await asked(url, "POST", f"{path}/step", {"message": {"role": "user"}})
        good = await asked(url, "POST", f"{path}/step", {"message": {"content": "Hello!"}})
        return bad, good

    bad, good = run(go)
    assert (bad[0], bad[1]["error"]["type"]) == (400, "bad_request")
    assert good[0] == 200
    assert good[1]["observation"]["call"] == 1


def test_there_are_only_so_many_sessions_and_closed_ones_make_room():
    async def go(sandbox, url):
        opened = [await asked(url, "POST", "/v1/sessions", {"seed": n}) for n in range(3)]
        first = f"/v1/sessions/{opened[0][1]['session']}"
        gone = await asked(url, "DELETE", first)
        again = await asked(url, "POST", "/v1/sessions", {"seed": 9})
        return [o[0] for o in opened], gone[0], again[0], (await asked(url, "DELETE", first))[0]

    assert run(go, Bounds(sessions=2)) == ([201, 201, 429], 204, 201, 404)


def test_sessions_nobody_uses_and_old_ones_are_closed():
    now = [0.0]

    async def go():
        from harness_cli.simulator.sessions import Refused, Sessions, Start

        sessions = Sessions(ROOMS, Bounds(idle_s=10, whole_s=25), clock=lambda: now[0])
        idle = await sessions.open(Start(seed=1))
        used = await sessions.open(Start(seed=2))
        now[0] = 8.0
        await sessions.step(used.id, {"content": "Hello!"})
        now[0] = 12.0
        with pytest.raises(Refused, match="no session"):
            sessions.get(idle.id)
        assert await sessions.sweep() == 1
        assert sessions.get(used.id) is used
        now[0] = 17.0
        await sessions.step(used.id, {"content": "Hello again!"})
        now[0] = 26.0
        assert await sessions.sweep() == 1
        assert (len(sessions), sessions.expired) == (0, 2)
        return [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]

    assert asyncio.run(go()) == []


class Breaking:
    """A reward judge that breaks, or hangs, for some rooms."""

    name = id = "breaking"

    async def judge(self, item, trajectory, world, *, calls=None):
        if "boom" in trajectory.reply:
            raise RuntimeError("boom")
        if "sleep" in trajectory.reply:
            await asyncio.sleep(60)
        return await RuleRewards().judge(item, trajectory, world)

    async def close(self):
        pass


def test_the_crash_of_one_session_and_the_hang_of_another_are_no_others():
    rooms = Rooms(SHOP, DRAWS, Breaking(), Settings(faults=CALM, mix={"chat": 1.0}))

    async def go(sandbox, url):
        ids = [(await asked(url, "POST", "/v1/sessions", {"seed": 3}))[1]["session"] for _ in "abc"]
        load = {"function": {"name": "load_skill", "arguments": {"skill": "chillchat"}}}
        for name in ids:
            body = {"message": {"tool_calls": [load]}}
            await asked(url, "POST", f"/v1/sessions/{name}/step", body)

        async def says(name, text):
            body = {"message": {"content": text}}
            return await asked(url, "POST", f"/v1/sessions/{name}/step", body)

        said = ("Haha boom, so nice!", "Haha sleep well later!", "Haha, so nice of you!")
        answers = await asyncio.gather(*(says(i, t) for i, t in zip(ids, said, strict=True)))
        late = await says(ids[0], "x")
        health = await asked(url, "GET", "/v1/health")
        return answers, late, health[1]

    answers, late, health = run(go, Bounds(step_s=4), rooms)
    assert [a[0] for a in answers] == [500, 504, 200]
    assert answers[0][1]["error"]["type"] == "crashed"
    assert answers[2][1]["done"]
    assert late[0] == 404
    assert (health["sessions"], health["crashed"]) == (1, 1)


def test_two_actions_at_once_in_one_session_are_not_mixed_up():
    rooms = Rooms(SHOP, DRAWS, Breaking(), Settings(faults=CALM, mix={"chat": 1.0}))

    async def go(sandbox, url):
        session = (await asked(url, "POST", "/v1/sessions", {"seed": 3}))[1]["session"]
        path = f"/v1/sessions/{session}/step"
        load = {"function": {"name": "load_skill", "arguments": {"skill": "chillchat"}}}
        await asked(url, "POST", path, {"message": {"tool_calls": [load]}})
        slow = asyncio.create_task(
            asked(url, "POST", path, {"message": {"content": "Haha sleep well later!"}})
        )
        while not sandbox.sessions.get(session).busy:
            await asyncio.sleep(0.01)
        second = await asked(url, "POST", path, {"message": {"content": "me too"}})
        return second, await slow

    second, slow = run(go, Bounds(step_s=3), rooms)
    assert (second[0], second[1]["error"]["type"]) == (409, "busy")
    assert slow[0] == 504


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("get_inventory", {"link_id": 2}, None),
        ("get_campaign_conditions", {}, None),
        ("get_inventory", {"link_id": 99}, "not_found"),
        ("get_inventory", {"link": 2}, "invalid_arguments"),
        ("load_skill", {"skill": "greet"}, "not_found"),
        ("fly", {}, "not_found"),
    ],
)
def test_a_tool_call_over_http_has_a_typed_result(name, arguments, error):
    async def go(_, url):
        _, opened = await asked(url, "POST", "/v1/sessions", {"seed": 3})
        path = f"/v1/sessions/{opened['session']}/tools"
        listed = await asked(url, "GET", path)
        names = {t["function"]["name"] for t in listed[1]["tools"]}
        return names, await asked(url, "POST", f"{path}/{name}", {"arguments": arguments})

    names, (status, result) = run(go)
    assert "load_skill" not in names
    assert "calculate_optimal_promotion" in names
    assert (status, result["error"], result["ok"]) == (200, error, error is None)


def test_a_sandbox_that_is_not_there_is_an_error_that_says_so():
    async def go():
        async with RemoteSandbox("http://127.0.0.1:9", "x") as connection:
            await RemoteEnvironment(connection).reset(1)

    with pytest.raises(UsageError, match="does not answer"):
        asyncio.run(go())


@contextmanager
def process(*words, token=None):
    """A sandbox of its own process, which is killed at the end."""
    # Set and empty is not set.
    environment = {**os.environ, "HARNESS_SANDBOX_TOKEN": token or ""}
    started = subprocess.Popen(
        [sys.executable, *words, "-C", str(ROOT)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


async def opened_in(url, token):
    body = {"seed": 1, "settings": {"augmented": 1.0}}
    opened = await asked(url, "POST", "/v1/sessions", body, token=token)
    return opened, await asked(url, "GET", "/v1/health", token=None)


def test_the_process_prints_its_address_serves_and_ends_at_a_signal():
    with process("-m", "harness_cli.simulator.server", token="from-outside") as started:
        said = json.loads(started.stdout.readline())
        (status, opened), (_, health) = asyncio.run(opened_in(said["url"], "from-outside"))
        assert status == 201
        assert opened["observation"]["tools"]
        assert health["harness"] == STATE.id
        assert said["url"].startswith("http://127.0.0.1:")
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0


def test_serve_sandbox_bounds_its_sessions_and_closes_them_at_sigterm():
    words = ("-m", "harness_cli.main", "serve", "sandbox", "--sessions", "1", "--no-rewards")
    with process(*words) as started:
        url = started.stdout.readline().strip()
        told = started.stderr.readline().strip()
        name, _, token = told.removeprefix("export ").partition("=")
        assert name == "HARNESS_SANDBOX_TOKEN"
        (status, _), (_, health) = asyncio.run(opened_in(url, token))
        assert (status, health["sessions"], health["most"]) == (201, 1, 1)
        (full, refused), _ = asyncio.run(opened_in(url, token))
        assert (full, refused["error"]["type"]) == (429, "full")
        port = url.rpartition(":")[2]
        with process(*words, "--port", port) as second:
            assert second.wait(60) == 2
            assert f"port {port} cannot be had" in second.stderr.read()
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0
        assert "1 open session was closed" in started.stderr.read()
        with pytest.raises(aiohttp.ClientConnectorError):
            asyncio.run(asked(url, "GET", "/v1/health"))


def test_serve_sandbox_tells_no_token_that_the_environment_has():
    words = ("-m", "harness_cli.main", "serve", "sandbox", "--json", "--no-rewards")
    with process(*words, token="from-outside") as started:
        said = json.loads(started.stdout.readline())
        assert said["token"] is None
        assert asyncio.run(opened_in(said["url"], "from-outside"))[0][0] == 201
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=20)
        assert started.returncode == 0
        assert "from-outside" not in out + err


def test_serve_sandbox_refuses_bounds_that_bound_nothing():
    words = ("-m", "harness_cli.main", "serve", "sandbox", "--step", "0")
    with process(*words) as started:
        assert started.wait(60) == 2
        assert "above 0" in started.stderr.read()


@pytest.mark.parametrize(
    ("words", "said"),
    [(["-C", "/nowhere-at-all"], "no folder"), (["--sessions", "0"], "sessions")],
)
def test_options_that_cannot_be_meant_end_with_2(words, said, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(words) == 2
    assert said in capsys.readouterr().err
