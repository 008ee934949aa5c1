"""Every built-in check: what it objects to and what it lets pass."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.errors import HookError
from harness_cli.harness import hook_checks
from harness_cli.records.chat import ChatReply
from harness_cli.records.harness import Constraint, Tool
from harness_cli.records.request import Comment, FaqEntry, Request, RoomEvent
from harness_cli.records.trajectory import ToolCall, ToolErrorKind, ToolResult
from harness_cli.runtime.hooks.check_text import language, sentences
from harness_cli.runtime.hooks.compiled import make_check
from harness_cli.runtime.hooks.moment import Asked, Moment
from harness_cli.runtime.hooks.registry import CHECKS

CARD = {
    "name": "Sunscreen SPF50",
    "price": 89,
    "list_price": 109.5,
    "ship_within_hours": 48,
    "units": 1200,
    "discount": 0.2,
}


def call(name="get_product", structured=None, ok=True, arguments=None, raw="{}"):
    import json

    shown = CARD if structured is None else structured
    result = ToolResult(
        ok=ok,
        content=json.dumps(shown),
        structured=shown,
        error=None if ok else ToolErrorKind.UNAVAILABLE,
    )
    return ToolCall(id="c", name=name, arguments_raw=raw, arguments=arguments or {}, result=result)


def request(*texts, **more):
    return Request(comments=tuple(Comment(text=t) for t in texts), **more)


def objects(check, settings, **moment):
    moment.setdefault("event", "before_reply")
    found = make_check(check, settings)(Moment(**moment))
    return found.reason if found else None


def test_the_lint_and_the_runtime_know_the_same_checks_and_settings():
    assert set(CHECKS) == set(hook_checks.CHECKS)
    for name, known in hook_checks.CHECKS.items():
        parameters = inspect.signature(CHECKS[name]).parameters
        assert set(known.settings) <= set(parameters), name
        for setting, spec in known.settings.items():
            needed = parameters[setting].default is inspect.Parameter.empty
            assert needed == spec.required, (name, setting)


@pytest.mark.parametrize(
    ("reply", "objected"),
    [
        ("It is 89 yuan.", False),
        ("It is ¥89.", False),
        ("现在89元。", False),
        ("It is 89.00 yuan instead of 109.5 yuan.", False),
        ("You save 20.5 yuan.", False),
        ("It is 79 yuan.", True),
        ("现在79元。", True),
        ("It is $89 or 79 yuan.", True),
        ("That is 20% off.", False),
        ("现在打8折。", False),
        ("That is 30% off.", True),
        ("现在打7折。", True),
        ("1,200 units left.", False),
        ("Only 12 left!", True),
        ("仅剩12件", True),
        ("It ships within 48 hours, so 2 days.", False),
        ("48小时内发货", False),
        ("It ships within 3 days.", True),
        ("7天无理由退货", True),
        ("It has SPF50 and comes as link 3.", False),
        ("", False),
    ],
)
def test_a_number_about_a_product_stands_in_a_result_or_is_objected_to(reply, objected):
    reason = objects("grounded_claims", {}, reply=reply, calls=[call()])
    assert (reason is not None) is objected, reason


def test_numbers_of_failed_calls_skills_and_viewers_ground_nothing():
    calls = [call(ok=False), call(name="load_skill")]
    asked = request("is it 89 yuan?")
    assert objects("grounded_claims", {}, reply="Yes, 89 yuan.", calls=calls, request=asked)


def test_numbers_of_a_faq_entry_ground_a_claim():
    faq = (FaqEntry(id="f", question="Returns?", answer="Within 7 days."),)
    assert not objects("grounded_claims", {}, reply="7 days.", request=request("?", faq=faq))


def test_only_the_named_kinds_are_looked_at():
    assert not objects("grounded_claims", {"kinds": ["price"]}, reply="12 left.")


@pytest.mark.parametrize(
    ("check", "settings", "reply", "reason"),
    [
        ("length", {"max_chars": 5}, "123456", "6 characters, over the limit of 5"),
        ("length", {"max_chars": 6}, "123456", None),
        ("length", {"max_words": 2}, "one two three", "3 words"),
        ("length", {"max_words": 4}, "你好 hello 吗", None),
        ("length", {"constraint": "reply_words"}, "a b c d e", "5 words, over the limit of 4"),
        ("length", {"constraint": "reply_length"}, "a b c d e", None),
        ("length", {"constraint": "reply_sentences"}, "A. B. C.", "3 sentences"),
        ("length", {"constraint": "no_such"}, "a b c d e", None),
        ("output_format", {}, "It is **great**.", "markdown"),
        ("output_format", {}, "```\ncode\n```", "markdown"),
        ("output_format", {}, "see [here](http://x.example)", "markdown"),
        ("output_format", {}, '{"reply": "hi"}', "json"),
        ("output_format", {}, "<b>hi</b>", "tags"),
        ("output_format", {}, "I <3 it, 2 < 3 > 1", None),
        ("output_format", {"forbid": ["urls"]}, "see https://x.example/a", "urls"),
        ("output_format", {"forbid": ["list"]}, "- a\n- b", "list"),
        ("output_format", {"forbid": ["list"]}, "1. a\n2. b", "list"),
        ("output_format", {"forbid": ["list"]}, "One - or two.", None),
        ("forbid_pattern", {"patterns": ["wechat"]}, "Add my WeChat", "`WeChat`"),
        ("forbid_pattern", {"patterns": ["wechat"]}, "Hello", None),
        ("require_pattern", {"patterns": ["link"]}, "Hello", "lacks"),
        ("require_pattern", {"patterns": ["link"]}, "Tap the link", None),
        ("require_pattern", {"patterns": ["link"], "when": ["order"]}, "Hello", None),
        ("ai_identity", {}, "I am a real person!", "human"),
        ("ai_identity", {}, "我是真人", "human"),
        ("ai_identity", {}, "Hello!", None),
        ("unsupported_promise", {}, "We guarantee it works.", "guarantee"),
        ("unsupported_promise", {}, "保证有效", "保证"),
        ("unsupported_promise", {}, "It should work.", None),
        ("reply_skill_required", {}, "Hello", "no reply skill was loaded"),
        ("reply_skill_required", {}, "", None),
    ],
)
def test_a_check_on_the_reply(check, settings, reply, reason):
    constraints = {
        "reply_words": Constraint(value=4, range=(1, 9), unit="words"),
        "reply_length": Constraint(value=40, range=(1, 90), unit="characters"),
        "reply_sentences": Constraint(value=2, range=(1, 9), unit="sentences"),
    }
    said = objects(
        check, settings, reply=reply, constraints=constraints, request=request("How much?")
    )
    assert (said is None) if reason is None else (said is not None and reason in said)


@pytest.mark.parametrize(
    ("asked", "reply", "objected"),
    [
        ("How much?", "八十九元。", True),
        ("多少钱？", "It is cheap.", True),
        ("多少钱？", "八十九元。", False),
        ("How much?", "It is cheap.", False),
        ("1?", "八十九元。", False),
        ("iPhone 多少钱？", "八十九元。", False),
        ("SPF50防晒霜多少钱", "SPF50 防晒霜现在八十九元。", False),
    ],
)
def test_the_reply_speaks_the_viewers_language(asked, reply, objected):
    settings = {"forbid": [], "language": "match_viewer"}
    said = objects("output_format", settings, reply=reply, request=request(asked))
    assert (said is not None) is objected


@pytest.mark.parametrize(
    ("asked", "reply", "objected"),
    [
        ("are you a robot?", "I love this product!", True),
        ("are you a robot?", "Yes, I am an AI host.", False),
        ("你是真人吗", "我是数字人主播", False),
        ("你是真人吗", "哈哈谢谢", True),
        ("nice", "Thank you!", False),
    ],
)
def test_who_asks_whether_the_host_is_real_is_told(asked, reply, objected):
    said = objects("ai_identity", {}, reply=reply, request=request(asked))
    assert (said is not None) is objected


def test_a_promise_that_an_faq_entry_makes_is_supported():
    faq = (FaqEntry(id="f", question="?", answer="We guarantee returns within 7 days."),)
    asked = request("?", faq=faq)
    assert not objects("unsupported_promise", {}, reply="We guarantee it.", request=asked)


@pytest.mark.parametrize(
    ("asked", "settings", "reason"),
    [
        (request(), {}, "no comment and no event"),
        (request(events=(RoomEvent(viewer="v", kind="join"),)), {}, None),
        (request("hi"), {}, None),
        (request("x" * 30), {"max_chars": 20}, "over 20"),
        (request(*["hi"] * 3), {"max_comments": 2}, "over 2"),
    ],
)
def test_a_request_says_something_and_not_too_much(asked, settings, reason):
    said = objects("request_valid", settings, event="request", request=asked)
    assert (said is None) if reason is None else (reason in said)


TOOL = Tool(
    name="get_product",
    input_schema={
        "type": "object",
        "properties": {"link_id": {"type": "integer"}},
        "required": ["link_id"],
    },
    output_schema={"type": "object", "required": ["price"]},
    annotations={"readOnlyHint": True},
)
MOVE = Tool(name="move", annotations={})


@pytest.mark.parametrize(
    ("asked", "objected"),
    [
        (Asked(name="get_product", arguments={"link_id": 1}, tool=TOOL), False),
        (Asked(name="get_product", arguments={"link_id": "1"}, tool=TOOL), True),
        (Asked(name="get_product", arguments={}, tool=TOOL), True),
        (Asked(name="get_product", arguments=None, problem="no JSON", tool=TOOL), True),
    ],
)
def test_arguments_fit_the_schema(asked, objected):
    said = objects("arguments_schema", {}, event="before_tool", call=asked)
    assert (said is not None) is objected


@pytest.mark.parametrize(
    ("result", "objected"),
    [
        (ToolResult(ok=True, content="{}", structured={"price": 1}), False),
        (ToolResult(ok=True, content="{}", structured={"cost": 1}), True),
        (ToolResult(ok=True, content=" ", structured=None), True),
        (ToolResult(ok=True, content="Error: no stock", structured=None), True),
        (ToolResult(ok=True, content="{}", structured={"error": "no stock"}), True),
        (ToolResult(ok=False, content="", error=ToolErrorKind.TIMEOUT), False),
    ],
)
def test_a_result_has_the_declared_shape(result, objected):
    asked = Asked(name="get_product", tool=TOOL)
    said = objects("tool_result_schema", {}, event="after_tool", call=asked, result=result)
    assert (said is not None) is objected


@pytest.mark.parametrize(
    ("more", "objected"),
    [
        ({}, True),
        ({"reply_skills": ["item-qa"]}, False),
        ({"skills": ["tool-strategy-multi"]}, True),
        ({"calls": [call(name="refuse")]}, False),
        ({"compact": True}, False),
    ],
)
def test_a_substantive_reply_needs_a_reply_skill(more, objected):
    assert (objects("reply_skill_required", {}, reply="Hi", **more) is not None) is objected


@pytest.mark.parametrize(
    ("asked", "calls", "objected"),
    [
        ("how much is it", [], True),
        ("how much is it", [call()], False),
        ("how much is it", [call(name="get_faq")], True),
        ("hello", [], False),
    ],
)
def test_a_trigger_demands_a_tool(asked, calls, objected):
    settings = {"triggers": ["how much"], "tools": ["get_product", "compare"]}
    said = objects("tool_required", settings, reply="Hi", request=request(asked), calls=calls)
    assert (said is not None) is objected


@pytest.mark.parametrize(
    ("answer", "calls", "reason"),
    [
        (ChatReply(content="Hi."), [], None),
        (ChatReply(content=""), [], "neither text nor tool calls"),
        (ChatReply(content=None), [], "neither text nor tool calls"),
        (ChatReply(content=""), [call(name="refuse")], None),
        (ChatReply(content="It is", finish_reason="length"), [], "cut off"),
        (ChatReply(content='<tool_call>{"name":"f"}</tool_call>'), [], "<tool_call>"),
        (ChatReply(content="<|tool_calls_begin|>f"), [], "<|tool_calls_begin|>"),
        (ChatReply(content="price < 90 > 80"), [], None),
    ],
)
def test_an_answer_is_a_text_or_calls(answer, calls, reason):
    said = objects("malformed_output", {}, event="after_model", answer=answer, calls=calls)
    assert (said is None) if reason is None else (reason in said)


def _asked(name, arguments, tool=None):
    import json

    return Asked(name=name, arguments=arguments, arguments_raw=json.dumps(arguments), tool=tool)


def test_the_second_change_of_one_answer_is_refused_and_reading_is_not():
    asked = [_asked("get_product", {}, TOOL), _asked("move", {"a": 1}, MOVE)]
    asked += [_asked("move", {"a": 2}, MOVE)]
    check = make_check("parallel_mutations", {})
    assert check(Moment(event="after_model", asked=asked)).calls == (2,)
    assert check(Moment(event="after_model", asked=asked[:2])) is None


def test_the_same_call_is_the_same_whatever_the_order_of_its_arguments():
    calls = [call(arguments={"a": 1, "b": 2}), call(arguments={"b": 2, "a": 1})]
    asked = [_asked("get_product", {"b": 2, "a": 1}), _asked("get_product", {"a": 2})]
    check = make_check("repeat_call", {"limit": 2})
    assert check(Moment(event="after_model", asked=asked, calls=calls)).calls == (0,)
    assert check(Moment(event="after_model", asked=asked, calls=calls[:1])) is None
    assert check(Moment(event="before_tool", call=asked[0], calls=calls)) is not None


def test_one_malformed_call_over_and_over_is_a_loop():
    bad = Asked(name="f", arguments=None, arguments_raw="{bad")
    calls = [
        ToolCall(id="c", name="f", arguments_raw="{bad", result=ToolResult(ok=False, content=""))
    ] * 84
    check = make_check("loop_stop", {"limit": 85})
    assert check(Moment(event="after_model", asked=[bad], calls=calls)) is not None
    assert check(Moment(event="after_model", asked=[bad], calls=calls[1:])) is None


def test_the_same_refused_text_again_is_a_loop():
    check = make_check("loop_stop", {"limit": 2})
    answer = ChatReply(content="Buy!")
    assert check(Moment(event="after_model", answer=answer, said=["Buy!"])) is not None
    assert check(Moment(event="after_model", answer=answer, said=["Hi!"])) is None


@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("no_such_check", {}),
        ("length", {}),
        ("length", {"max_letters": 3}),
        ("forbid_pattern", {"patterns": ["("]}),
        ("forbid_pattern", {"patterns": "abc"}),
        ("forbid_pattern", {"patterns": ["a"], "on": "answer"}),
        ("tool_required", {"triggers": ["a"]}),
        ("output_format", {"forbid": ["html"]}),
        ("grounded_claims", {"kinds": ["mood"]}),
    ],
)
def test_settings_that_cannot_be_meant_are_named(check, settings):
    with pytest.raises(HookError):
        make_check(check, settings)


@pytest.mark.parametrize(
    ("check", "settings", "text", "repaired"),
    [
        ("length", {"max_chars": 12}, "It is good. It really is.", "It is good."),
        ("length", {"max_chars": 6}, "很好。真的很好。", "很好。"),
        ("length", {"max_chars": 5}, "Nothing fits here.", None),
        ("output_format", {}, "It is **great** <b>now</b>.", "It is great now."),
        ("output_format", {"forbid": ["json"]}, '{"a": 1}', None),
        ("forbid_pattern", {"patterns": ["wechat"]}, "Hi! Add my WeChat. Bye.", "Hi! Bye."),
        ("forbid_pattern", {"patterns": ["wechat"]}, "WeChat me", None),
    ],
)
def test_a_check_that_can_repair_a_reply_does(check, settings, text, repaired):
    found = make_check(check, settings)(Moment(event="before_reply", reply=text))
    assert found.reply == repaired


def test_a_comment_is_masked():
    check = make_check("forbid_pattern", {"patterns": [r"\d{11}"], "on": "comment"})
    found = check(Moment(event="request", request=request("call 13800000000 now", "hi")))
    assert [c.text for c in found.request.comments] == ["call … now", "hi"]


@given(st.text(max_size=300))
def test_sentences_lose_no_character(text):
    assert "".join(sentences(text)) == text


@given(st.text(max_size=200))
def test_no_check_breaks_on_any_reply(text):
    moment = Moment(event="before_reply", reply=text, request=request(text), calls=[call()])
    for name in ("grounded_claims", "output_format", "ai_identity", "unsupported_promise"):
        make_check(name, {})(moment)
    make_check("length", {"max_words": 3})(moment)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [("hello", "en"), ("你好", "zh"), ("89", None), ("", None), ("这款SPF50不错", "zh")],
)
def test_language_by_script(text, spoken):
    assert language(text) == spoken
