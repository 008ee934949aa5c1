"""The control: a bare aiohttp loop that makes the same calls and keeps nothing.

`python -m benchmarks.bare URL ITEMS CONCURRENCY` prints wall and CPU seconds as one JSON object.
"""

import asyncio
import json
import sys
import time

import aiohttp

from benchmarks.project import LOAD_SKILL, LOOKUP, prompt

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["inputSchema"],
        },
    }
    for tool in (LOAD_SKILL, LOOKUP)
]


async def one_item(session: aiohttp.ClientSession, url: str, n: int) -> None:
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"What about SID={n} today?"},
    ]
    call = await ask(session, url, messages)
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": call["id"], "content": '{"answer":42}'})
    await ask(session, url, messages)


async def ask(
    session: aiohttp.ClientSession, url: str, messages: list, tools: list = TOOLS
) -> dict:
    body = {"model": "stub", "messages": messages, "tools": tools, "stream": True}
    call: dict = {"function": {"arguments": ""}}
    async with session.post(url, json=body) as response:
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                for part in choice["delta"].get("tool_calls", []):
                    call |= {k: part[k] for k in ("id", "type") if k in part}
                    call["function"]["name"] = part["function"].get("name", "lookup")
                    call["function"]["arguments"] += part["function"].get("arguments", "")
    return call


async def main(url: str, items: int, concurrency: int) -> dict:
    queue = iter(range(items))

    async def worker(session: aiohttp.ClientSession) -> None:
        for n in queue:
            await one_item(session, url, n)

    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker(session) for _ in range(concurrency)))
        return {
            "wall_s": time.perf_counter() - wall,
            "cpu_s": time.process_time() - cpu,
            "calls": 2 * items,
        }


SYSTEM = prompt()

if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
