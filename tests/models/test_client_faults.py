"""One suite, both clients: what fails on the way, what is asked again, and within which bounds."""

import asyncio
import gzip
import time
from pathlib import Path

import pytest
from chat_endpoint import (
    ASKED,
    PLAIN,
    USAGE,
    Answer,
    bare_server,
    chunk,
    event,
    http,
    raw,
    read_request,
    said,
    serving,
    stream,
    whole,
)

from harness_cli.errors import ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.open import open_policy
from harness_cli.models.provider_errors import retry_after
from harness_cli.records.config import PolicyConfig

SSE = {"Content-Type": "text/event-stream"}
OK = chunk({"content": "x"}, "stop")
SLOW = 0.3
"""A time limit that a loaded machine can still tell from none."""


def opened(settings, url, **more):
    return open_policy("p", PolicyConfig(**{"base_url": url, **settings, **more}), root=Path())


def failed(ask, *answers, **more):
    """The error of a call, and what the endpoint was sent."""
    seen = []
    with pytest.raises(ProviderError) as caught:
        ask(*answers, seen=seen, **more)
    return caught.value, seen[0]


# -- transport failures are asked again, never taken for a reply

BROKEN = {
    "500": raw({"error": {"message": "oh"}}, 500),
    "503 in HTML": Answer(b"<html>busy</html>", status=503),
    "429 without a wait": raw({"error": {"message": "slow down"}}, 429),
    "408": Answer(status=408),
    "truncated JSON": Answer(b'{"choices": [{"mess', headers={"Content-Type": "application/json"}),
    "HTML with 200": Answer(b"<html>login</html>", headers={"Content-Type": "text/html"}),
    "empty 200": Answer(b"", headers={"Content-Type": "application/json"}),
    "no choices": raw({"choices": []}),
    "choices null": raw({"choices": None, "usage": None}),
    "body cut": Answer(b"x" * 4000, cut=True),
    "error in a 200": raw({"error": {"message": "overloaded", "type": "server_error"}}),
    "error text in a 200": raw({"error": "overloaded"}),
    "stream: ends at once": stream(done=False),
    "stream: no finish reason and no [DONE]": stream(chunk({"content": "half"}), done=False),
    "stream: only usage": stream(USAGE, done=False),
    "stream: truncated JSON": stream(chunk({"content": "x"}), b'{"id":"x","choi'),
    "stream: cut": Answer(pieces=(event(chunk({"content": "half"})),), headers=SSE, cut=True),
    "stream: cut after the finish reason": Answer(pieces=(event(OK),), headers=SSE, cut=True),
    "stream: error event": stream(
        chunk({"content": "x"}), {"error": {"message": "overloaded", "code": 503}}
    ),
    "stream: aborted": stream(chunk({"content": "x"}), chunk({}, "abort")),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_answer_is_asked_again(ask, kind):
    reply, endpoint = ask(BROKEN[kind], said("whole"))
    assert (reply.content, reply.attempts, len(endpoint.bodies)) == ("whole", 2, 2)
    assert len(reply.retry_reasons) == 1


@pytest.mark.parametrize("kind", ["stream: cut", "truncated JSON"])
def test_an_endpoint_that_stays_broken_ends_in_an_error_that_tells_the_attempts(ask, kind):
    error, endpoint = failed(ask, BROKEN[kind], max_attempts=3)
    assert len(endpoint.bodies) == 3
    assert error.retryable
    assert "attempt 3" in str(error)
    assert "`p`" in str(error)


REFUSED = {
    "401": (raw({"error": {"message": "bad key"}}, 401), "auth"),
    "403": (raw({"error": {"message": "not yours"}}, 403), "auth"),
    "402": (raw({"error": {"message": "pay"}}, 402), "auth"),
    "quota": (raw({"error": {"message": "pay", "code": "insufficient_quota"}}, 429), "auth"),
    "400": (raw({"error": {"message": "no such field"}}, 400), "bad_request"),
    "404": (raw({"detail": "Not Found"}, 404), "bad_request"),
    "422": (raw({"detail": [{"msg": "bad"}]}, 422), "bad_request"),
    "redirect": (Answer(status=308, headers={"Location": "/v2/chat/completions"}), "bad_request"),
    "refused in the stream": (stream({"error": {"message": "bad", "code": 400}}), "bad_request"),
    "refused in a 200": (raw({"object": "error", "message": "bad", "code": 400}), "bad_request"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refusal_is_not_asked_again(ask, kind):
    answer, expected = REFUSED[kind]
    error, endpoint = failed(ask, answer)
    assert (error.kind, error.retryable, len(endpoint.bodies)) == (expected, False, 1)


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (raw({}, 401), "api_key_env"),
        (raw({}, 404), "base_url"),
        (Answer(status=307, headers={"Location": "http://elsewhere/v1"}), "http://elsewhere/v1"),
        (raw({"error": {"message": "reasoning_content must be passed back"}}, 400), "send_back"),
    ],
)
def test_a_refusal_says_what_to_do(ask, answer, hint):
    error, _ = failed(ask, answer)
    assert hint in error.hint


# -- waiting


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after-ms": "50", "retry-after": "1"}, 0.05),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(headers, expected):
    assert retry_after(headers, now=10.0) == expected


def test_the_server_is_left_alone_as_long_as_it_asks(ask):
    begun = time.monotonic()
    reply, _ = ask(raw({}, 429, **{"Retry-After": "1"}), said())
    assert time.monotonic() - begun >= 1.0
    assert (reply.attempts, reply.retry_reasons) == (2, ("rate_limit",))
    assert reply.latency_s >= 1.0
    assert reply.ttft_s < 1.0


def test_a_wait_that_outlasts_the_budget_is_not_begun(ask):
    begun = time.monotonic()
    error, endpoint = failed(ask, raw({}, 429, **{"Retry-After": "60"}), total_timeout_s=5.0)
    assert time.monotonic() - begun < 4.0
    assert (error.kind, error.retry_after_s, len(endpoint.bodies)) == ("rate_limit", 60.0, 1)


def test_without_a_wish_of_the_server_the_first_wait_is_short(ask):
    begun = time.monotonic()
    ask(raw({}, 500), said())
    assert time.monotonic() - begun < 2.0


# -- time limits


@pytest.mark.parametrize("streamed", [True, False])
def test_an_endpoint_that_never_answers_ends_the_attempt(ask, streamed):
    begun = time.monotonic()
    error, endpoint = failed(
        ask, Answer(wait_s=30), stream=streamed, attempt_timeout_s=SLOW, max_attempts=2
    )
    assert time.monotonic() - begun < 5
    assert (error.kind, error.retryable, len(endpoint.bodies)) == ("timeout", True, 2)


def test_a_stream_that_never_begins_is_stalled(ask):
    error, endpoint = failed(ask, Answer(wait_s=30), stall_timeout_s=SLOW, max_attempts=2)
    assert (error.kind, len(endpoint.bodies)) == ("stalled", 2)


def test_a_stream_that_falls_silent_is_stalled_and_asked_again(ask):
    silent = stream(chunk({"content": "half"}), OK, pause_s=30)
    reply, _ = ask(silent, said("whole"), stall_timeout_s=SLOW)
    assert (reply.content, reply.retry_reasons) == ("whole", ("stalled",))


def test_silence_is_counted_from_the_last_question_of_a_connection(settings):
    async def go():
        async with serving([said(), Answer(wait_s=30)]) as endpoint:
            policy = opened(settings, endpoint.url, stall_timeout_s=2 * SLOW, max_attempts=1)
            await policy.complete(ASKED, Deadline.within(10))
            await asyncio.sleep(SLOW)
            begun = time.monotonic()
            with pytest.raises(ProviderError) as caught:
                await policy.complete(ASKED, Deadline.within(10))
            await policy.close()
            return caught.value.kind, time.monotonic() - begun

    kind, took = asyncio.run(go())
    assert kind == "stalled"
    assert 2 * SLOW <= took < 5


def test_a_slow_stream_that_goes_on_is_not_stalled(ask):
    slow = stream(*(chunk({"content": "x"}) for _ in range(6)), OK, pause_s=SLOW / 2)
    reply, _ = ask(slow, stall_timeout_s=3 * SLOW)
    assert (reply.content, reply.attempts) == ("xxxxxxx", 1)


def test_an_answer_that_is_not_streamed_may_be_silent_for_longer(ask):
    reply, _ = ask(
        Answer(whole({"content": "x"}).body, wait_s=2 * SLOW), stream=False, stall_timeout_s=SLOW
    )
    assert (reply.content, reply.attempts) == ("x", 1)


@pytest.mark.parametrize("bound", ["deadline", "total_timeout_s"])
def test_all_attempts_together_end_with_the_budget(ask, bound):
    begun = time.monotonic()
    error, _ = failed(ask, Answer(wait_s=30), max_attempts=50, **{bound: 2 * SLOW})
    assert time.monotonic() - begun < 3.0
    assert error.kind == "timeout"


def test_a_call_after_the_deadline_is_not_made(ask):
    error, endpoint = failed(ask, said(), deadline=0.0)
    assert (error.kind, endpoint.bodies) == ("timeout", [])


def test_nothing_listens(settings):
    async def go():
        async with bare_server(lambda r, w: asyncio.sleep(0)) as address:
            pass
        policy = opened(settings, f"http://{address}/v1", max_attempts=2)
        try:
            with pytest.raises(ProviderError) as caught:
                await policy.complete(ASKED, Deadline.within(10))
        finally:
            await policy.close()
        assert (caught.value.kind, caught.value.retryable) == ("transport", True)

    asyncio.run(go())


def test_a_cancelled_call_leaves_no_task_and_no_connection(settings):
    async def go():
        async with serving([Answer(wait_s=30)], handler_cancellation=True) as endpoint:
            policy = opened(settings, endpoint.url)
            call = asyncio.create_task(policy.complete(ASKED, Deadline()))
            while not endpoint.in_flight:
                await asyncio.sleep(0.01)
            before = asyncio.all_tasks()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            async with asyncio.timeout(5):
                while endpoint.in_flight:  # the server sees that its client is gone
                    await asyncio.sleep(0.01)
            assert not (asyncio.all_tasks() - before)
            await policy.close()

    asyncio.run(go())


# -- connections


def test_one_connection_serves_call_after_call(settings):
    async def go():
        async with serving([said()]) as endpoint:
            policy = opened(settings, endpoint.url)
            for _ in range(5):
                await policy.complete(ASKED, Deadline.within(10))
            await policy.close()
            assert len(set(endpoint.peers)) == 1

    asyncio.run(go())


def test_a_connection_that_the_server_closed_meanwhile_costs_no_attempt_and_no_error(settings):
    """The server says keep-alive, answers once, and closes: at once or when asked again."""
    calls = []

    async def once(reader, writer):
        await read_request(reader)
        calls.append(1)
        writer.write(http())
        await writer.drain()
        if len(calls) % 2:
            await reader.read(1)  # waits for the next request, then closes unanswered

    async def go():
        async with bare_server(once) as address:
            policy = opened(settings, f"http://{address}/v1")
            replies = [await policy.complete(ASKED, Deadline.within(10)) for _ in range(6)]
            await policy.close()
            return replies

    replies = asyncio.run(go())
    assert [r.content for r in replies] == ["ok"] * 6
    assert len(calls) == 6
    if settings["transport"] == "lean":
        assert {r.attempts for r in replies} == {1}


def test_no_more_calls_at_once_than_the_policy_allows(settings):
    async def go():
        async with serving([Answer(whole({"content": "x"}).body, wait_s=0.05)]) as endpoint:
            policy = opened(settings, endpoint.url, concurrency=2, stream=False)
            await asyncio.gather(*(policy.complete(ASKED, Deadline()) for _ in range(8)))
            await policy.close()
            return endpoint.most_in_flight

    assert asyncio.run(go()) == 2


def test_a_free_slot_is_waited_for_no_longer_than_the_deadline(settings):
    async def go():
        async with serving([Answer(wait_s=30)]) as endpoint:
            policy = opened(settings, endpoint.url, concurrency=1)
            first = asyncio.create_task(policy.complete(ASKED, Deadline()))
            await asyncio.sleep(0.05)
            with pytest.raises(ProviderError, match="slot"):
                await policy.complete(ASKED, Deadline.within(0.1))
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await policy.close()

    asyncio.run(go())


ODD = {
    "100 Continue first": b"HTTP/1.1 100 Continue\r\n\r\n" + http(),
    "until close": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + PLAIN,
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + PLAIN,
    "chunk extensions and trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"%x;a=b\r\n%b\r\n0\r\nX-Time: 1\r\n\r\n" % (len(PLAIN), PLAIN),
    "chunks of one byte": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"1\r\n%c\r\n" % byte for byte in PLAIN)
    + b"0\r\n\r\n",
    "gzip although not asked for": http(
        gzip.compress(PLAIN), "HTTP/1.1 200 OK\r\nContent-Encoding: gzip"
    ),
    "no reason phrase": http(head="HTTP/1.1 200"),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("size", [3, 100_000])
def test_odd_but_valid_http_is_understood(settings, kind, size):
    data = ODD[kind]

    async def talk(reader, writer):
        await read_request(reader)
        for n in range(0, len(data), size):
            writer.write(data[n : n + size])
            await asyncio.sleep(0)

    async def go():
        async with bare_server(talk) as address:
            policy = opened(settings, f"http://{address}/v1", max_attempts=1)
            reply = await policy.complete(ASKED, Deadline.within(10))
            await policy.close()
            return reply

    assert asyncio.run(go()).content == "ok"


GARBAGE = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "no bytes": b"",
    "a bad length": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
    "a bad chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "shorter than its length": b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + PLAIN,
    "chunks without an end": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"%x\r\n%b\r\n" % (len(PLAIN), PLAIN),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_is_no_http_answer_is_a_failure_worth_another_try(settings, kind):
    async def talk(reader, writer):
        await read_request(reader)
        writer.write(GARBAGE[kind])

    async def go():
        async with bare_server(talk) as address:
            policy = opened(settings, f"http://{address}/v1", max_attempts=2)
            try:
                await policy.complete(ASKED, Deadline.within(10))
            finally:
                await policy.close()

    with pytest.raises(ProviderError) as caught:
        asyncio.run(go())
    assert caught.value.retryable


# -- keys


def test_the_key_is_sent_and_never_shown(ask, monkeypatch):
    monkeypatch.setenv("MY_VARIABLE", "very private words")
    echo = raw({"error": {"message": "the key very private words is unknown"}}, 401)
    error, endpoint = failed(ask, echo, api_key_env="MY_VARIABLE")
    assert endpoint.headers[0]["Authorization"] == "Bearer very private words"
    assert "private" not in f"{error} {error.hint}"
    assert "MY_VARIABLE" in error.hint


def test_without_a_key_no_authorization_and_nothing_of_another_account_is_sent(ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "for openai only")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    _, endpoint = ask(said())
    sent = str(endpoint.headers[0])
    assert "Authorization" not in endpoint.headers[0]
    assert "for openai only" not in sent
    assert "org-1" not in sent
    assert "project-1" not in sent


def test_a_key_that_is_not_set_is_told_before_any_call(settings, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UsageError, match="NO_SUCH_KEY"):
        opened(settings, "http://127.0.0.1:9/v1", api_key_env="NO_SUCH_KEY")
    monkeypatch.setenv("NO_SUCH_KEY", "two\nlines")
    with pytest.raises(UsageError, match="odd characters"):
        opened(settings, "http://127.0.0.1:9/v1", api_key_env="NO_SUCH_KEY")


# -- parameters that a server does not take


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("stream_options", "Unrecognized request argument supplied: stream_options"),
        ("temperature", "Unsupported value: 'temperature' does not support 0.2 with this model"),
        ("seed", "body -> seed: Extra inputs are not permitted"),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_from_then_on(settings, name, message):
    def answer(body):
        return raw({"error": {"message": message}}, 400) if name in body else said()

    async def go():
        from msgspec.structs import replace

        async with serving(answer) as endpoint:
            policy = opened(settings, endpoint.url)
            asked = replace(ASKED, seed=1)
            replies = [await policy.complete(asked, Deadline.within(10)) for _ in range(2)]
            await policy.close()
            return replies, endpoint

    (first, second), endpoint = asyncio.run(go())
    assert first.retry_reasons == (f"without {name}",)
    assert (second.retry_reasons, len(endpoint.bodies)) == ((), 3)


def test_max_completion_tokens_where_a_server_wants_it(ask):
    refused = raw(
        {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."}},
        400,
    )
    _, endpoint = ask(refused, said())
    assert "max_tokens" not in endpoint.bodies[1]
    assert endpoint.bodies[1]["max_completion_tokens"] == 64
