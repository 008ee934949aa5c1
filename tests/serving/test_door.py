"""The door in front of the router: exact admission, streams passed as they come, no controls."""

import asyncio
import contextlib

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.serving.admission import Doorkeeper, Refused
from harness_cli.serving.door import Door, labelled

CHAT = "/v1/chat/completions"


class Behind:
    """What stands behind the door: it streams three pieces, and counts who is inside."""

    def __init__(self, think_s=0.02, break_off=False):
        self.think_s, self.break_off = think_s, break_off
        self.running = self.most = 0
        self.paths = []

    async def chat(self, request):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for piece in (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"):
                await response.write(piece)
                await asyncio.sleep(self.think_s)
                if self.break_off:
                    request.transport.abort()
                    return response
            return response
        finally:
            self.running -= 1

    async def other(self, request):
        self.paths.append(request.path)
        if request.path == "/metrics":
            return web.Response(text='# TYPE x counter\nx{a="b"} 1\ny 2\n')
        return web.json_response({"path": request.path}, status=503)

    def app(self):
        app = web.Application()
        app.router.add_post(CHAT, self.chat)
        app.router.add_route("*", "/{path:.*}", self.other)
        return app


@contextlib.asynccontextmanager
async def door(behind, keeper, *, gone=False):
    """(address of the door, a session)"""
    runner = web.AppRunner(behind.app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    target = f"http://127.0.0.1:{runner.addresses[0][1]}"
    if gone:
        await runner.cleanup()
    async with aiohttp.ClientSession() as session:
        made = Door(target, keeper, session, lambda: [(0, target), (1, target)])
        async with made.open("127.0.0.1", 0, 1.0) as port:
            yield f"http://127.0.0.1:{port}", session
    await runner.cleanup()


async def post(session, url, path=CHAT, **more):
    async with session.post(url + path, **({"json": {}} | more)) as answer:
        return answer.status, await answer.text(), answer.headers


def test_no_more_get_in_than_there_is_room_for_and_the_line_is_bounded():
    behind, keeper = Behind(), Doorkeeper(2, queue=3, queue_s=10)

    async def go():
        async with door(behind, keeper) as (url, session):
            found = await asyncio.gather(*(post(session, url) for _ in range(9)))
            return [status for status, *_ in found], found

    statuses, found = asyncio.run(go())
    assert (statuses.count(200), statuses.count(429)) == (5, 4)
    assert behind.most == 2
    assert (keeper.running, keeper.waiting, keeper.refused) == (0, 0, 4)
    assert [h["Retry-After"] for status, _, h in found if status == 429] == ["1"] * 4
    assert {text for status, text, _ in found if status == 200} == {
        "data: 1\n\ndata: 2\n\ndata: 3\n\n"
    }


def test_a_stream_comes_piece_by_piece():
    async def go():
        async with door(Behind(think_s=0.2), Doorkeeper(1)) as (url, session):
            begun = asyncio.get_running_loop().time()
            async with session.post(url + CHAT, json={}) as answer:
                first = await answer.content.readany()
                moment = asyncio.get_running_loop().time() - begun
                await answer.read()
                return first, moment, asyncio.get_running_loop().time() - begun

    first, moment, whole = asyncio.run(go())
    assert first == b"data: 1\n\n"
    assert moment < 0.2 < 0.5 < whole


def test_half_an_answer_is_no_whole_one():
    async def go():
        async with door(Behind(break_off=True), Doorkeeper(1)) as (url, session):
            await post(session, url)

    with pytest.raises(aiohttp.ClientError):
        asyncio.run(go())


def test_a_client_that_goes_away_gives_its_place_back():
    behind, keeper = Behind(think_s=5), Doorkeeper(1, queue=1)

    async def go():
        async with door(behind, keeper) as (url, session):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await post(session, url)
            for _ in range(100):
                if not (keeper.running or behind.running):
                    return
                await asyncio.sleep(0.02)

    asyncio.run(go())
    assert (keeper.running, behind.running) == (0, 0)


def test_while_no_replica_is_there_requests_wait_and_then_go_through():
    keeper = Doorkeeper(0, queue=4, queue_s=10)

    async def go():
        async with door(Behind(), keeper) as (url, session):
            asked = asyncio.create_task(post(session, url))
            await asyncio.sleep(0.1)
            assert keeper.waiting == 1
            keeper.limit = 2
            return (await asked)[0]

    assert asyncio.run(go()) == 200


def test_without_a_router_it_says_so():
    async def go():
        async with door(Behind(), Doorkeeper(1), gone=True) as (url, session):
            return (await post(session, url))[:2]

    status, text = asyncio.run(go())
    assert status == 503
    assert "no replica was reached" in text


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/workers", {}, 404),
        ("/flush_cache", {}, 404),
        (CHAT, {"data": b"{}", "json": None, "headers": {"Content-Type": "text/plain"}}, 400),
        (CHAT, {"headers": {"Host": "evil.example"}}, 403),
    ],
)
def test_controls_and_pages_of_other_sites_do_not_get_through(path, more, status):
    behind = Behind()

    async def go():
        async with door(behind, Doorkeeper(1)) as (url, session):
            return (await post(session, url, path, **more))[0]

    assert asyncio.run(go()) == status
    assert (behind.paths, behind.most) == ([], 0)


