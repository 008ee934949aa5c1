"""Python tools in real processes and HTTP tools against a real loopback server."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from harness_cli.errors import ToolError
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.runtime.http import HttpExecutor, address
from harness_cli.runtime.python import PythonExecutor

CODE = b"""
import os, sys, time
from near import RATE

def quote(units, express=False):
    print("some noise on stdout")
    return {"cost": units * RATE, "express": express}

def words(): return "plain words"
def broken(units): raise ValueError(f"no price for {units}")
def slow(): time.sleep(60)
def spin():
    while True: pass
def env(): return dict(os.environ)
def nan(): return float("nan")
def leave(): sys.exit(0)
def big(): return "x" * (2 << 20)
def forge():
    os.write(1, b'{"cost": 0}')
    return {"cost": 1}
"""
FILES = {"tools/code.py": CODE, "tools/near.py": b"RATE = 3\n", "hooks/x.py": b""}


def python_call(function, arguments=None, seconds=10.0, place=None):
    tool = Tool(name="t", meta={"harness.python": place or f"tools/code.py:{function}"})
    executor = PythonExecutor(FILES, seconds=seconds)
    return asyncio.run(executor.call(tool, arguments or {}, Request()))


def test_a_function_of_the_harness_gets_its_arguments_and_gives_json_back():
    done = python_call("quote", {"units": 4, "express": True})
    assert done.structured == {"cost": 12, "express": True}
    assert done.content == '{"cost": 12, "express": true}'


def test_text_is_shown_as_text():
    assert python_call("words").content == "plain words"


def test_what_a_tool_writes_itself_is_not_its_result():
    assert python_call("forge").structured == {"cost": 1}


def test_a_tool_sees_no_key_of_ours(monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "secret")
    assert "SHOP_API_KEY" not in python_call("env").structured


@pytest.mark.parametrize(
    ("function", "arguments", "seconds", "kind", "said"),
    [
        ("broken", {"units": 3}, 10, "unavailable", "no price for 3"),
        ("broken", {"other": 3}, 10, "unavailable", "unexpected keyword"),
        ("missing", {}, 10, "unavailable", "missing"),
        ("slow", {}, 0.3, "timeout", "0.3 seconds"),
        ("spin", {}, 0.3, "timeout", "0.3 seconds"),
        ("nan", {}, 10, "unavailable", "JSON"),
        ("leave", {}, 10, "unavailable", "no result"),
        ("big", {}, 10, "unavailable", "1 MiB"),
    ],
)
def test_what_goes_wrong_in_a_function_is_a_typed_error(function, arguments, seconds, kind, said):
    with pytest.raises(ToolError, match=said) as caught:
        python_call(function, arguments, seconds)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "place",
    ["tools/none.py:quote", "hooks/x.py:quote", "../x.py:f", "tools/code.py", "code.py:a-b"],
)
def test_code_outside_the_tools_of_the_harness_is_not_run(place):
    with pytest.raises(ToolError) as caught:
        python_call("", place=place)
    assert caught.value.kind == "unavailable"


# HTTP


@asynccontextmanager
async def shop():
    async def item(request):
        return web.json_response({"id": request.match_info["id"], "q": dict(request.query)})

    async def order(request):
        return web.json_response(await request.json())

    async def status(request):
        code = int(request.match_info["code"])
        headers = {"Location": "/items/1"} if 300 <= code < 400 else {}
        return web.Response(status=code, text="because", headers=headers)

    async def hang(request):
        await asyncio.sleep(30)

    async def big(request):
        return web.Response(body=b"x" * (2 << 20))

    async def broken(request):
        return web.Response(text='{"a": ', content_type="application/json")

    async def secret(request):
        return web.json_response({"auth": request.headers.get("Authorization")})

    app = web.Application()
    app.add_routes(
        [
            web.get("/items/{id}", item),
            web.post("/orders/{id}", order),
            web.get("/status/{code}", status),
            web.get("/hang", hang),
            web.get("/big", big),
            web.get("/broken", broken),
            web.get("/secret", secret),
        ]
    )
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


def http_call(path, arguments=None, seconds=5.0, **meta):
    async def act():
        async with shop() as base:
            executor = HttpExecutor(seconds=seconds)
            settings = {f"harness.{k}": v for k, v in meta.items()}
            tool = Tool(name="t", meta={"harness.url": base + path, **settings})
            try:
                return await executor.call(tool, arguments or {}, Request())
            finally:
                await executor.close()

    return asyncio.run(act())


def test_arguments_fill_the_address_and_the_rest_is_the_query():
    done = http_call("/items/{product}", {"product": "a/../b?", "n": 2, "deep": True})
    assert done.structured == {"id": "a/../b?", "q": {"n": "2", "deep": "true"}}


def test_with_post_the_rest_is_the_body():
    done = http_call("/orders/{id}", {"id": 7, "units": 2}, method="post")
    assert done.structured == {"units": 2}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/status/404", "not_found"),
        ("/status/400", "invalid_arguments"),
        ("/status/422", "invalid_arguments"),
        ("/status/401", "denied"),
        ("/status/302", "denied"),
        ("/status/500", "unavailable"),
        ("/big", "malformed"),
        ("/broken", "malformed"),
        ("/hang", "timeout"),
    ],
)
def test_what_an_endpoint_does_wrong_is_a_typed_error(path, kind):
    with pytest.raises(ToolError) as caught:
        http_call(path, seconds=0.4)
    assert caught.value.kind == kind


def test_an_endpoint_that_is_not_there_is_unavailable():
    tool = Tool(name="t", meta={"harness.url": "http://127.0.0.1:9/x"})

    async def act():
        executor = HttpExecutor()
        try:
            await executor.call(tool, {}, Request())
        finally:
            await executor.close()

    with pytest.raises(ToolError) as caught:
        asyncio.run(act())
    assert caught.value.kind == "unavailable"


def test_a_key_comes_from_the_environment_and_its_absence_is_said(monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "Bearer x")
    named = {"headers_env": {"Authorization": "SHOP_TOKEN"}}
    assert http_call("/secret", **named).structured == {"auth": "Bearer x"}
    monkeypatch.delenv("SHOP_TOKEN")
    with pytest.raises(ToolError, match="SHOP_TOKEN"):
        http_call("/secret", **named)


@pytest.mark.parametrize("url", ["", "ftp://x/y", "http://{host}/x", "file:///etc/passwd", "/x"])
def test_the_host_is_fixed_in_the_harness(url):
    with pytest.raises(ToolError):
        address(Tool(name="t", meta={"harness.url": url}), {"host": "evil"})


def test_a_missing_part_of_the_address_is_said():
    with pytest.raises(ToolError) as caught:
        address(Tool(name="t", meta={"harness.url": "http://x/{id}"}), {})
    assert caught.value.kind == "invalid_arguments"
