"""What a map carries over: an item's expectations, a gold solution, a trajectory; both ways.

A map says what names of the base are called here. A policy may say any name, also one that the map
gives to something else: the base's old name of a tool is no tool here. So that nothing it says is
taken for what it did not say, each renaming is closed to a permutation of all names: where
`get_inventory` became `stock_of`, a call of `get_inventory` here comes back as one of `stock_of`,
which is no tool of the base.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.augmentation.json_places import members
from harness_cli.errors import BadFile
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.calibration import LabelledCall
from harness_cli.records.chat import RawToolCall
from harness_cli.records.gold import GoldSolution
from harness_cli.records.item import Assertion, ExpectedTool, Item
from harness_cli.records.trajectory import HookEvent, Step, ToolCall, Trajectory

TOOL_ASSERTIONS = ("trajectory:tool-used", "trajectory:tool-sequence", "tool-call-f1")
ARGUMENTS = "trajectory:tool-args-match"
SKILL = "skill-used"


class Renaming:
    """The names of one map, forwards and backwards."""

    def __init__(self, given: AugmentationMap) -> None:
        """Raises `BadFile` for a map that is not one to one."""
        self.map = given
        self._skills, self._tools = _closed(given.skills), _closed(given.tools)
        self._hooks = _closed(given.hooks)
        self._parameters = {tool: _closed(names) for tool, names in given.parameters.items()}
        self._back = AugmentationMap(
            state=given.state,
            skills=_inverse(given.skills, given.state, "skills"),
            tools=_inverse(given.tools, given.state, "tools"),
            parameters={
                given.tools.get(tool, tool): _inverse(names, given.state, f"parameters of `{tool}`")
                for tool, names in given.parameters.items()
            },
            loader=given.tools.get(given.loader, given.loader),
            hooks=_inverse(given.hooks, given.state, "hooks"),
            blocks=_inverse(given.blocks, given.state, "blocks"),
        )

    def to_base(self) -> "Renaming":
        """The way back: names of the augmented state become the base's."""
        return Renaming(self._back)

    def item(self, item: Item) -> Item:
        """The item as the augmented state is to be held to it; its request stays as it is."""
        expect = item.expect
        mapped = msgspec.structs.replace(
            expect,
            skills=tuple(self.skill(s) for s in expect.skills),
            tools=tuple(self._expected(t) for t in expect.tools),
            order=tuple(self.tool(t) for t in expect.order),
        )
        return msgspec.structs.replace(
            item,
            state=self.map.state,
            expect=mapped,
            assert_=tuple(self.assertion(a) for a in item.assert_),
            tool_returns={self.tool(name): value for name, value in item.tool_returns.items()},
        )

    def skill(self, name: str) -> str:
        """What a skill of the base is called here."""
        return self._skills.get(name, name)

    def tool(self, name: str) -> str:
        """What a tool of the base is called here."""
        return self._tools.get(name, name)

    def hook(self, name: str) -> str:
        """What a hook of the base is called here."""
        return self._hooks.get(name, name)

    def arguments(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a tool of the base under their names here; a skill to load is one, too."""
        names = self._parameters.get(tool, {})
        loads = tool == self.map.loader
        return {
            names.get(key, key): self.skill(value) if loads and isinstance(value, str) else value
            for key, value in given.items()
        }

    def solution(self, gold: GoldSolution) -> GoldSolution:
        """A gold solution of the base as it goes here; what tools give back stays the same."""
        rounds = tuple(tuple(self._labelled(c) for c in calls) for calls in gold.rounds)
        skills = tuple(self.skill(s) for s in gold.skills)
        return msgspec.structs.replace(gold, skills=skills, rounds=rounds)

    def _labelled(self, call: LabelledCall) -> LabelledCall:
        given = self.arguments(call.name, call.arguments)
        return msgspec.structs.replace(call, name=self.tool(call.name), arguments=given)

    def assertion(self, assertion: Assertion) -> Assertion:
        """An assertion with the names that stand in it; patterns stay as they are."""
        kind = assertion.type.removeprefix("not-")
        value = assertion.value
        if kind in TOOL_ASSERTIONS:
            value = _renamed(value, self.tool)
        elif kind == SKILL:
            value = _renamed(value, self.skill)
        elif kind == ARGUMENTS and isinstance(value, dict):
            value = self._arguments_asserted(value)
        members = tuple(self.assertion(a) for a in assertion.assert_)
        return msgspec.structs.replace(assertion, value=value, assert_=members)

    def trajectory(self, trajectory: Trajectory) -> Trajectory:
        """A trajectory in the other names (with `to_base`: as judges know them)."""
        return msgspec.structs.replace(
            trajectory,
            steps=tuple(self._step(step) for step in trajectory.steps),
            hooks=self._events(trajectory.hooks),
            skills_loaded=tuple(self.skill(s) for s in trajectory.skills_loaded),
            tools_offered=tuple(self.tool(t) for t in trajectory.tools_offered),
        )

    def _step(self, step: Step) -> Step:
        asked = tuple(self._asked(call) for call in step.reply.tool_calls)
        return msgspec.structs.replace(
            step,
            reply=msgspec.structs.replace(step.reply, tool_calls=asked),
            calls=tuple(self._call(c) for c in step.calls),
            hooks=self._events(step.hooks),
        )

    def _events(self, events: tuple[HookEvent, ...]) -> tuple[HookEvent, ...]:
        return tuple(msgspec.structs.replace(e, hook=self.hook(e.hook)) for e in events)

    def _asked(self, call: RawToolCall) -> RawToolCall:
        written = self._written(call.name, call.arguments, None)
        return RawToolCall(id=call.id, name=self.tool(call.name), arguments=written)

    def _call(self, call: ToolCall) -> ToolCall:
        given = call.arguments
        written = self._written(call.name, call.arguments_raw, given)
        if given is not None:
            given = self.arguments(call.name, given)
        result = call.result
        if call.name == self.map.loader and isinstance(result.structured, dict):
            loaded = self._loaded(result.structured)
            result = msgspec.structs.replace(result, structured=loaded)
        return msgspec.structs.replace(
            call, name=self.tool(call.name), arguments=given, arguments_raw=written, result=result
        )

    def _loaded(self, told: dict[str, Any]) -> dict[str, Any]:
        """What the loader says it has loaded."""
        return {
            k: self.skill(v) if k == "skill" and isinstance(v, str) else v for k, v in told.items()
        }

    def _written(self, tool: str, raw: str, given: dict[str, Any] | None) -> str:
        """The model's own text of arguments under other names, spaced as it was.

        It is left as it is where it is no JSON object, is not what was called, or escapes a name.
        """
        try:
            value = json.loads(raw)
        except ValueError:
            return raw
        if not isinstance(value, dict) or (given is not None and value != given):
            return raw
        names = self._parameters.get(tool, {})
        found = [(key, names) for key, _ in members(raw)]
        if tool == self.map.loader:
            found += [(said, self._skills) for _, said in members(raw) if said is not None]
        made, at = "", 0
        for (start, end), new in sorted(found, key=lambda place: place[0]):
            name = json.loads(raw[start:end])
            if new.get(name, name) == name:
                continue
            if raw[start:end] != f'"{name}"':  # escapes would not come back
                return raw
            made, at = f'{made}{raw[at:start]}"{new[name]}"', end
        return made + raw[at:]

    def _expected(self, tool: ExpectedTool) -> ExpectedTool:
        return ExpectedTool(
            name=self.tool(tool.name), arguments=self.arguments(tool.name, tool.arguments)
        )

    def _arguments_asserted(self, value: dict[str, Any]) -> dict[str, Any]:
        name = value.get("name")
        if not isinstance(name, str):
            return value
        named = {**value, "name": self.tool(name)}
        for key in ("args", "arguments", "defaults"):
            if isinstance(value.get(key), dict):
                named[key] = self.arguments(name, value[key])
        return named


def _renamed(value: Any, rename: Any) -> Any:
    """Names in a name, a list of names or matchers, a matcher, or `{steps: …}`."""
    if isinstance(value, str):
        # promptfoo also writes lists as text with commas.
        return ",".join(rename(v.strip()) for v in value.split(","))
    if isinstance(value, list):
        return [_renamed(v, rename) for v in value]
    if isinstance(value, dict):
        return {k: _renamed(v, rename) if k in ("name", "steps") else v for k, v in value.items()}
    return value


def _inverse(names: Mapping[str, str], state: str, what: str) -> dict[str, str]:
    back: dict[str, str] = {}
    for base, here in names.items():
        if here in back:
            raise BadFile(
                f"state `{state}`: two {what} are called `{here}`", hint="a renaming is one to one"
            )
        back[here] = base
    return back


def _closed(names: Mapping[str, str]) -> dict[str, str]:
    """A renaming as one of all names onto themselves: the last of a chain becomes its first."""
    closed = dict(names)
    for first in names.keys() - set(names.values()):
        last = names[first]
        while last in names:
            last = names[last]
        closed[last] = first
    return closed