def test_health_is_passed_on_as_it_is_and_metrics_are_all_replicas():
    async def go():
        async with door(Behind(), Doorkeeper(1)) as (url, session):
            async with session.get(f"{url}/health") as answer:
                status = answer.status
            async with session.get(f"{url}/metrics") as answer:
                return status, await answer.text()

    status, page = asyncio.run(go())
    assert status == 503
    for line in ('x{replica="0",a="b"} 1', 'x{replica="1",a="b"} 1', 'y{replica="1"} 2'):
        assert line in page
    assert "harness:door_running_reqs 0" in page
    assert labelled("# HELP x y\n", 3) == "# HELP x y\n"


# -- the keeper alone


@given(
    limit=st.integers(0, 4),
    queue=st.integers(0, 4),
    steps=st.lists(st.sampled_from(["come", "go", "quit", "more", "less"]), max_size=40),
)
def test_places_are_never_lost_nor_given_twice(limit, queue, steps):
    async def go():
        keeper = Doorkeeper(limit, queue, queue_s=60)
        tasks, leave = [], []

        async def visit(event):
            async with keeper.inside():
                assert keeper.running <= 50
                await event.wait()

        for step in steps:
            if step == "come":
                leave.append(asyncio.Event())
                tasks.append(asyncio.create_task(visit(leave[-1])))
            elif step == "go" and leave:
                leave.pop(0).set()
            elif step == "quit" and tasks:
                tasks[-1].cancel()
            elif step in ("more", "less"):
                keeper.limit = max(0, keeper.limit + (1 if step == "more" else -1))
            before = keeper.running
            for _ in range(4):
                await asyncio.sleep(0)
            assert keeper.waiting <= queue
            assert keeper.running <= max(before, keeper.limit)
        keeper.limit = 50
        for event in leave:
            event.set()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(d is None or isinstance(d, Refused | asyncio.CancelledError) for d in done)
        return keeper

    keeper = asyncio.run(go())
    assert (keeper.running, keeper.waiting) == (0, 0)


def test_first_come_first_served_and_a_wait_that_is_too_long_is_refused():
    async def go():
        keeper, order = Doorkeeper(1, 5, queue_s=0.3), []

        async def visit(name, seconds):
            async with keeper.inside():
                order.append(name)
                await asyncio.sleep(seconds)

        tasks = [asyncio.create_task(visit(n, s)) for n, s in (("a", 0.1), ("b", 0.6), ("c", 0))]
        done = await asyncio.gather(*tasks, return_exceptions=True)
        return order, done, keeper

    order, done, keeper = asyncio.run(go())
    assert order == ["a", "b"]
    assert isinstance(done[2], Refused)
    assert (keeper.running, keeper.refused) == (0, 1)
