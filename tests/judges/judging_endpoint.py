"""A loopback chat endpoint that judges as a test tells it, and a project whose panel asks it."""

import asyncio
import json
import shutil
import subprocess
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]
LOADS = (
    ("load_skill", {"skill": "rubric-accuracy"}),
    ("load_skill", {"skill": "rubric-effectiveness"}),
)
GOOD = {
    "accuracy": 1,
    "effectiveness": 0.5,
    "reasons": {"accuracy": "nothing is wrong", "effectiveness": "half of it"},
    "evidence": [{"ref": "reply", "says": "the whole of it"}],
    "findings": [],
}


def calling(*calls, content=None):
    """An assistant message with tool calls; arguments may be text, sent as it stands."""
    made = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": args if isinstance(args, str) else json.dumps(args),
            },
        }
        for n, (name, args) in enumerate(calls)
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


def saying(text):
    return {"role": "assistant", "content": text}


def verdict(**change):
    return calling(("submit_verdict", {**GOOD, **change}))


def turn_of(body):
    """How many answers of the judge the request holds already."""
    return sum(m["role"] == "assistant" for m in body["messages"])


def in_turns(*messages):
    """A judge that loads the rubrics, then answers with `messages`, the last again and again."""
    answers = (calling(*LOADS), *messages)
    return lambda body: answers[min(turn_of(body), len(answers) - 1)]


class JudgeEndpoint:
    """Answers by model name; an answer may be a message, or a status code to fail with."""

    def __init__(self, models, *, think_s=0.0):
        self.models = models
        self.think_s = think_s
        self.calls = Counter()
        self.bodies = []
        self.in_flight = self.most_in_flight = 0

    async def handle(self, request):
        body = await request.json()
        self.bodies.append(body)
        self.calls[body["model"]] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.think_s)
            answer = self.models[body["model"]](body)
        finally:
            self.in_flight -= 1
        if answer == "hang":
            await asyncio.sleep(3600)
        if isinstance(answer, int):
            return web.json_response({"error": {"message": "no"}}, status=answer)
        finish = "tool_calls" if answer.get("tool_calls") else "stop"
        if answer.get("refusal"):
            finish = "content_filter"
        return web.json_response(
            {
                "id": "x",
                "model": body["model"],
                "choices": [{"index": 0, "message": answer, "finish_reason": finish}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10},
            }
        )


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


def panel_project(root, url, models, judges, **settings):
    """A committed project: one `openai` policy a model, the shipped judge's harness, the judges."""
    fast = {"stream": False, "max_attempts": 1, "attempt_timeout_s": 10, **settings}
    policies = {m: {"kind": "openai", "base_url": url, "model": m, **fast} for m in models}
    config = {
        "schema": 1,
        "policy": next(iter(policies)),
        "policies": policies,
        "judges": judges,
    }
    root.mkdir(parents=True)
    shutil.copytree(ROOT / "harness_repo" / "judges", root / "harness_repo" / "judges")
    (root / "harness.yaml").write_text(json.dumps(config))
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "judge")):
        subprocess.run(["git", *words], cwd=root, check=True)
    return Project.read(root)
