"""A loopback endpoint that plays a policy with one tool and the members of a panel."""

import asyncio
import json
import re
import threading
from collections import Counter
from contextlib import contextmanager

from aiohttp import web
from faulty_endpoint import answer

SID = re.compile(r"SID=(\d+)")
RUBRICS = ("rubric-accuracy", "rubric-effectiveness")


class PanelStub:
    """`calls` counts by model, `asked` by (item, member, turn)."""

    def __init__(self, *, judge_s=0.0, rubrics=(), broken=()):
        self.judge_s, self.rubrics, self.broken = judge_s, rubrics, broken
        self.calls = Counter()
        self.asked = Counter()
        self.in_flight = self.most_in_flight = 0
        self.judging = self.most_judging = 0

    async def handle(self, request):
        body = await request.json()
        model = body["model"]
        self.calls[model] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            sid = int(SID.search(json.dumps(body["messages"]))[1])
            turn = sum(m["role"] == "assistant" for m in body["messages"])
            if model == "stub":
                message = host(sid, turn)
            else:
                self.asked[f"item-{sid:04d}", model, turn] += 1
                message = await self._judge(model, turn)
        finally:
            self.in_flight -= 1
        if message is None:
            return web.json_response({"error": {"message": "down"}}, status=500)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 50, "completion_tokens": 10}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return web.json_response({"id": "x", "model": model, "choices": [choice], "usage": usage})

    async def _judge(self, model, turn):
        self.judging += 1
        self.most_judging = max(self.most_judging, self.judging)
        try:
            await asyncio.sleep(self.judge_s)
        finally:
            self.judging -= 1
        if model in self.broken:
            return None
        if turn == 0:
            return calling(*(("load_skill", {"skill": name}) for name in RUBRICS))
        verdict = {
            "accuracy": 1,
            "effectiveness": 1,
            "reasons": {"accuracy": f"{model} finds nothing", "effectiveness": "all of it"},
            "evidence": [{"ref": "reply"}],
            "rubrics": [{"id": name, "passed": passed} for name, passed in self.rubrics],
        }
        return calling(("submit_verdict", verdict))


def host(sid, turn):
    if turn == 0:
        return calling(("lookup", {"q": str(sid)}))
    return {"role": "assistant", "content": answer(sid)}


def calling(*calls):
    made = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for n, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


@contextmanager
def serving(endpoint):
    """The endpoint on a loop and thread of its own: its address."""
    ready, loop, box = threading.Event(), asyncio.new_event_loop(), {}

    async def up():
        app = web.Application()
        app.router.add_post("/v1/chat/completions", endpoint.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        box.update(runner=runner, url=f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        ready.set()

    async def down():
        await box["runner"].cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def work():
        loop.run_until_complete(up())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield box["url"]
    finally:
        asyncio.run_coroutine_threadsafe(down(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
