"""A rollout without its texts decides what the whole one decides."""

import msgspec
import pytest

from harness_cli.evaluation.outline import named, outline_of
from harness_cli.evaluation.results import item_result
from harness_cli.judges.assertions import CHECKS, check_assertion
from harness_cli.records.chat import ChatReply, Usage
from harness_cli.records.item import Assertion, Expect, ExpectedTool, Fact, Item
from harness_cli.records.journal import TrajectoryRecord
from harness_cli.records.request import Request
from harness_cli.records.trajectory import (
    HookEvent,
    Route,
    Step,
    StopReason,
    ToolCall,
    ToolErrorKind,
    ToolResult,
    Trajectory,
)

VALUES = {
    "contains": "89",
    "contains-all": ["Link", "89"],
    "contains-any": ["99", "89"],
    "icontains": "LINK",
    "icontains-all": ["LINK"],
    "icontains-any": ["none", "LINK"],
    "regex": r"\d+ yuan",
    "equals": "Link 3 is 89 yuan.",
    "is-json": None,
    "levenshtein": "Link 3 is 99 yuan.",
    "word-count": 5,
    "latency": None,
    "cost": None,
    "finish-reason": "length",
    "is-refusal": None,
    "ifeval": {"id": "punctuation:no_comma", "kwargs": {}},
    "naturalness": None,
    "skill-used": "item-qa",
    "tool-call-f1": ["get_price"],
    "trajectory:tool-used": "get_price",
    "trajectory:tool-args-match": {"name": "get_price", "args": {"link_id": 4}},
    "trajectory:tool-sequence": ["get_price", "get_stock"],
    "trajectory:step-count": {"min": 5},
}


def call(name, result, *, cached=False, arguments=None):
    return ToolCall(
        id="c",
        name=name,
        arguments_raw='{"link_id": 3}',
        arguments={"link_id": 3} if arguments is None else arguments,
        result=result,
        cached=cached,
    )


FINE = ToolResult(ok=True, content="{}", structured={"price": 89})
BAD = ToolResult(ok=False, content="no", error=ToolErrorKind.INVALID_ARGUMENTS)


def rollout(*, replayed=False, **fields):
    answer = ChatReply(content="x", usage=Usage(input_tokens=9, output_tokens=2), cost=0.25)
    steps = (
        Step(
            index=0,
            messages=({"role": "user", "content": "hi"},),
            reply=msgspec.structs.replace(answer, finish_reason="tool_calls", ttft_s=0.1),
            calls=(call("get_price", FINE, cached=replayed), call("get_stock", BAD)),
            hooks=(HookEvent(hook="h", event="reply", outcome="retry"),),
        ),
        Step(index=1, messages=(), reply=msgspec.structs.replace(answer, finish_reason="length")),
    )
    made = Trajectory(
        request_id="r",
        item_id="i",
        steps=steps,
        reply="Link 3 is 89 yuan.",
        skills_loaded=("item-qa",),
        wall_s=0.4,
    )
    return msgspec.structs.replace(made, **fields)


ROLLOUTS = {
    "ordinary": rollout(),
    "a replayed tool answer": rollout(replayed=True),
    "refused": rollout(stop=StopReason.REFUSED, reply="", route=Route.SUPPRESSED),
    "fell back": rollout(route=Route.COMPACT),
    "broke": rollout(stop=StopReason.ERROR, error="loop: x"),
    "nothing at all": Trajectory(request_id="r"),
}


def outlined(trajectory):
    record = TrajectoryRecord(item="i", repeat=trajectory.repeat, trajectory=trajectory)
    data = msgspec.json.encode(record)
    assert named(data) == ("i", trajectory.repeat)
    return outline_of(data)


def test_every_assertion_that_looks_at_a_rollout_is_tried_here():
    assert set(VALUES) == set(CHECKS)


@pytest.mark.parametrize("kind", sorted(CHECKS))
@pytest.mark.parametrize("which", ROLLOUTS)
def test_an_assertion_decides_the_same_without_the_texts(kind, which):
    whole = ROLLOUTS[which]
    for name in (kind, f"not-{kind}"):
        asked = Assertion(type=name, value=VALUES[kind], threshold=0.5)
        assert check_assertion(asked, outlined(whole)) == check_assertion(asked, whole)


@pytest.mark.parametrize("which", ROLLOUTS)
def test_the_line_of_the_report_is_the_same_without_the_texts(which):
    item = Item(
        id="i",
        request=Request(),
        expect=Expect(
            skills=("item-qa", "greet"),
            tools=(ExpectedTool(name="get_price", arguments={"link_id": 3}),),
            order=("get_price", "get_stock"),
            facts=(Fact(field="price", value=89),),
        ),
    )
    whole = ROLLOUTS[which]
    assert item_result(item, outlined(whole), None, ()) == item_result(item, whole, None, ())
