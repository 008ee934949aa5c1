"""Tool Robustness: the right one of several unseen tools, distractors beside it (TC, RC, ADR)."""

import json
import random

from harness_cli.records.item import Assertion, Expect, ExpectedTool, Item, Overlay
from harness_cli.simulator.robustness.drafts import (
    Asked,
    Draft,
    addresses,
    ask,
    definition,
    informs,
    request_of,
)
from harness_cli.simulator.robustness.seeds import Seeds, ToolSeed
from harness_cli.simulator.robustness.values import drawn, fill
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.setting import Scene

DISTRACTORS = (2, 3)
"""Least and most tools that stand beside the right one, the harness's own not counted."""


def tool_draft(
    seeds: Seeds, scene: Scene, seed: ToolSeed, language: str, rng: random.Random
) -> Draft:
    """One item of Tool Robustness."""
    asked = ask(seed, scene, language, rng)
    others = _distractors(seeds, seed, rng)
    named = [(other, pick(rng, other.tool.names)) for other in others]
    tools = [definition(seed.tool, asked.tool_name)]
    tools += [definition(other.tool, name) for other, name in named]
    rng.shuffle(tools)
    returns = {asked.tool_name: asked.returns}
    for other, name in named:
        values = drawn(other.draws, rng)
        values |= {"viewer": asked.viewer, "room": asked.room.id, "ref": "it", "link": 1}
        returns[name] = {k: fill(v, values, "en") for k, v in other.returns.items()}
    wrong_name = named[0][1]
    item = Item(
        id="",
        split="test",
        category=seed.category,
        request=request_of(asked, scene, rng),
        expect=Expect(tools=(_expected(asked),)),
        assert_=(
            addresses(asked),
            informs(asked),
            Assertion(type="trajectory:tool-used", value=asked.tool_name, metric="tc"),
        ),
        overlay=Overlay(tools=tuple(tools)),
        tool_returns=returns,
        tags=(language, f"seed:{seed.id}"),
    )
    return Draft(
        item=item,
        calls=((asked.tool_name, asked.arguments),),
        reply=asked.reply,
        wrong_calls=((wrong_name, {}),),
        wrong_reply=json.dumps(returns[wrong_name], ensure_ascii=False),
        key=f"{asked.comment}/{asked.room.id}/{asked.values.get('link')}/{asked.returns}",
    )


def _expected(asked: Asked) -> ExpectedTool:
    numbers = {k: v for k, v in asked.arguments.items() if isinstance(v, int)}
    return ExpectedTool(name=asked.tool_name, arguments=numbers)


def _distractors(seeds: Seeds, seed: ToolSeed, rng: random.Random) -> list[ToolSeed]:
    """Tools of other needs, one of the same kind of need first where there is one."""
    count = rng.randrange(DISTRACTORS[0], DISTRACTORS[1] + 1)
    others = [s for s in seeds.tools if s.id != seed.id]
    near = [s for s in others if s.category == seed.category]
    chosen = [pick(rng, near)] if near else []
    rest = [s for s in others if s not in chosen]
    return chosen + rng.sample(rest, count - len(chosen))
