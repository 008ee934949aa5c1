"""Hooks on recorded events, from a file or a trajectory."""

import asyncio

import msgspec
import pytest

from harness_cli.errors import BadFile
from harness_cli.models.scripted import tool_reply
from harness_cli.records.config import Limits
from harness_cli.runtime.hooks.replay import moments_of, read_moments, try_hooks


def outcomes(state, moments, **more):
    return asyncio.run(try_hooks(moments, state, seconds=2.0, **more))


@pytest.mark.parametrize(
    "text",
    [
        b'{"event": "before_reply", "reply": "bad"}',
        b'\n{\n "event": "before_reply",\n "reply": "bad"\n}\n',
        b'[{"event": "before_reply", "reply": "bad"}]',
        b'{"event": "before_reply", "reply": "bad"}\n{"event": "request"}\n',
    ],
)
def test_a_file_of_events_is_one_a_list_or_lines(stage, text):
    state = stage.state(
        stage.hook("gate", "before_reply", "forbid_pattern", settings={"patterns": ["bad"]})
    )
    found = outcomes(state, read_moments(text, name="x.json"))
    assert (found[0].action, found[0].hooks[0]["hook"]) == ("retry", "gate")


@pytest.mark.parametrize("text", [b"{bad", b'{"event": "no_such"}', b'{"reply": "x"}', b"[1]"])
def test_a_file_that_is_no_events_says_what_one_is(text):
    with pytest.raises(BadFile, match=r"x\.json"):
        read_moments(text, name="x.json")


def test_a_recorded_rollout_gives_its_hooks_the_same_events_again(stage):
    hooks = (
        stage.hook("args", "before_tool", "arguments_schema", "deny"),
        stage.hook("skill", "before_reply", "reply_skill_required"),
        stage.hook("gate", "before_reply", "forbid_pattern", settings={"patterns": ["79"]}),
    )
    replies = [
        tool_reply(("get_product", {"link_id": "x"})),
        "79 yuan.",
        tool_reply(("load_skill", {"skill": "item-qa"})),
        "79 yuan.",
    ]
    done = stage.run([*replies, "79"], *hooks, limits=Limits(rounds=4))
    state = stage.state(*hooks)
    found = outcomes(state, list(moments_of(done, state, stage.ask_for())))
    again = [h["hook"] for o in found for h in o.hooks]
    first = [h.hook for h in done.hooks] + [h.hook for s in done.steps for h in s.hooks]
    assert again == first
    assert "args" in again


def test_one_hook_alone(stage):
    bad = {"patterns": ["bad"]}
    state = stage.state(
        stage.hook("a", "before_reply", "forbid_pattern", settings=bad),
        stage.hook("b", "before_reply", "forbid_pattern", settings=bad),
    )
    moments = read_moments(b'{"event": "before_reply", "reply": "bad"}', name="x")
    [only] = outcomes(state, moments, only="b")
    assert [h["hook"] for h in only.hooks] == ["b"]


def test_retries_count_within_one_rollout_and_not_across(stage):
    gate = stage.hook("gate", "before_reply", "forbid_pattern", settings={"patterns": ["bad"]})
    state = stage.state(gate)
    [moment] = read_moments(b'{"event": "before_reply", "reply": "bad"}', name="x")
    named = [msgspec.structs.replace(moment, session_id=s) for s in ("r1", "r1", "r2")]
    assert [o.action for o in outcomes(state, named)] == ["retry", "fallback", "retry"]
    assert [o.action for o in outcomes(state, [moment, moment])] == ["retry", "retry"]
