"""An endpoint for benchmarks that answers as it is told, and a project that asks it.

`make_project` (benchmarks) has one tool, an 8 KB prompt and items of two calls each.
"""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web

from benchmarks.project import make_project
from harness_cli.store.project import Project


class Endpoint:
    """Streams a tool call, then an answer. `habits` bend it:

    `think_s`, `role_first` (the role chunk at once, the rest after thinking), `usage` (False:
    none), `decode_s` (between first and last chunk), `fail` (request number → status),
    `refuse_items` (texts of a body that always gets 500).
    """

    def __init__(self, **habits):
        self.habits = {"think_s": 0.0, "usage": True, "decode_s": 0.0} | habits
        self.asked = 0
        self.running = self.most = 0
        self.spans = []
        """(sample id, begun, ended) of each request, by the event loop's clock."""

    def app(self):
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self.chat)
        return app

    async def chat(self, request):
        body = await request.json()
        self.asked += 1
        number, text = self.asked, json.dumps(body)
        status = self.habits.get("fail", {}).get(number)
        if status is None and any(bad in text for bad in self.habits.get("refuse_items", ())):
            status = 500
        if status is not None:
            return web.json_response({"error": {"message": "told to fail"}}, status=status)
        sample = text.split("SID=", 1)[1].split(" ", 1)[0]
        begun = asyncio.get_running_loop().time()
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._stream(request, body, sample)
        finally:
            self.running -= 1
            self.spans.append((int(sample), begun, asyncio.get_running_loop().time()))

    async def _stream(self, request, body, sample):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        if self.habits.get("role_first"):
            await response.prepare(request)
            await self._send(response, {"role": "assistant", "content": ""})
        await asyncio.sleep(self.habits["think_s"])
        if not self.habits.get("role_first"):
            await response.prepare(request)
        second = any(message["role"] == "tool" for message in body["messages"])
        if second:
            await self._send(response, {"content": "The answer is "})
            await asyncio.sleep(self.habits["decode_s"])
            await self._send(response, {"content": "42."})
        else:
            function = {"name": "lookup", "arguments": json.dumps({"q": sample})}
            call = {"index": 0, "id": f"c{sample}", "type": "function", "function": function}
            await self._send(response, {"tool_calls": [call]})
            await asyncio.sleep(self.habits["decode_s"])
        await self._send(response, {}, finish="stop" if second else "tool_calls")
        if self.habits["usage"]:
            usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
                     "prompt_tokens_details": {"cached_tokens": 80}}  # fmt: skip
            await self._write(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _send(self, response, delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        await self._write(response, {"model": "stub", "choices": [choice]})

    @staticmethod
    async def _write(response, payload):
        await response.write(b"data: " + json.dumps(payload).encode() + b"\n\n")


@asynccontextmanager
async def serving(endpoint, port=0):
    runner = web.AppRunner(endpoint.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def project_at(folder, url, items=14, **policy) -> Project:
    settings = {"max_attempts": 2, "attempt_timeout_s": 10} | policy
    return Project.find(make_project(folder, items, url, **settings))
