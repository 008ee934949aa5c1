"""Expectations of an item under an augmented state, and a trajectory of one in the base's names."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.item import Assertion, ExpectedTool, Item
from harness_cli.records.trajectory import ToolCall, Trajectory

TOOL_ASSERTIONS = ("trajectory:tool-used", "trajectory:tool-sequence", "tool-call-f1")
ARGUMENTS = "trajectory:tool-args-match"
SKILL = "skill-used"


class Renaming:
    """The names of one map, forwards and backwards."""

    def __init__(self, given: AugmentationMap) -> None:
        """Raises `BadFile` for a map that is not one to one."""
        self.map = given
        self._back = AugmentationMap(
            state=given.state,
            skills=_inverse(given.skills, given.state, "skills"),
            tools=_inverse(given.tools, given.state, "tools"),
            parameters={
                given.tools.get(tool, tool): _inverse(names, given.state, f"parameters of `{tool}`")
                for tool, names in given.parameters.items()
            },
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
        return self.map.skills.get(name, name)

    def tool(self, name: str) -> str:
        """What a tool of the base is called here."""
        return self.map.tools.get(name, name)

    def arguments(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of a tool of the base under their names here."""
        names = self.map.parameters.get(tool, {})
        return {names.get(key, key): value for key, value in given.items()}

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
        steps = tuple(
            msgspec.structs.replace(step, calls=tuple(self._call(c) for c in step.calls))
            for step in trajectory.steps
        )
        return msgspec.structs.replace(
            trajectory,
            steps=steps,
            skills_loaded=tuple(self.skill(s) for s in trajectory.skills_loaded),
            tools_offered=tuple(self.tool(t) for t in trajectory.tools_offered),
        )

    def _call(self, call: ToolCall) -> ToolCall:
        given = call.arguments
        if given is not None:
            given = self.arguments(call.name, given)
        return msgspec.structs.replace(call, name=self.tool(call.name), arguments=given)

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
