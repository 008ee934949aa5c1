"""Lessons by construction: the gold solution of an item, played through the real runtime.

    item ──▶ skill, tool, pattern of the base ──map──▶ script ──rollout there──▶ judge ──▶ row

No teacher model is asked, and the card of the rows says so. What the judge does not give full marks
is no lesson.
"""

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

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
from harness_cli.training.students import Lesson, lesson, tools_column
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
    shop: Shop, pairs: Sequence[tuple[Item, Setting]], tools: Tools, *, together: int = 1
) -> AsyncIterator[ReadRow]:
    """A row of tokens for every pair whose gold passes, or for up to `together` of one harness.

    Raises `HarnessError` without a mask.
    """
    waiting: dict[bytes, list[_Played]] = {}
    for item, setting in pairs:
        trajectory = await played(shop, item, setting)
        if trajectory is None:
            continue
        name = f"{item.id}@{setting.name}"
        made = lesson("agent", conversation_of(trajectory), thinking=True, include_last=True)
        if isinstance(made, str):
            raise HarnessError(f"`{name}`: {made}")
        column = tools_column(offered(setting.state, overlay=item.overlay.tools))
        shown = msgspec.json.encode((made.messages[0], column))
        mine = waiting.setdefault(shown, [])
        mine.append(_Played(name, made, column))
        if len(mine) == together:
            yield _row(waiting.pop(shown), tools)
    for left in waiting.values():
        yield _row(left, tools)


class _Played(NamedTuple):
    """A gold trajectory as a lesson, with the tools it was shown."""

    name: str
    lesson: Lesson
    tools: list[dict[str, Any]] | None


def _row(found: Sequence[_Played], tools: Tools) -> ReadRow:
    name = "+".join(one.name for one in found)
    whole = joined([one.lesson for one in found])
    (masked,) = mask_all(tools, [Order(whole, found[0].tools, None)])
    if isinstance(masked, str):
        raise HarnessError(f"`{name}`: {masked}")
    labels = tuple(masked.row.labels())
    return ReadRow(id=name, input_ids=tuple(masked.row.input_ids), labels=labels)


def joined(found: Sequence[Lesson]) -> Lesson:
    """Several requests to one harness as one conversation: its system message is read once.

    On a processor reading the harness is most of a lesson's cost, and the loss falls on the rest.
    """
    first, *others = found
    messages, trained = list(first.messages), list(first.trained)
    for one in others:
        shift = len(messages) - 1
        trained += [position + shift for position in one.trained]
        messages += one.messages[1:]
    return Lesson(first.student, tuple(messages), tuple(trained), found[-1].unfinished)


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
