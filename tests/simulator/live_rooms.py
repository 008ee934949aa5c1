"""A shop, a state and hosts for tests of live rooms."""

import asyncio
from pathlib import Path

from harness_cli.harness.load import state_from_files
from harness_cli.simulator.environment import Environment
from harness_cli.simulator.live.settings import Faults, Settings
from harness_cli.simulator.live.shop import open_shop
from harness_cli.simulator.live.states import Draws
from harness_cli.store.tree import FILE, Entry

ROOT = Path(__file__).parents[2]
SHOP = open_shop(ROOT / "evalsets")
CALM = Faults(timeout=0, malformed=0, denied=0)


def shipped_files():
    harness = ROOT / "harness_repo"
    return {
        p.relative_to(harness).as_posix(): Entry(FILE, p.read_bytes())
        for p in sorted(harness.rglob("*"))
        if p.is_file() and p.relative_to(harness).parts[0] not in ("judges", "failure_classes")
    }


STATE = state_from_files(shipped_files())
DRAWS = Draws(STATE)


def calling(*calls, content=None):
    """An assistant message with tool calls."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": given}}
            for n, (name, given) in enumerate(calls)
        ],
    }


def looks_up_link_2(seen):
    """A host that answers everything with link 2."""
    if seen.call == 0:
        return calling(
            ("load_skill", {"skill": "item-qa"}),
            ("get_product_info_by_link_id", {"link_id": 2}),
        )
    return "Link 2 is here in the room, have a look at it!"


async def played(seed, host=looks_up_link_2, chosen=None, *, group=None, rollout=0, **more):
    """One episode stepped to its end: the environment, and every step."""
    draws = more.pop("draws", None) or Draws(STATE)  # groups of other tests are none of its own
    env = Environment(SHOP, draws, chosen or Settings(), **more)
    seen, steps = await env.reset(seed, group=group, rollout=rollout), []
    while not env.done:
        steps.append(await env.step(host(seen)))
        seen = steps[-1].observation or seen
    return env, steps


def play(*args, **kwargs):
    return asyncio.run(played(*args, **kwargs))
