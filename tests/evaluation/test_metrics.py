import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.evaluation.metrics import (
    _stands,
    attainment,
    decode_tps,
    item_scores,
    mean_and_median,
    response_contains,
    skill_selection,
    tool_rationality,
    tools_called,
    tools_in_order,
)
from harness_cli.evaluation.results import item_result, outcome
from harness_cli.records.chat import ChatReply, Usage
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.item import Expect, ExpectedTool, Fact, Item
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
from harness_cli.records.verdict import AssertionResult, Verdict


def call(name, error=None, **arguments):
    return ToolCall(
        id="c",
        name=name,
        arguments_raw="{}",
        arguments=arguments,
        result=ToolResult(ok=error is None, content="", error=error),
    )


def rollout(*calls, reply="It costs 89 yuan.", skills=(), **more):
    step = Step(index=0, messages=(), reply=ChatReply(), calls=calls)
    return Trajectory(request_id="r", steps=(step,), reply=reply, skills_loaded=skills, **more)


def item(**expect):
    return Item(id="i", request=Request(), expect=Expect(**expect))


A, B = ExpectedTool(name="a"), ExpectedTool(name="b")


@pytest.mark.parametrize(
    ("tools", "calls", "score"),
    [
        ((), ("a",), None),
        ((A,), ("a",), 1),
        ((A,), ("b",), 0),
        ((A, B), ("b", "a"), 1),
        ((A, B), ("b",), 0),
        ((A,), (), 0),
    ],
)
def test_tc_is_one_when_every_expected_tool_was_called(tools, calls, score):
    assert tools_called(item(tools=tools), rollout(*map(call, calls))) == score


@pytest.mark.parametrize(
    ("order", "calls", "score"),
    [
        ((), "ab", None),
        (("a", "b"), "ab", 1),
        (("a", "b"), "axb", 1),
        (("a", "b"), "ba", 0),
        (("a", "b"), "a", 0),
        (("a", "a"), "a", 0),
        (("a", "a"), "aba", 1),
    ],
)
def test_tco_is_one_when_the_calls_follow_the_required_order(order, calls, score):
    assert tools_in_order(item(order=order), rollout(*map(call, calls))) == score


@pytest.mark.parametrize(
    ("fact", "reply", "score"),
    [
        (Fact(field="price", value=89), "It costs 89 yuan", 1),
        (Fact(field="price", value=89.0), "It costs 89 yuan", 1),
        (Fact(field="price", value=89), "It costs 98 yuan", 0),
        (Fact(field="price", value=89), "It costs 189 yuan, or 890, or 89.50", 0),
        (Fact(field="price", value=9.5), "It costs 19.5 yuan, or 9.55", 0),
        (Fact(field="price", value=9.5), "It costs 9.5.", 1),
        (Fact(field="price", value=89), "3号链接89元", 1),
        (Fact(field="size", value="x", forms=("5 g",)), "15 g a cup", 0),
        (Fact(field="colour", value="Red"), "the RED one", 1),
        (Fact(field="ship", value=48, forms=("two days",)), "within Two Days", 1),
    ],
)
def test_rc_is_one_when_the_reply_carries_every_fact(fact, reply, score):
    assert response_contains(item(facts=(fact,)), rollout(reply=reply)) == score
    assert response_contains(item(), rollout(reply=reply)) is None


@pytest.mark.parametrize(
    ("expected", "loaded", "score"),
    [
        ((), ("x",), None),
        (("x",), ("x",), 1),
        (("x",), ("x", "y"), 2 / 3),
        (("x", "y"), ("x",), 2 / 3),
        (("x",), ("y",), 0),
        (("x",), (), 0),
    ],
)
def test_skill_selection_is_the_f1_of_loaded_against_expected(expected, loaded, score):
    assert skill_selection(item(skills=expected), rollout(skills=loaded)) == pytest.approx(score)


LINK = ExpectedTool(name="a", arguments={"link": 3})


@pytest.mark.parametrize(
    ("tools", "calls", "score"),
    [
        ((), (), 1),
        ((A,), (), 0),
        ((A,), (call("a"),), 1),
        ((A,), (call("a", x=1), call("a", x=1)), 1 / 2),  # a repeated call
        ((A,), (call("a", x=1), call("a", x=2)), 1),
        ((LINK,), (call("a", link=3, extra=1),), 1),
        ((LINK,), (call("a", link=4),), 0),
        ((LINK,), (call("a", link=4), call("a", link=3)), 1 / 2),
        ((A,), (call("a", ToolErrorKind.INVALID_ARGUMENTS),), 0),
        ((A,), (call("a", ToolErrorKind.TIMEOUT),), 1),  # not the caller's fault
        ((A, B), (call("a"),), 1 / 2),  # a missing one
        ((), (call("load_skill"), call("load_skill")), 1),
    ],
)
def test_tool_rationality_is_sound_calls_over_calls_and_missing_ones(tools, calls, score):
    assert tool_rationality(item(tools=tools), rollout(*calls)) == score


def test_avg_is_per_item_before_rounding_and_none_without_both():
    scores = item_scores(item(), rollout(), {"accuracy": 1.0, "effectiveness": 0.5})
    assert scores["avg"] == 0.75
    assert scores["adr"] == 1.0
    scores = item_scores(item(), rollout(), {"accuracy": None, "effectiveness": 0.0})
    assert scores["avg"] is None
    assert scores["adr"] == 0.0
    assert "avg" not in item_scores(item(), rollout(), {})


