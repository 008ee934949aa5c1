"""The control of the panel: a bare aiohttp loop that makes its calls and keeps nothing.

`python -m benchmarks.panel_bare URL VOTES CONCURRENCY CASE` prints wall and CPU seconds as JSON;
`CASE` is a file with the messages and tools of one vote, as the panel sends them.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import aiohttp

from benchmarks.bare import ask as ask_stub

CALLS = 3
"""Of one vote: two rubrics, one verdict."""


async def one_vote(session: aiohttp.ClientSession, url: str, case: dict) -> None:
    messages = list(case["messages"])
    for n in range(CALLS):
        call = await ask_stub(session, url, messages, case["tools"])
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = case["rubrics"][n] if n < len(case["rubrics"]) else "Received."
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def main(url: str, votes: int, concurrency: int, case: dict) -> dict:
    queue = iter(range(votes))

    async def worker(session: aiohttp.ClientSession) -> None:
        for _ in queue:
            await one_vote(session, url, case)

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker(session) for _ in range(concurrency)))
        return {
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "calls": CALLS * votes,
        }


if __name__ == "__main__":
    address, votes, concurrency, file = sys.argv[1:]
    made = main(address, int(votes), int(concurrency), json.loads(Path(file).read_text()))
    print(json.dumps(asyncio.run(made)))
