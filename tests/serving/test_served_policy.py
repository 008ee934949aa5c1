"""Served policies as clients see them: the `openai` package, our own client, and plain HTTP."""

import asyncio
import contextlib
import json

import aiohttp
import openai
import pytest
from aiohttp import web

from harness_cli.errors import ProviderError
from harness_cli.models.base import Deadline
from harness_cli.models.builtin.policy import BuiltinPolicy
from harness_cli.models.open import open_policy
from harness_cli.models.scripted import ScriptedPolicy, tool_reply
from harness_cli.records.chat import ChatReply, ChatRequest, Usage
from harness_cli.records.config import PolicyConfig
from harness_cli.serving import app as served_app
from harness_cli.serving.app import ServedPolicy

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_price",
            "description": "d",
            "parameters": {"type": "object", "properties": {"link_id": {"type": "integer"}}},
        },
    }
]
HI = [{"role": "user", "content": "hi"}]
COUNTED = ChatReply(
    content="It is 89 yuan, and it ships tomorrow. 明天发货。",
    reasoning="look at the card",
    usage=Usage(input_tokens=12, output_tokens=5, cached_tokens=4),
)


@contextlib.asynccontextmanager
async def served(policy, name="demo"):
    serves = ServedPolicy(policy, name)
    runner = web.AppRunner(serves.app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", serves
    finally:
        await runner.cleanup()


def with_sdk(policy, talk):
    """What `talk(client)` returns, with the `openai` package as the client."""

    async def go():
        async with (
            served(policy) as (url, _),
            openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
        ):
            return await talk(client)

    return asyncio.run(go())


def posted(policy, body, *, headers=None, path="/v1/chat/completions"):
    """(status, JSON or text) of a plain POST."""

    async def go():
        async with served(policy) as (url, _), aiohttp.ClientSession() as session:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            told = {"Content-Type": "application/json", **(headers or {})}
            async with session.post(url + path, data=data, headers=told) as answer:
                text = await answer.text()
                return answer.status, json.loads(text) if text.startswith("{") else text

    return asyncio.run(go())


# -- the openai package


def test_the_openai_package_reads_a_reply_with_usage_and_what_served():
    policy = ScriptedPolicy([COUNTED])
    made = with_sdk(
        policy, lambda c: c.chat.completions.create(model="demo", messages=HI, max_tokens=7)
    )
    choice = made.choices[0]
    assert (choice.message.content, choice.finish_reason) == (COUNTED.content, "stop")
    assert (made.usage.prompt_tokens, made.usage.total_tokens) == (12, 17)
    assert made.usage.prompt_tokens_details.cached_tokens == 4
    assert made.system_fingerprint == policy.id
    assert policy.requests[0].max_tokens == 7


def test_the_openai_package_reads_a_streamed_reply():
    async def talk(client):
        stream = await client.chat.completions.create(
            model="demo", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        return [chunk async for chunk in stream]

    chunks = with_sdk(ScriptedPolicy([COUNTED]), talk)
    texts = [c.choices[0].delta.content or "" for c in chunks if c.choices]
    assert "".join(texts) == COUNTED.content
    assert len([t for t in texts if t]) > 1
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], 5)


@pytest.mark.parametrize("streamed", [True, False])
def test_the_openai_package_reads_tool_calls_and_sends_results_back(streamed):
    policy = ScriptedPolicy(
        [tool_reply(("get_price", {"link_id": 3}), ("get_price", {"link_id": 4})), "89 and 90."]
    )

    async def talk(client):
        async def ask(messages):
            if not streamed:
                made = await client.chat.completions.create(
                    model="demo", messages=messages, tools=TOOLS
                )
                return made.choices[0].message
            async with client.chat.completions.stream(
                model="demo", messages=messages, tools=TOOLS
            ) as stream:
                return (await stream.get_final_completion()).choices[0].message

        first = await ask(HI)
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": "{}"} for call in first.tool_calls
        ]
        turn = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.function.name, "arguments": c.function.arguments},
                }
                for c in first.tool_calls
            ],
        }
        return first, await ask([*HI, turn, *results])

    first, second = with_sdk(policy, talk)
    assert [json.loads(c.function.arguments)["link_id"] for c in first.tool_calls] == [3, 4]
    assert second.content == "89 and 90."
    assert [m["role"] for m in policy.requests[1].messages] == ["user", "assistant", "tool", "tool"]
    assert policy.requests[0].tools == tuple(TOOLS)


def test_unknown_usage_is_null_and_not_zero():
    made = with_sdk(
        ScriptedPolicy(["x"]), lambda c: c.chat.completions.create(model="demo", messages=HI)
    )
    assert made.usage is None