def test_the_judges_own_scores_win_over_computed_ones():
    scores = item_scores(item(tools=(A,)), rollout(), {"tc": 1.0, "avg": 0.25, "accuracy": 1.0})
    assert (scores["tc"], scores["avg"]) == (1.0, 0.25)


def test_attainment_counts_failures_as_misses():
    assert attainment([1.0, 15.0, 15.1, None]) == 0.5
    assert attainment([]) is None


def test_decode_tps_needs_a_stream_and_usage_and_shows_the_median_beside_the_mean():
    assert decode_tps(9, 1.5, 0.5) == 9.0
    assert decode_tps(None, 1.5, 0.5) is None
    assert decode_tps(9, 1.5, None) is None
    assert decode_tps(9, 0.5, 0.5) is None
    # METHODS §2: a 9-token call with 1 ms after its first chunk gives 9,000 tokens/s
    assert decode_tps(9, 0.501, 0.5) == pytest.approx(9000)
    assert mean_and_median([10.0, 10.0, 9000.0]) == {"mean": 9020 / 3, "median": 10.0, "n": 3}
    assert mean_and_median([]) == {"mean": None, "median": None, "n": 0}


def verdict(**scores):
    return Verdict(judge="j", scores=scores)


YES, NO, OPEN = (
    AssertionResult(type="contains", passed=p, reason="r") for p in (True, False, None)
)
GOOD = verdict(accuracy=1.0, effectiveness=1.0)


@pytest.mark.parametrize(
    ("judged", "assertions", "reason", "state"),
    [
        (GOOD, (YES,), None, "passed"),
        (GOOD, (), None, "passed"),
        (None, (YES,), None, "passed"),
        (GOOD, (YES, NO), None, "failed"),
        (verdict(accuracy=1.0, effectiveness=0.5), (), None, "failed"),
        (verdict(accuracy=0.0, effectiveness=None), (), None, "failed"),
        (verdict(accuracy=1.0, effectiveness=None), (), None, "unscored"),
        (GOOD, (OPEN,), None, "unscored"),
        (None, (YES,), "judge: broke", "unscored"),
        (None, (NO,), "judge: broke", "failed"),
        (None, (), None, "unscored"),
        (verdict(strict=1.0), (), None, "passed"),
        (verdict(strict=0.0), (), None, "failed"),
        (verdict(accuracy=1.0, effectiveness=1.0, naturalness=0.0), (), None, "passed"),
    ],
)
def test_a_state_is_never_a_silent_pass_or_fail(judged, assertions, reason, state):
    found, why = outcome(rollout(), judged, assertions, reason)
    assert found == state
    assert why if state == "unscored" else True


def test_a_broken_rollout_is_errored_and_has_no_scores():
    broken = rollout(stop=StopReason.PROVIDER_ERROR, error="policy: server: 500")
    result = item_result(item(tools=(A,)), broken, None, ())
    assert result.state == "errored"
    assert result.error == "policy: server: 500"
    assert result.scores == {}


def test_unknown_usage_of_one_call_makes_the_total_unknown():
    steps = tuple(
        Step(index=i, messages=(), reply=ChatReply(usage=usage, cost=cost))
        for i, (usage, cost) in enumerate(
            [(Usage(input_tokens=5, output_tokens=2), 0.5), (Usage(input_tokens=7), None)]
        )
    )
    result = item_result(item(), Trajectory(request_id="r", steps=steps), None, ())
    assert (result.input_tokens, result.output_tokens, result.cost) == (12, None, None)
    assert item_result(item(), Trajectory(request_id="r"), None, ()).input_tokens is None


def test_a_replayed_rollout_is_never_timed():
    reply = ChatReply(content="x", cached=True, ttft_s=0.1)
    cached = Trajectory(
        request_id="r", steps=(Step(index=0, messages=(), reply=reply),), wall_s=1.0
    )
    assert item_result(item(), cached, GOOD, ()).wall_s is None
    assert item_result(item(), rollout(wall_s=1.0), GOOD, (), timed=False).wall_s is None
    assert item_result(item(), rollout(wall_s=1.0), GOOD, ()).wall_s == 1.0


def test_the_digest_of_a_trajectory_is_blind_to_clocks_and_to_nothing_else():
    def made(latency, reply="x", route=Route.NORMAL):
        tool = call("a")
        event = HookEvent(hook="h", event="before_reply", outcome="allow", latency_s=latency)
        step = Step(
            index=0,
            messages=({"role": "user", "content": "hi"},),
            reply=ChatReply(content=reply, latency_s=latency, ttft_s=latency, attempts=2),
            calls=(tool,),
            hooks=(event,),
        )
        return Trajectory(
            request_id="r", steps=(step,), hooks=(event,), reply=reply, route=route, wall_s=latency
        )

    assert trajectory_digest(made(0.1)) == trajectory_digest(made(9.0))
    assert trajectory_digest(made(0.1)) != trajectory_digest(made(0.1, reply="y"))
    assert trajectory_digest(made(0.1)) != trajectory_digest(made(0.1, route=Route.COMPACT))


@given(st.text(st.sampled_from("8٣²9.,-a ")), st.text(st.sampled_from("8٣²9.,-a "), min_size=1))
def test_a_number_stands_where_it_is_no_piece_of_a_longer_one(reply, words):
    before = r"(?<!\d)(?<!\d[.,])" if words[0].isdigit() else ""
    behind = r"(?!\d|[.,]\d)" if words[-1].isdigit() else ""
    found = re.search(f"{before}{re.escape(words)}{behind}", reply)
    assert _stands(words, reply) is (found is not None)
