"""Gold solutions under an augmented state: played through the real runtime, then judged.

    GoldSolution ──map──▶ script of a policy ──rollout in the state──▶ hooks silent?
                                                        │ map back
                                                        ▼
                                         judge and rubrics as under the base?

Tools answer with the gold calls' own results, and only to the executor's own names and arguments:
a call that reaches its executor under a wrong name finds no answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_cli.augmentation.renaming import Renaming
from harness_cli.augmentation.validate import Fault
from harness_cli.errors import ToolError
from harness_cli.harness.tools import skill_argument
from harness_cli.judges.assertions import check_assertions
from harness_cli.judges.base import Judge
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.calibration import LabelledCall
from harness_cli.records.canonical import canonical_json
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.gold import GoldSolution
from harness_cli.records.harness import Constraint, HarnessState, Tool
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import StopReason, ToolResult, Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.hooks.check_text import sentences
from harness_cli.runtime.loop import rollout

FULL = {"accuracy": 1.0, "effectiveness": 1.0}


@dataclass(frozen=True, slots=True)
class Gold:
    """An item with its solution in the base's names."""

    item: Item
    solution: GoldSolution


@dataclass(frozen=True, slots=True)
class Grounds:
    """What golds are judged by."""

    world: Catalogue
    judge: Judge


class GivenResults:
    """Answers the calls of one solution, by operation and the executor's own arguments."""

    def __init__(self, calls: Mapping[str, LabelledCall]) -> None:
        self._calls = dict(calls)

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:  # noqa: ARG002
        """The gold call's result; a typed error for any other call."""
        found = self._calls.get(_key(tool.operation, arguments))
        if found is None:
            raise ToolError.of("not_found", f"`{tool.operation}` was not called like this")
        text = json.dumps(found.result, ensure_ascii=False)
        return ToolResult(ok=found.ok, content=text, structured=found.result)

    async def close(self) -> None:
        """Nothing was started."""


async def gold_faults(
    state: HarnessState,
    given: AugmentationMap,
    base: HarnessState,
    golds: Sequence[Gold],
    grounds: Grounds,
) -> list[Fault]:
    """What is wrong with gold solutions under a state that is right with them under the base."""
    renaming = Renaming(given)
    found: list[Fault] = []
    for gold in golds:
        there = Gold(renaming.item(gold.item), renaming.solution(gold.solution))
        calls = _answers(base, gold.solution)
        trajectory = await played(state, there, calls, grounds.world)
        wrong = _hooks(trajectory, there) + _limits(state, base, gold, trajectory)
        back = renaming.to_base().trajectory(trajectory)
        if not wrong and back.calls != () and _unmapped(back, base):
            wrong.append("a call does not come back under the base's name")
        wrong = wrong or await _rubrics(gold.item, back, grounds)
        wrong = wrong or _asserted(there.item, trajectory)
        if wrong and not await base_faults(base, gold, grounds):
            found.append(Fault("gold", f"{gold.item.id}: {wrong[0]}"))
    return found


async def base_faults(base: HarnessState, gold: Gold, grounds: Grounds) -> list[str]:
    """What is wrong with a gold solution under the base itself: then it is none."""
    trajectory = await played(base, gold, _answers(base, gold.solution), grounds.world)
    wrong = _hooks(trajectory, gold)
    wrong = wrong or await _rubrics(gold.item, trajectory, grounds)
    return wrong or _asserted(gold.item, trajectory)


async def played(
    state: HarnessState, gold: Gold, calls: Mapping[str, LabelledCall], world: Catalogue
) -> Trajectory:
    """The rollout of a policy that does what the solution says, hooks and all."""
    results = GivenResults(calls)
    agent = Agent(
        state=state,
        policy=ScriptedPolicy(script(state, gold.solution), policy_id="gold"),
        executors={"sandbox": results, "mcp": results, "python": results, "http": results},
        world=world,
    )
    return await rollout(gold.item.request, agent, request_id=gold.item.id, item_id=gold.item.id)


def script(state: HarnessState, gold: GoldSolution) -> list[ChatReply]:
    """The replies of a policy that follows a solution given in the names of the state."""
    loader = next((t for t in state.all_tools() if t.operation == "load_skill"), None)
    key = skill_argument(loader) if loader else None
    opening = [
        LabelledCall(name=loader.name, arguments={key: skill})
        for skill in gold.skills
        if loader is not None and key is not None
    ]
    rounds = [[*opening, *gold.rounds[0]], *gold.rounds[1:]] if gold.rounds else [opening]
    turns = [_turn(number, calls) for number, calls in enumerate(rounds) if calls]
    return [*turns, ChatReply(content=gold.reply, finish_reason="stop")]


