"""A real loopback endpoint: answers as it is told, byte for byte, and keeps what it was sent."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from harness_cli.records.chat import ChatRequest

TOOL = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
}
ASKED = ChatRequest(messages=({"role": "user", "content": "hi"},), tools=(TOOL,), max_tokens=64)


@dataclass
class Answer:
    """What to send: whole bytes, pieces with pauses, a status, an abrupt end."""

    body: bytes = b""
    pieces: tuple[bytes, ...] | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    wait_s: float = 0.0
    cut: bool = False
    """Close the connection without ending the body."""


def whole(message: dict[str, Any] | None = None, **more: Any) -> Answer:
    """A JSON answer with one choice."""
    finish = more.pop("finish_reason", "stop")
    payload = {
        "id": "c-1",
        "object": "chat.completion",
        "model": "served",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        **more,
    }
    return raw(payload)


def raw(payload: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(
        json.dumps(payload).encode(),
        status=status,
        headers={"Content-Type": "application/json", **headers},
    )


def event(payload: Any) -> bytes:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return b"data: " + data + b"\n\n"


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "c-1",
        "object": "chat.completion.chunk",
        "model": "served",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


DONE = b"data: [DONE]\n\n"
USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}


def stream(*payloads: Any, done: bool = True, **more: Any) -> Answer:
    """An event stream of payloads, each in a piece of its own."""
    pieces = tuple(event(p) for p in payloads) + ((DONE,) if done else ())
    return Answer(pieces=pieces, headers={"Content-Type": "text/event-stream"}, **more)


def said(text: str = "Hello.") -> Answer:
    """An ordinary streamed reply."""
    return stream(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": text}),
        chunk({}, "stop"),
        USAGE,
    )


class Endpoint:
    """Serves answers in order; the last one again and again."""

    def __init__(self, answers: list[Answer] | Callable[[dict[str, Any]], Answer]) -> None:
        self._answers = answers
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.peers: list[Any] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peername"))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if callable(self._answers):
                answer = self._answers(body)
            else:
                answer = self._answers[min(len(self.bodies), len(self._answers)) - 1]
            return await self._send(request, answer)
        finally:
            self.in_flight -= 1

    async def _send(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        await asyncio.sleep(answer.wait_s)
        if answer.pieces is None and not answer.cut:
            return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        if answer.pieces is None:
            response.content_length = len(answer.body)
            pieces: tuple[bytes, ...] = (answer.body[: len(answer.body) // 2],)
        else:
            response.enable_chunked_encoding()
            pieces = answer.pieces
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(answer.pause_s)
        if answer.cut:
            assert request.transport is not None
            request.transport.abort()
        else:
            await response.write_eof()
        return response


@contextlib.asynccontextmanager
async def serving(
    answers: list[Answer] | Callable[[dict[str, Any]], Answer], **kwargs: Any
) -> AsyncIterator[Endpoint]:
    """The endpoint, up and on a free loopback port."""
    endpoint = Endpoint(answers)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, **kwargs)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    endpoint.url = f"http://127.0.0.1:{port}/v1"
    try:
        yield endpoint
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def bare_server(
    talk: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any], **kwargs: Any
) -> AsyncIterator[str]:
    """A TCP server that speaks as `talk` does, for what no web framework would send."""
    tasks: set[asyncio.Task[None]] = set()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        gone = ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
        with contextlib.suppress(*gone):
            await talk(reader, writer)
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(guarded, "127.0.0.1", 0, **kwargs)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """(head, body) of one HTTP request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = next(
        (
            int(line.split(":")[1])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length")
        ),
        0,
    )
    return head, await reader.readexactly(length)


PLAIN = json.dumps(
    {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}], "usage": None}
).encode()


def http(
    body: bytes = PLAIN, head: str = "HTTP/1.1 200 OK\r\nContent-Type: application/json"
) -> bytes:
    """A response with its length."""
    return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
