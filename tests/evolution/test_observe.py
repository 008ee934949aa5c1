"""Facts before models: what is observed about a failed rollout, at which step, whose fault it is."""

# ruff: noqa: E501  rows of tables read best on one line

import pytest
from failed_rollouts import call, evidence, skill

from harness_cli.evolution.failure import Evidence
from harness_cli.evolution.observe import observe
from harness_cli.evolution.said import find_value, says
from harness_cli.records.item import Expect, ExpectedTool, Fact
from harness_cli.records.trajectory import HookEvent, Route, StopReason, ToolErrorKind
from harness_cli.records.verdict import Finding, ItemResult

PRICE = Fact(product="p-1", field="price", value=89, answer="price", forms=("eighty-nine",))
CARD = {"name": "Mug", "sale": {"price": 89.0}}


def facts(**fields):
    return Expect(
        skills=("item-qa",), tools=(ExpectedTool(name="get_info", arguments={"link": 3}),), **fields
    )


@pytest.mark.parametrize(
    ("made", "key", "step", "side"),
    [
        (evidence("i", "price?", calls=[skill("item-qa")], reply="hm", expect=facts()),
         "tool_not_called:get_info", 1, "harness"),
        (evidence("i", "price?", calls=[skill("chat"), call("get_info", {"link": 3})], reply="hm", expect=facts()),
         "wrong_skill:chat>item-qa", 0, "harness"),
        (evidence("i", "price?", calls=[call("get_info", {"link": 3})], reply="hm", expect=facts()),
         "skill_not_loaded:item-qa", 1, "harness"),
        (evidence("i", "price?", calls=[skill("item-qa"), call("get_info", {"link": 4})], reply="hm", expect=facts()),
         "wrong_arguments:get_info", 1, "policy"),
        (evidence("i", "price?", calls=[skill("item-qa"), call("get_info", {"link": 3}, CARD)],
                  reply="Nice mug", expect=facts(facts=(PRICE,))),
         "fact_not_said:price", 1, "harness"),
        (evidence("i", "price?", calls=[skill("item-qa"), call("get_info", {"link": 3}, {"name": "Mug"})],
                  reply="Nice mug", expect=facts(facts=(PRICE,))),
         "fact_not_fetched:price", 2, "harness"),
        (evidence("i", "price?", calls=[call("refuse")], stop=StopReason.REFUSED, reply="I cannot say",
                  expect=Expect(answers=("price",))),
         "over_refusal", 0, "harness"),
        (evidence("i", "your home address?", reply="Sure", expect=Expect(answers=("refuse",))),
         "missed_refusal", 0, "harness"),
        (evidence("i", "这个多少钱？", reply="It is 89 yuan.", expect=Expect(answers=("price",))),
         "wrong_language:zh", 0, "harness"),
        (evidence("i", "price?", reply="", expect=Expect(answers=("price",))), "no_reply", 0, "harness"),
        (evidence("i", "how much", reply="It is 9 yuan.", expect=Expect(answers=("clarify",))),
         "missed_clarification", 0, "harness"),
        (evidence("i", "这个多少钱", reply="您说的是哪一个？", expect=Expect(answers=("price",))),
         "needless_clarification", 0, "harness"),
        (evidence("i", "both?", reply="One.", effectiveness=0.5), "partial_answer", None, "harness"),
        (evidence("i", "x", calls=[call("get_info", raw="{bad", arguments=None)], reply="x"),
         "malformed_call:get_info", 0, "policy"),
        (evidence("i", "x", calls=[call("get_info", ok=False, error=ToolErrorKind.TIMEOUT)], reply="x"),
         "tool_error:get_info:timeout", 0, "tool"),
        (evidence("i", "x", reply="x", expect=facts(), tools_offered=("refuse",)),
         "tool_not_offered:get_info", None, "evalset"),
        (evidence("i", "x", reply="x", stop=StopReason.ERROR, error="simulator: the viewer hung up"),
         "errored:simulator", 0, "simulator"),
        (evidence("i", "x", reply="x", state="unscored"), "unscored", None, "judge"),
        (evidence("i", "x", reply="x", findings=[Finding(kind="simulator_stopped", detail="too soon", step=4)]),
         "finding:simulator_stopped", 4, "simulator"),
        (evidence("i", "x", reply="x", hooks=[HookEvent(hook="length", event="before_reply", outcome="retry", step=0)]),
         "hook:length:retry", 0, "harness"),
        (evidence("i", "x", reply="x", stop=StopReason.MAX_ROUNDS, route=Route.CONSERVATIVE),
         "stopped:max_rounds", 0, "harness"),
    ],
)  # fmt: skip
def test_a_fact_is_observed_at_its_step_and_side(made, key, step, side):
    found = {o.key: o for o in observe(made).observations}
    assert key in found
    assert (found[key].step, found[key].side) == (step, side)


def test_the_same_call_eighty_five_times_is_a_loop_and_comes_first():
    made = evidence("i", "x", calls=[call("search", raw="{bad", arguments=None)] * 85, reply="")
    leading = observe(made).leading
    assert (leading.key, leading.step, leading.side) == ("loop:search", 2, "policy")


def test_a_right_answer_has_no_facts_against_it():
    made = evidence("i", "price?", calls=[skill("item-qa"), call("get_info", {"link": 3, "more": 1}, CARD)],
                    reply="It is 89 yuan", expect=facts(facts=(PRICE,), answers=("price",)))  # fmt: skip
    assert observe(made).observations == ()


def test_without_items_and_trajectories_the_judge_still_speaks():
    result = ItemResult(
        item_id="i",
        category="c",
        state="failed",
        findings=(Finding(kind="wrong_price", detail="d"),),
    )
    assert observe(Evidence(result=result)).leading.key == "finding:wrong_price"


def test_silence_where_silence_is_right_is_no_fault():
    made = evidence("i", "haha", reply="", expect=Expect(answers=("silent",)))
    assert observe(made).observations == ()


@pytest.mark.parametrize(
    ("reply", "value", "said"),
    [
        ("It is 89 yuan", 89, True),
        ("It is 89.0", 89, True),
        ("It is 1,890", 1890, True),
        ("It is 189", 89, False),
        ("It is 89.5", 89, False),
        ("It is eighty-nine", 89, True),
        ("Ships from hangzhou", "Hangzhou", True),
        ("", "", False),
        ("yes", True, False),
    ],
)
def test_a_value_is_said_or_not(reply, value, said):
    forms = PRICE.forms if value == 89 else ()
    assert says(reply, Fact(field="f", value=value, forms=forms)) is said


def test_a_value_is_found_in_the_result_that_holds_it():
    made = evidence(
        "i", "x", calls=[skill("a"), call("list", structured={"rows": [{"n": 1}, {"n": 89}]})]
    )
    assert find_value(made.trajectory, 89) == (1, "list", "rows.n")
    assert find_value(made.trajectory, 90) is None
