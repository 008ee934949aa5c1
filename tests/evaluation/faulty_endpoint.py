"""A loopback chat endpoint with faults: one tool call, then an answer that names its item.

It counts every request by item and turn, so a test can tell which calls were made twice.
"""

import asyncio
import json
import random
import re
import threading
from collections import Counter
from contextlib import contextmanager

from aiohttp import web

FAULTS = ("429", "500", "truncated", "half-closed", "no-finish", "hang")
SID = re.compile(r"SID=(\d+)")


def answer(sid: int) -> str:
    """The only right answer to an item."""
    return f"The code of article {sid} is C{sid * 7919 % 100_003}."


class Endpoint:
    """Answers by what it is asked; `faults` maps a kind to its share of requests."""

    def __init__(self, *, think_s=0.0, faults=None, seed=0, usage=True):
        self.think_s, self.faults, self.usage = think_s, faults or {}, usage
        self.rng = random.Random(seed)
        self.calls = Counter()
        self.injected = Counter()
        self.bodies = []
        self.in_flight = self.most_in_flight = 0
        self.answers = Counter()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._answer(request, body)
        finally:
            self.in_flight -= 1

    async def _answer(self, request, body):
        sid = int(SID.search(json.dumps(body["messages"]))[1])
        turn = 2 if any(m["role"] == "tool" for m in body["messages"]) else 1
        self.calls[sid, turn] += 1
        self.bodies.append(body)
        await asyncio.sleep(self.think_s)
        fault = self._fault()
        if fault == "429":
            return web.json_response({"error": {"message": "slow down"}}, status=429)
        if fault == "500":
            return web.json_response({"error": {"message": "broken"}}, status=500)
        if fault == "hang":
            await asyncio.sleep(3600)
        response = await self._stream(request, events(sid, turn, usage=self.usage), fault)
        self.answers[sid, turn] += fault is None
        return response

    async def _stream(self, request, parts, fault):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if fault == "truncated":
            await response.write(b'data: {"id":"x","choi\n\ndata: [DONE]\n\n')
            return response
        for part in parts[:1] if fault else parts:
            await response.write(b"data: " + json.dumps(part).encode() + b"\n\n")
        if fault == "half-closed":
            request.transport.abort()
        elif fault is None:
            await response.write(b"data: [DONE]\n\n")
        return response

    def _fault(self):
        drawn, below = self.rng.random(), 0.0
        for kind, share in self.faults.items():
            below += share
            if drawn < below:
                self.injected[kind] += 1
                return kind
        return None


def events(sid, turn, *, usage=True):
    if turn == 1:
        call = {
            "index": 0,
            "id": f"call_{sid}",
            "type": "function",
            "function": {"name": "lookup", "arguments": ""},
        }
        parts = [
            {"role": "assistant", "tool_calls": [call]},
            {"tool_calls": [{"index": 0, "function": {"arguments": json.dumps({"q": str(sid)})}}]},
        ]
        finish = "tool_calls"
    else:
        text = answer(sid)
        half = len(text) // 2
        parts = [{"role": "assistant", "content": text[:half]}, {"content": text[half:]}]
        finish = "stop"
    chunks = [{"choices": [{"index": 0, "delta": part}], "model": "test"} for part in parts]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        counts = {"prompt_tokens": 100 + sid % 7, "completion_tokens": 9, "total_tokens": 109}
        chunks.append({"choices": [], "usage": counts})
    return chunks


@contextmanager
def serving(endpoint: Endpoint):
    """The endpoint on a loopback port, in a thread of its own; gives its base URL."""
    started, stop = threading.Event(), None
    url = []

    async def main():
        nonlocal stop
        stop = asyncio.Event()
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", endpoint.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url.append(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1")
        started.set()
        await stop.wait()
        await runner.cleanup()
        hung = asyncio.all_tasks() - {asyncio.current_task()}
        for task in hung:
            task.cancel()
        await asyncio.gather(*hung, return_exceptions=True)

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert started.wait(10)
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
