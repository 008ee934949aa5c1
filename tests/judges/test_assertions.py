"""Assertions under promptfoo's names."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.judges.assertions import ASSERTION_TYPES, CHECKS, check_assertion, check_assertions
from harness_cli.judges.text_checks import count_words, edit_distance
from harness_cli.records.chat import ChatReply
from harness_cli.records.item import Assertion, Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Step, StopReason, Trajectory
from tests.judges.conftest import make_trajectory

CALLS = (
    ("get_product_info_by_link_id", {"link_id": 3}, {"price": 89}),
    ("get_inventory", {"link_id": 3, "variant": "Black M"}, {"units": 4}),
    ("get_product_info_by_link_id", {"link_id": 5}, {"price": 59}),
)
SAID = make_trajectory(
    "Link 3 is 89 yuan.", CALLS, skills_loaded=("item-qa", "tool-strategy-multi")
)


def passed(kind, value=None, trajectory=SAID, **fields):
    return check_assertion(Assertion(type=kind, value=value, **fields), trajectory).passed


@pytest.mark.parametrize(
    ("kind", "value", "right"),
    [
        ("contains", "89 yuan", True),
        ("contains", "LINK 3", False),
        ("contains", 89, True),
        ("icontains", "LINK 3", True),
        ("contains-all", ["Link", "89"], True),
        ("contains-all", ["Link", "99"], False),
        ("contains-any", ["99", "89"], True),
        ("contains-any", "99, 98", False),
        ("icontains-all", "link, YUAN", True),
        ("icontains-any", ["nothing", "YUAN"], True),
        ("icontains-any", '"link 3 is, well", yuan', True),
        ("regex", r"\b\d+ yuan\b", True),
        ("regex", r"^\d", False),
        ("equals", "Link 3 is 89 yuan.", True),
        ("equals", "link 3 is 89 yuan.", False),
        ("levenshtein", "Link 3 is 99 yuan!", True),
        ("levenshtein", "something else entirely", False),
        ("word-count", 5, True),
        ("word-count", "4", False),
        ("word-count", {"min": 3, "max": 6}, True),
        ("word-count", {"max": 4}, False),
        ("finish-reason", "STOP", True),
        ("finish-reason", "length", False),
        ("is-refusal", None, False),
        ("skill-used", "item-qa", True),
        ("skill-used", ["item-qa", "greet"], False),
        ("skill-used", {"pattern": "tool-strategy-*"}, True),
        ("skill-used", {"name": "greet", "max": 0}, True),
        ("skill-used", {"name": "item-qa", "min": 2}, False),
        ("trajectory:tool-used", "get_inventory", True),
        ("trajectory:tool-used", ["get_inventory", "get_faq"], False),
        ("trajectory:tool-used", {"pattern": "get_*", "min": 3, "max": 3}, True),
        ("trajectory:tool-used", {"name": "get_product_info_by_link_id", "max": 1}, False),
        (
            "trajectory:tool-args-match",
            {"name": "get_inventory", "args": {"link_id": 3}},
            True,
        ),
        (
            "trajectory:tool-args-match",
            {"name": "get_inventory", "args": {"link_id": 3}, "mode": "exact"},
            False,
        ),
        (
            "trajectory:tool-args-match",
            {"name": "get_inventory", "args": {"link_id": 3.0}, "mode": "exact", "ignore": "var*"},
            True,
        ),
        (
            "trajectory:tool-args-match",
            {
                "name": "get_inventory",
                "arguments": {"link_id": 3},
                "mode": "exact",
                "defaults": {"variant": "Black M"},
            },
            True,
        ),
        ("trajectory:tool-args-match", {"pattern": "*_link_id", "args": {"link_id": 9}}, False),
        ("trajectory:tool-sequence", ["get_product_info_by_link_id", "get_inventory"], True),
        ("trajectory:tool-sequence", ["get_inventory", "get_inventory"], False),
        (
            "trajectory:tool-sequence",
            {"steps": ["get_product*", "get_inventory"], "mode": "exact"},
            False,
        ),
        ("trajectory:step-count", {"min": 4, "max": 4}, True),
        ("trajectory:step-count", {"type": "tool", "max": 3}, True),
        ("trajectory:step-count", {"type": "tool", "pattern": "get_inv*", "min": 2}, False),
    ],
)
def test_each_assertion_decides_and_not_turns_it_around(kind, value, right):
    assert passed(kind, value) is right
    opposite = passed(f"not-{kind}", value)
    lists = isinstance(value, list) and kind in ("skill-used", "trajectory:tool-used")
    # promptfoo: `not-` on a list passes when none of it was used.
    assert opposite is (False if lists else not right)


def test_not_used_on_a_list_passes_when_nothing_of_it_was_used():
    assert passed("not-trajectory:tool-used", ["get_faq", "refuse"]) is True
    assert passed("not-skill-used", ["greet", "thanks"]) is True


def test_tool_call_f1_compares_sets_and_keeps_its_score():
    result = check_assertion(
        Assertion(type="tool-call-f1", value="get_inventory, get_faq", threshold=0.5), SAID
    )
    assert (result.passed, result.score) == (True, 0.5)
    assert passed("tool-call-f1", ["get_inventory", "get_product_info_by_link_id"]) is True
    assert passed("tool-call-f1", ["get_inventory"]) is False


@pytest.mark.parametrize(
    ("reply", "value", "right"),
    [
        ('{"a": 1}', None, True),
        ("not json", None, False),
        ('{"a": NaN}', None, False),
        ('{"a": 1}', {"type": "object", "required": ["a"]}, True),
        ('{"a": "x"}', {"properties": {"a": {"type": "integer"}}}, False),
        ('{"a": 1}', '{"type": "array"}', False),
        ('{"a": 1}', {"type": 7}, None),
        ('{"a": 1}', {"$ref": "#/nowhere"}, None),
    ],
)
def test_is_json_holds_the_reply_against_a_schema(reply, value, right):
    assert passed("is-json", value, make_trajectory(reply)) is right


def test_equals_compares_json_values():
    assert passed("equals", {"a": [1.0]}, make_trajectory('{"a": [1]}')) is True
    assert passed("equals", {"a": [2]}, make_trajectory('{"a": [1]}')) is False


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("Sorry, I can't help with that.", True),
        ("这个不能透露哦。", True),
        ("", True),
        ("Link 3 is 89 yuan.", False),
        ("可以的，现在89元。", False),
    ],
)
def test_refusals_are_told_in_both_languages(reply, right):
    assert passed("is-refusal", trajectory=make_trajectory(reply)) is right


def test_a_call_of_refuse_is_a_refusal_whatever_is_said():
    refused = make_trajectory("Let us look at link 3.", stop=StopReason.REFUSED)
    assert passed("is-refusal", trajectory=refused) is True


def test_latency_is_decided_by_fresh_answers_only():
    quick = make_trajectory("hi", wall_s=0.8)
    assert passed("latency", trajectory=quick, threshold=1000) is True
    assert passed("latency", trajectory=quick, threshold=500) is False
    step = Step(index=0, messages=(), reply=ChatReply(content="hi", cached=True))
    replayed = Trajectory(request_id="r", steps=(step,), reply="hi", wall_s=0.8)
    result = check_assertion(Assertion(type="not-latency", threshold=500), replayed)
    assert result.passed is None
    assert "replayed" in result.reason


def test_an_unknown_cost_is_unscored_never_zero():
    assert passed("cost", threshold=1.0) is None
    step = Step(index=0, messages=(), reply=ChatReply(content="hi", cost=0.002))
    paid = Trajectory(request_id="r", steps=(step,), reply="hi")
    assert passed("cost", trajectory=paid, threshold=0.01) is True
    assert passed("cost", trajectory=paid, threshold=0.001) is False


@pytest.mark.parametrize("kind", ["llm-rubric", "select-best", "not-llm-rubric"])
def test_rubrics_wait_for_a_panel(kind):
    result = check_assertion(Assertion(type=kind, value="polite"), SAID)
    assert (result.passed, result.reason) == (None, "needs a panel judge")


YES, NO = Assertion(type="contains", value="89"), Assertion(type="contains", value="99")
OPEN = Assertion(type="llm-rubric", value="kind")


@pytest.mark.parametrize(
    ("members", "threshold", "right"),
    [
        ((YES, YES), None, True),
        ((YES, NO), None, False),
        ((YES, NO), 0.5, True),
        ((YES, NO), 0.6, False),
        ((YES, OPEN), None, None),
        ((NO, OPEN), None, False),
        ((YES, OPEN), 0.5, True),
        ((NO, OPEN), 0.5, None),
        ((NO, NO, OPEN), 0.5, False),
        ((Assertion(type="contains", value="89", weight=3), NO), 0.75, True),
        ((), None, None),
    ],
)
def test_a_set_weighs_its_members(members, threshold, right):
    assert passed("assert-set", threshold=threshold, assert_=members) is right


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("contains", None),
        ("contains-all", []),
        ("regex", "(unclosed"),
        ("regex", 3),
        ("word-count", "many"),
        ("word-count", {}),
        ("skill-used", {"min": 1}),
        ("trajectory:tool-used", []),
        ("trajectory:tool-args-match", {"name": "x"}),
        ("trajectory:tool-args-match", {"name": "x", "args": {}, "mode": "loose"}),
        ("trajectory:tool-sequence", []),
        ("trajectory:step-count", {}),
        ("latency", None),
        ("tool-call-f1", None),
    ],
)
def test_a_value_that_makes_no_sense_is_unscored_with_a_reason(kind, value):
    result = check_assertion(Assertion(type=kind, value=value), SAID)
    assert result.passed is None
    assert result.reason


def test_an_unknown_name_is_unscored_and_names_the_nearest():
    result = check_assertion(Assertion(type="icontain", value="x"), SAID)
    assert result.passed is None
    assert "`icontains`" in result.reason


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*)*x", r".*a.*a.*a.*a.*a.*x"])
def test_a_hostile_pattern_is_ended_by_the_clock(pattern):
    start = time.monotonic()
    outcome = passed("regex", pattern, make_trajectory("a" * 3000 + "!"))
    assert time.monotonic() - start < 8
    assert outcome in (None, False)


def test_an_ordinary_nested_pattern_still_decides():
    assert passed("regex", r"(?:\d+,)*\d+ yuan") is True
    assert passed("regex", r"(\w)\1{5}") is False


def test_every_item_assertion_is_answered_in_order():
    item = Item(id="i", request=Request(), assert_=(YES, NO, OPEN))
    assert [r.passed for r in check_assertions(item, SAID)] == [True, False, None]


def test_the_names_are_those_of_the_format():
    assert {*CHECKS, "llm-rubric", "select-best", "assert-set"} == ASSERTION_TYPES


@given(st.text(max_size=12), st.text(max_size=12))
def test_edit_distance_is_a_metric(a, b):
    distance = edit_distance(a, b)
    assert distance == edit_distance(b, a)
    assert (distance == 0) is (a == b)
    assert abs(len(a) - len(b)) <= distance <= max(len(a), len(b))


@pytest.mark.parametrize(
    ("text", "words"), [("a b  c", 3), ("现在89元", 4), ("", 0), ("hi 你好", 3)]
)
def test_chinese_characters_count_as_words(text, words):
    assert count_words(text) == words