def test_the_models_are_listed():
    async def talk(client):
        return [model.id async for model in client.models.list()]

    assert with_sdk(ScriptedPolicy(["x"]), talk) == ["demo"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("rate_limit", openai.RateLimitError),
        ("bad_request", openai.BadRequestError),
        ("timeout", openai.InternalServerError),
        ("server", openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_a_failure_of_the_policy_is_an_error_the_client_can_tell(kind, error, streamed):
    failing = ScriptedPolicy([ProviderError.of(kind, "as told", retryable=True)])
    with pytest.raises(error, match="as told"):
        with_sdk(
            failing,
            lambda c: c.chat.completions.create(model="demo", messages=HI, stream=streamed),
        )


# -- our own clients over both transports, and the builtin policy


@pytest.mark.parametrize("transport", ["lean", "openai"])
@pytest.mark.parametrize("streamed", [True, False])
def test_what_a_policy_says_is_what_a_client_of_its_endpoint_gets(tmp_path, transport, streamed):
    said = [COUNTED, tool_reply(("get_price", {"link_id": 3}), content="Let me look.")]
    request = ChatRequest(messages=tuple(HI), tools=tuple(TOOLS))

    async def go():
        async with served(ScriptedPolicy(said)) as (url, _):
            config = PolicyConfig(
                kind="openai",
                model="demo",
                base_url=f"{url}/v1",
                transport=transport,
                stream=streamed,
            )
            client = open_policy("c", config, root=tmp_path)
            got = [await client.complete(request, Deadline.within(20)) for _ in said]
            await client.close()
            return got

    for got, meant in zip(asyncio.run(go()), said, strict=True):
        assert (got.content, got.reasoning) == (meant.content, meant.reasoning)
        assert [(c.name, c.arguments) for c in got.tool_calls] == [
            (c.name, c.arguments) for c in meant.tool_calls
        ]
        assert (got.finish_reason, got.usage, got.attempts) == (meant.finish_reason, meant.usage, 1)


def test_builtin_is_served_and_answers_as_it_does_directly():
    request = ChatRequest(messages=({"role": "user", "content": "Say hello."},), max_tokens=50)

    async def go():
        direct = BuiltinPolicy()
        here = await direct.complete(request, Deadline.within(60))
        await direct.close()
        async with served(BuiltinPolicy(), "builtin") as (url, _):
            config = PolicyConfig(kind="openai", model="builtin", base_url=f"{url}/v1")
            from harness_cli.models.lean import LeanPolicy

            client = LeanPolicy("c", config)
            there = await client.complete(request, Deadline.within(60))
            await client.close()
        return here, there

    here, there = asyncio.run(go())
    assert there.content == here.content
    assert there.content


def test_while_the_policy_thinks_the_stream_is_not_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(served_app, "PING_S", 0.1)

    async def slow(_):
        await asyncio.sleep(1.0)
        return "late"

    async def go():
        async with served(ScriptedPolicy([slow])) as (url, _):
            config = PolicyConfig(
                kind="openai",
                model="demo",
                base_url=f"{url}/v1",
                stall_timeout_s=0.6,
                max_attempts=1,
            )
            client = open_policy("c", config, root=tmp_path)
            reply = await client.complete(ChatRequest(messages=tuple(HI)), Deadline.within(20))
            await client.close()
            return reply

    assert asyncio.run(go()).content == "late"


def test_a_client_that_goes_away_ends_the_policys_work(monkeypatch):
    monkeypatch.setattr(served_app, "PING_S", 0.05)
    ended = asyncio.Event()

    async def slow(_):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.set()
            raise
        return "never"

    async def go():
        async with served(ScriptedPolicy([slow])) as (url, _), aiohttp.ClientSession() as session:
            body = {"messages": HI, "stream": True}
            async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
                await answer.content.readany()
            async with asyncio.timeout(10):
                await ended.wait()

    asyncio.run(go())


# -- plain HTTP

WRONG = {
    "no JSON": b"{",
    "no object": [],
    "no messages": {},
    "empty messages": {"messages": []},
    "a message without a role": {"messages": [{"content": "x"}]},
    "messages of text": {"messages": ["x"]},
    "two choices": {"messages": HI, "n": 2},
    "max_tokens of text": {"messages": HI, "max_tokens": "many"},
    "max_tokens 0": {"messages": HI, "max_tokens": 0},
    "temperature of text": {"messages": HI, "temperature": "hot"},
    "tools of text": {"messages": HI, "tools": "x"},
    "a tool without a name": {"messages": HI, "tools": [{"type": "function"}]},
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_body_that_cannot_be_meant_is_refused_and_asks_no_policy(kind):
    policy = ScriptedPolicy(["x"])
    status, body = posted(policy, WRONG[kind])
    assert status == 400
    assert body["error"]["message"]
    assert policy.requests == []


def test_another_model_is_not_served_here():
    status, body = posted(ScriptedPolicy(["x"]), {"messages": HI, "model": "gpt-9"})
    assert (status, body["error"]["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("model", [None, "", "demo"])
def test_the_model_may_be_left_out(model):
    assert posted(ScriptedPolicy(["x"]), {"messages": HI, "model": model})[0] == 200


def test_a_page_of_another_site_cannot_talk_to_it():
    policy = ScriptedPolicy(["x"] * 9)
    rebound = posted(policy, {"messages": HI}, headers={"Host": "evil.example"})
    assert rebound[0] == 403
    plain = posted(policy, {"messages": HI}, headers={"Content-Type": "text/plain"})
    assert plain[0] == 400
    assert policy.requests == []
    for host in ("127.0.0.1:8000", "localhost", "[::1]:8000"):
        assert posted(policy, {"messages": HI}, headers={"Host": host})[0] == 200


def test_health_counts_requests_and_failures():
    async def go():
        async with (
            served(ScriptedPolicy(["x"])) as (url, _),
            aiohttp.ClientSession() as session,
        ):
            for _ in range(2):
                await session.post(f"{url}/v1/chat/completions", json={"messages": HI})
            async with session.get(f"{url}/health") as answer:
                return await answer.json()

    told = asyncio.run(go())
    assert (told["status"], told["requests"], told["failures"]) == ("ok", 2, 1)


def test_a_key_in_a_failure_is_neither_answered_nor_logged(capsys, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "a very private value")
    failing = ScriptedPolicy(
        [ProviderError.of("server", "told a very private value", retryable=True)]
    )
    _, body = posted(failing, {"messages": HI})
    assert "private" not in str(body)
    assert "private" not in capsys.readouterr().err
