"""Lessons by construction: the gold solution of an item, played through the real runtime.

    item ──▶ skill, tool, pattern of the base ──map──▶ script ──rollout there──▶ judge ──▶ row

No teacher model is asked, and the card of the rows says so. What the judge does not give full marks
is no lesson.
"""

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import HarnessError
from harness_cli.harness.tools import offered, skill_argument
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.oracle import fill
from harness_cli.simulator.sandbox import SandboxExecutor
from harness_cli.training.conversation import conversation_of
from harness_cli.training.masking import Order, Tools, mask_all
from harness_cli.training.students import lesson, tools_column
from harness_cli.training.training_rows import ReadRow

TEACHER: Final = "gold"
"""Of rows that were right by construction."""
_SAY: Final = re.compile(r"^[-*] Say: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Setting:
    """One harness state that lessons are played in, and its names."""

    name: str
    state: HarnessState
    map: AugmentationMap


@dataclass(frozen=True, slots=True)
class Shop:
    """What is the same for every lesson."""

    base: HarnessState
    world: Catalogue
    judge: GroundedJudge


async def gold_script(shop: Shop, item: Item, setting: Setting) -> list[ChatReply]:
    """What a policy does that knows the answer: load the skill, call its tool, say what it says.

    Raises `HarnessError` where the skill has no line `Say:`.
    """
    skill = shop.base.skill(item.expect.skills[0])
    said = _SAY.search(skill.body) if skill else None
    if skill is None or said is None:
        raise HarnessError(f"`{item.id}`: no skill of the base says what to reply")
    asked = "\n".join(c.text for c in item.request.comments)
    turns = [_load(shop.base, skill.name, setting.map, asked)]
    reply = said[1]
    for wanted in item.expect.tools:
        tool = next(t for t in shop.base.all_tools() if t.name == wanted.name)
        found = await SandboxExecutor(shop.world).call(tool, dict(wanted.arguments), item.request)
        reply = fill(reply, found.structured or {})
        names = setting.map.parameters.get(wanted.name, {})
        arguments = {names.get(k, k): v for k, v in wanted.arguments.items()}
        turns.append(_call(setting.map.tools.get(wanted.name, wanted.name), arguments))
    return [*turns, ChatReply(content=reply, finish_reason="stop")]


async def played(shop: Shop, item: Item, setting: Setting) -> Trajectory | None:
    """The gold trajectory of an item in a state; None where the judge finds anything wrong."""
    there = Renaming(setting.map).item(item)
    agent = Agent(
        state=setting.state,
        policy=ScriptedPolicy(await gold_script(shop, item, setting), policy_id=TEACHER),
        executors={"sandbox": SandboxExecutor(shop.world)},
        world=shop.world,
        overlay=there.overlay.tools,
        instructions=there.overlay.instructions,
    )
    trajectory = await rollout(item.request, agent, request_id=item.id, item_id=item.id)
    back = Renaming(setting.map).to_base().trajectory(trajectory)
    scores = shop.judge.verdict(item, back, shop.world).scores
    right = scores.get("accuracy") == 1.0 and scores.get("effectiveness") == 1.0
    return trajectory if right else None


async def lessons(
    shop: Shop, pairs: Sequence[tuple[Item, Setting]], tools: Tools
) -> AsyncIterator[ReadRow]:
    """A row of tokens for every pair whose gold passes. Raises `HarnessError` without a mask."""
    for item, setting in pairs:
        trajectory = await played(shop, item, setting)
        if trajectory is None:
            continue
        made = lesson("agent", conversation_of(trajectory), thinking=True, include_last=True)
        if isinstance(made, str):
            raise HarnessError(f"`{item.id}` under `{setting.name}`: {made}")
        column = tools_column(offered(setting.state, overlay=item.overlay.tools))
        (masked,) = mask_all(tools, [Order(made, column, None)])
        if isinstance(masked, str):
            raise HarnessError(f"`{item.id}` under `{setting.name}`: {masked}")
        yield ReadRow(
            id=f"{item.id}@{setting.name}",
            input_ids=tuple(masked.row.input_ids),
            labels=tuple(masked.row.labels()),
        )


def _load(base: HarnessState, skill: str, given: AugmentationMap, asked: str) -> ChatReply:
    """What was asked and which skill fits, aloud, and the call that loads it."""
    loader = next(t for t in base.all_tools() if t.operation == "load_skill")
    key = skill_argument(loader) or "skill"
    name = given.parameters.get(loader.name, {}).get(key, key)
    there = given.skills.get(skill, skill)
    call = _call(given.tools.get(loader.name, loader.name), {name: there})
    return msgspec.structs.replace(call, content=f'{asked} -> "{there}"')


def _call(name: str, arguments: dict[str, object]) -> ChatReply:
    call = RawToolCall(id=f"g-{name}", name=name, arguments=json.dumps(arguments))
    return ChatReply(tool_calls=(call,), finish_reason="tool_calls")