def _turn(number: int, calls: Sequence[LabelledCall]) -> ChatReply:
    asked = tuple(
        RawToolCall(
            id=f"g{number}-{n}",
            name=call.name,
            arguments=json.dumps(call.arguments, ensure_ascii=False),
        )
        for n, call in enumerate(calls)
    )
    return ChatReply(tool_calls=asked, finish_reason="tool_calls")


def _answers(base: HarnessState, gold: GoldSolution) -> dict[str, LabelledCall]:
    """Operation and executor's arguments → the gold call, given in the base's names."""
    tools = {tool.name: tool for tool in base.all_tools()}
    found = {}
    for call in (c for calls in gold.rounds for c in calls):
        tool = tools.get(call.name)
        names = tool.argument_names if tool else {}
        theirs = {names.get(k, k): v for k, v in call.arguments.items()}
        found[_key(tool.operation if tool else call.name, theirs)] = call
    return found


def _key(operation: str, arguments: Mapping[str, Any]) -> str:
    return operation + canonical_json(dict(arguments)).decode()


def _hooks(trajectory: Trajectory, gold: Gold) -> list[str]:
    """Every objection of a hook, every call that failed, another end or reply than the gold's."""
    events = [*trajectory.hooks, *(e for step in trajectory.steps for e in step.hooks)]
    wrong = [
        f"the hook `{e.hook}` says {e.outcome}: {e.reason}" for e in events if e.outcome != "allow"
    ]
    calls = {c.name: c.ok for calls in gold.solution.rounds for c in calls}
    wrong += [
        f"`{c.name}` failed: {c.result.content[:80]}"
        for c in trajectory.calls
        if not c.result.ok and calls.get(c.name, True)
    ]
    silent = not gold.solution.reply
    ended = StopReason.REFUSED if silent else StopReason.COMPLETED
    if trajectory.stop != ended:
        wrong.append(f"it ended as {trajectory.stop}: {trajectory.error or ''}".rstrip(": "))
    elif not silent and trajectory.reply != gold.solution.reply.strip():
        wrong.append("another reply was given")
    return wrong


def _limits(
    state: HarnessState, base: HarnessState, gold: Gold, trajectory: Trajectory
) -> list[str]:
    """Numbers the prompt states that the gold keeps under the base and no longer keeps here."""
    sizes = {
        "characters": len(gold.solution.reply),
        "sentences": len([s for s in sentences(gold.solution.reply) if s.strip()]),
        "rounds": len(trajectory.steps),
        "calls": len([c for c in trajectory.calls if c.executor != "builtin"]),
    }
    before = _constraints(base)
    return [
        f"it needs {sizes[now.unit]} {now.unit}, `{name}` allows {now.value}"
        for name, now in _constraints(state).items()
        if now.unit in sizes and now.value < sizes[now.unit] <= before[name].value
    ]


def _constraints(state: HarnessState) -> dict[str, Constraint]:
    pipeline = state.pipelines.get("default")
    return pipeline.constraints if pipeline else {}


def _unmapped(trajectory: Trajectory, base: HarnessState) -> bool:
    names = {tool.name for tool in base.all_tools()}
    return any(call.name not in names for call in trajectory.calls)


async def _rubrics(item: Item, trajectory: Trajectory, grounds: Grounds) -> list[str]:
    """What the judge takes away, and expected calls that are missing."""
    verdict = await grounds.judge.judge(item, trajectory, grounds.world)
    wrong = [
        f"{name} is {verdict.scores[name]}"
        for name, full in FULL.items()
        if verdict.scores.get(name) not in (None, full)
    ]
    called = [call.name for call in trajectory.calls]
    wrong += [f"`{t.name}` was not called" for t in item.expect.tools if t.name not in called]
    missing = [s for s in item.expect.skills if s not in trajectory.skills_loaded]
    return wrong + [f"`{skill}` was not loaded" for skill in missing]


def _asserted(item: Item, trajectory: Trajectory) -> list[str]:
    results = check_assertions(item, trajectory)
    return [f"assertion {r.type}: {r.reason}" for r in results if r.passed is False]
