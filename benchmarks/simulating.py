"""The simulator without model time: CPU of a rollout step, and a thousand rooms at once.

Each figure comes from a process of its own, which makes a project's rooms, lets a host that needs
no time step them, and reports its CPU seconds or its resident memory. A step is one action of the
policy with everything that follows from it: hooks, tools, the next prompt, the next request, and
its share of making the room. Hooks are the shipped ones, all declarative; rewards are not scored.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.floor import result
from benchmarks.process import harness, run

STEP_MS, ROOMS_MB = 2.0, 500.0
COMMON = """
import asyncio, json, resource, sys, time
from pathlib import Path
from harness_cli.simulator.environment import Environment
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.rooms import open_rooms

rooms = open_rooms(Path.cwd(), rewards=False)
CALLS = {"content": None, "tool_calls": [
    {"function": {"name": "load_skill", "arguments": {"skill": "item-qa"}}},
    {"function": {"name": "get_product_info_by_link_id", "arguments": {"link_id": 2}}},
]}
SAYS = {"content": "Link 2 is here in the room, have a look at it!"}

def room(**chosen):
    return Environment(rooms.shop, rooms.draws, Settings(**chosen))
"""
STEPS = (
    COMMON
    + """
async def main(episodes):
    async def played(seeds):
        steps = 0
        for seed in seeds:
            env = room()
            seen = await env.reset(seed)
            while not env.done:
                stepped = await env.step(SAYS if seen.call else CALLS)
                steps += 1
                seen = stepped.observation or seen
        return steps
    await played(range(30))
    began = time.process_time()
    steps = await played(range(1000, 1000 + episodes))
    return {"ms": (time.process_time() - began) / steps * 1e3, "steps": steps}
print(json.dumps(asyncio.run(main(int(sys.argv[1])))))
"""
)
CROWD = (
    COMMON
    + """
def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6

async def main(count):
    before = resident()
    envs = [room() for _ in range(count)]
    began = time.perf_counter()
    seen = [await env.reset(seed) for seed, env in enumerate(envs)]
    await asyncio.gather(*(env.step(CALLS) for env in envs))
    took = time.perf_counter() - began
    now = resident()
    assert not any(env.done for env in envs)
    for env in envs:
        await env.close()
    return {"mb": now, "grown": now - before, "seconds": took, "seen": len(seen)}
print(json.dumps(asyncio.run(main(int(sys.argv[1])))))
"""
)


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    harness(folder, "init", "shop", "-q")
    root = folder / "shop"
    episodes, count, rounds = (60, 1000, 1) if quick else (600, 1000, 5)
    steps = [said(root, STEPS, episodes) for _ in range(rounds)]
    value = median(s["ms"] for s in steps)
    how = (
        f"{steps[0]['steps']} steps of {episodes} rooms of one request each, shipped hooks, no "
        f"rewards, median of {rounds} processes"
    )
    name = "ms of CPU a rollout step in the simulator"
    yield result(name, value, f"<= {STEP_MS:g}", value <= STEP_MS, how)
    crowd = said(root, CROWD, count)
    how = (
        f"resident memory of the process with {count} rooms one call into their rollouts, "
        f"{crowd['grown']:.0f} MB of it the rooms'; opened and stepped in {crowd['seconds']:.1f} s"
    )
    name = "MB of 1,000 concurrent rooms"
    yield result(name, crowd["mb"], f"<= {ROOMS_MB:g}", crowd["mb"] <= ROOMS_MB, how)


def said(root: Path, program: str, count: int) -> dict:
    """What a program prints, run in the project."""
    done = run([sys.executable, "-c", program, str(count)], root)
    return json.loads(done.out.splitlines()[-1])
