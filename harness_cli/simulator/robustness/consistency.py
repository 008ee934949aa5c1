"""Rules for a draft: comment, tools, returns, instructions and rubrics fit together."""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from harness_cli.harness.tools import value_errors
from harness_cli.judges.assertions import check_assertion
from harness_cli.records.item import Assertion, Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.simulator.robustness.drafts import Draft
from harness_cli.simulator.robustness.solvers import impostors

_QUOTED = re.compile(r"`(\w+)`")
TOOL_RUBRICS = ("trajectory:tool-used", "trajectory:tool-sequence", "trajectory:tool-args-match")


def faults(draft: Draft, known: Collection[str]) -> list[str]:
    """Everything that is wrong with a draft; `known` are the tools of the harness."""
    item = draft.item
    return [
        *unknown_tools(item, known),
        *_tool_faults(item, known),
        *_return_faults(item),
        *_argument_faults(draft),
        *_soft_rubrics(draft),
    ]


def unknown_tools(item: Item, known: Collection[str]) -> Iterator[str]:
    """Rubrics, expectations, instructions and returns that name a tool which is not offered."""
    offered = {*known, *overlay_names(item)}
    named = {
        "a rubric": [n for a in _flat(item.assert_) for n in named_tools(a)],
        "`expect.tools`": [t.name for t in item.expect.tools],
        "`expect.order`": list(item.expect.order),
        "`tool_returns`": list(item.tool_returns),
        "an instruction": [n for text in item.overlay.instructions for n in _QUOTED.findall(text)],
    }
    for where, names in named.items():
        for name in dict.fromkeys(names):
            if name not in offered:
                yield f"{where} names the unknown tool `{name}`"


def unknown_in_rubrics(item: Item, known: Collection[str]) -> Iterator[str]:
    """Rubrics that ask for a tool which is not offered: whatever is done, they cannot hold."""
    asked = (a for a in _flat(item.assert_) if not a.type.startswith("not-"))
    for name in dict.fromkeys(n for a in asked for n in named_tools(a)):
        if name not in known:
            yield f"a rubric names the unknown tool `{name}`"


def overlay_names(item: Item) -> list[str]:
    """The tools an item brings with it."""
    return [str(t.get("function", t).get("name", "")) for t in item.overlay.tools]


def named_tools(assertion: Assertion) -> list[str]:
    """The tools that an assertion names in full; patterns name none."""
    if assertion.type.removeprefix("not-") not in TOOL_RUBRICS:
        return []
    value = assertion.value
    if isinstance(value, dict) and "steps" in value:
        value = value["steps"]
    listed = value if isinstance(value, list) else [value]
    names = [v.get("name") if isinstance(v, dict) else v for v in listed]
    return [n for n in names if isinstance(n, str)]


def passes(item: Item, trajectory: Trajectory) -> list[str]:
    """The metrics whose rubric a trajectory passes."""
    return [
        str(a.metric) for a in item.assert_ if a.metric and check_assertion(a, trajectory).passed
    ]


def _tool_faults(item: Item, known: Collection[str]) -> Iterator[str]:
    names = overlay_names(item)
    for name in names:
        if name in known:
            yield f"the harness has a tool `{name}` already"
        if name not in item.tool_returns:
            yield f"no return is simulated for `{name}`"
    if len(set(names)) < len(names):
        yield "two tools of one name"


def _return_faults(item: Item) -> Iterator[str]:
    """What RC asks for stands in what the expected tool returns."""
    expected = item.expect.tools[0].name
    told = Trajectory(
        request_id="returns", reply=json.dumps(item.tool_returns.get(expected), ensure_ascii=False)
    )
    for rubric in item.assert_:
        if rubric.metric not in ("rc", "adr"):
            continue
        for check in rubric.assert_:
            if not check.type.startswith("not-") and not check_assertion(check, told).passed:
                yield f"{rubric.metric} asks for what `{expected}` does not return"


def _argument_faults(draft: Draft) -> Iterator[str]:
    schemas: dict[str, Any] = {
        str(t["name"]): t["inputSchema"] for t in draft.item.overlay.tools if "name" in t
    }
    for name, arguments in draft.calls:
        for error in value_errors(schemas.get(name, {}), arguments):
            yield f"`{name}` cannot be called: {error}"


def _soft_rubrics(draft: Draft) -> Iterator[str]:
    """A rubric that a solver without the answer passes measures nothing."""
    for name, trajectory in impostors(draft).items():
        for metric in passes(draft.item, trajectory):
            yield f"{metric} is passed by {name}"


def _flat(assertions: Collection[Assertion]) -> Iterator[Assertion]:
    for assertion in assertions:
        yield assertion
        yield from _flat(assertion.assert_)
