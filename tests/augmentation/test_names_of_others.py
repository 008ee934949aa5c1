"""Names that a policy says and a map gives to something else; arguments as they were written."""

import json
import re
from functools import cache

import pytest
from hsa import FULL, base, files, only
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.augmentation.renaming import Renaming
from harness_cli.augmentation.states import augment
from harness_cli.judges.rewards.tool_calls import tool_rationality
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.item import Expect, ExpectedTool, Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Step, ToolCall, ToolErrorKind, ToolResult, Trajectory


@cache
def drawn(seed: int):
    return augment(files(), FULL, seed)


def rollout(name, raw, offered=(), *, error=None):
    """One call, as a policy wrote it."""
    call = ToolCall(
        id="c", name=name, arguments_raw=raw, arguments=json.loads(raw),
        result=ToolResult(ok=error is None, content="", error=error),
    )  # fmt: skip
    asked = RawToolCall(id="c", name=name, arguments=raw)
    step = Step(index=0, messages=(), reply=ChatReply(tool_calls=(asked,)), calls=(call,))
    return Trajectory(request_id="r", steps=(step,), tools_offered=tuple(offered))


def test_a_tool_called_by_the_name_it_has_elsewhere_was_not_called():
    """What augmentation is there to find: a policy that has learnt the base's names by heart."""
    made = augment(files(), only("tool_definitions", "rename"), 5)
    offered = [tool.name for tool in made.state.all_tools()]
    by_heart = rollout("get_inventory", '{"link_id": 3}', offered, error=ToolErrorKind.NOT_FOUND)
    told = Renaming(made.map).to_base().trajectory(by_heart)
    assert told.calls[0].name not in {tool.name for tool in base().all_tools()}
    assert Renaming(made.map).trajectory(told) == by_heart
    needed = (ExpectedTool(name="get_inventory", arguments={"link_id": 3}),)
    item = Item(id="i", request=Request(), expect=Expect(tools=needed, answers=("stock",)))
    reward = tool_rationality(item, told)
    assert reward.score == 0
    assert any("was needed and not called" in f.detail for f in reward.evidence)
    right = rollout(made.map.tools["get_inventory"], '{"link_id": 3}', offered)
    assert tool_rationality(item, Renaming(made.map).to_base().trajectory(right)).score == 1


def names_of(renaming: dict[str, str]):
    """Those that are renamed, those that they become, and others."""
    return st.sampled_from([*renaming, *renaming.values(), "somebody_elses", "another"])


@given(st.integers(0, 3), st.data())
@settings(max_examples=150, deadline=None)
def test_any_name_comes_back_as_itself(seed, data):
    given_ = drawn(seed).map
    there = Renaming(given_)
    back = there.to_base()
    for names, one_way, other_way in (
        (given_.tools, there.tool, back.tool),
        (given_.skills, there.skill, back.skill),
        (given_.hooks, there.hook, back.hook),
    ):
        name = data.draw(names_of(names))
        assert other_way(one_way(name)) == one_way(other_way(name)) == name
    tool = data.draw(st.sampled_from(sorted(given_.parameters)))
    keys = st.lists(names_of(given_.parameters[tool]), unique=True, max_size=4)
    arguments = dict.fromkeys(data.draw(keys), 1)
    made = there.arguments(tool, arguments)
    assert len(made) == len(arguments)
    assert back.arguments(there.tool(tool), made) == arguments


def test_chains_and_circles_of_names_are_carried_both_ways():
    names = {"a": "b", "b": "c", "x": "y", "y": "x", "same": "same"}
    there = Renaming(AugmentationMap(state="s", tools=names))
    back = there.to_base()
    assert [there.tool(n) for n in ("a", "b", "c", "x", "y", "same")] == [
        "b", "c", "a", "y", "x", "same",
    ]  # fmt: skip
    assert all(back.tool(there.tool(n)) == n for n in ("a", "b", "c", "x", "y", "same", "none"))


WRITTEN = [
    '{"link_id":3}',
    '{ "link_id" : 3 }',
    '{\n  "link_id": 3,\n  "variant": "x"\n}',
    '{"variant": "link_id", "link_id": 3.0}',
    ' {"link_id": 3}\n',
    '{"variant": "\\u9ed1", "link_id": 3}',
    '{"link_id": 1, "link_id": 3}',
]


@pytest.mark.parametrize("raw", WRITTEN)
def test_arguments_are_carried_over_however_they_are_spaced(raw):
    made = augment(files(), only("tool_definitions", "parameters"), 5)
    new = made.map.parameters["get_inventory"]
    renaming = Renaming(made.map)
    asked = rollout("get_inventory", raw)
    there = renaming.trajectory(asked)
    (call,) = there.calls
    assert json.loads(call.arguments_raw) == call.arguments
    assert new["link_id"] in call.arguments
    assert there.steps[0].reply.tool_calls[0].arguments == call.arguments_raw
    assert call.arguments_raw == re.sub(
        r'"(\w+)"(?=\s*:)', lambda key: f'"{new.get(key[1], key[1])}"', raw
    )
    assert renaming.to_base().trajectory(there) == asked


@pytest.mark.parametrize("raw", ['{"link\\u005fid": 3}', '["link_id"]', '{"link_id": ', "3"])
def test_what_would_not_come_back_is_left_as_it_was_written(raw):
    made = augment(files(), only("tool_definitions", "parameters"), 5)
    renaming = Renaming(made.map)
    asked = RawToolCall(id="c", name="get_inventory", arguments=raw)
    step = Step(index=0, messages=(), reply=ChatReply(tool_calls=(asked,)))
    trajectory = Trajectory(request_id="r", steps=(step,))
    there = renaming.trajectory(trajectory)
    assert there.steps[0].reply.tool_calls[0].arguments == raw
    assert renaming.to_base().trajectory(there) == trajectory


def test_the_skill_that_is_loaded_is_renamed_in_the_text_of_the_call():
    made = drawn(1)
    renaming = Renaming(made.map)
    raw = '{"skill":"item-qa"}'
    there = renaming.trajectory(rollout("load_skill", raw)).calls[0]
    key = made.map.parameters.get("load_skill", {}).get("skill", "skill")
    assert there.arguments_raw == f'{{"{key}":"{made.map.skills["item-qa"]}"}}'
