"""Which text of a rendered conversation is trained: decoded, for every template and odd case."""

import pytest
from chat_cases import (
    CASES,
    FAMILIES,
    ONE_CALL,
    PARALLEL,
    REPLY,
    RETRIED,
    SYSTEM,
    THINKING,
    TOOLS,
    WITHOUT_THINKING,
    asks,
    call,
    needs_templates,
    result,
    said,
    stand_in,
    template,
    turns_of,
    user,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import MaskError
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.training.segments import segments
from harness_cli.training.tokens import IGNORED, token_row

MASKED = [SYSTEM["content"], "How much is link 3?", '{"price": 89}', "[harness] say it"]
BARE = "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
BARE += "{% endgeneration %}{% else %}<{{ m.content }}>{% endif %}{% endfor %}"


def answered():
    return [(name, case) for name, (_, cases) in FAMILIES.items() for case in cases]


def refused():
    return [
        (name, case) for name, (_, cases) in FAMILIES.items() for case in CASES if case not in cases
    ]


def expected(name, messages):
    turn_text, _ = FAMILIES[name]
    turns = turns_of(messages)
    if name in WITHOUT_THINKING:
        turns = [{k: v for k, v in t.items() if k != "reasoning_content"} for t in turns]
    return [turn_text(turn, turn is turns[-1]) for turn in turns]


@needs_templates
@pytest.mark.parametrize(("name", "case"), answered())
def test_what_is_trained_decodes_to_exactly_what_a_rollout_samples(name, case):
    messages = CASES[case]
    tools = TOOLS if any(m.get("tool_calls") for m in messages) else None
    found = segments(template(name), messages, tools)
    assert found.trained() == expected(name, messages)
    assert found.method == ("marks" if name.endswith("_training") else "prefix")
    assert [s.kind for s in found.spans] == [
        "tool" if t.get("tool_calls") else "reply" for t in turns_of(messages)
    ]
    tokenizer = stand_in(name)
    row = token_row(tokenizer, found)
    assert tokenizer.decode(row.input_ids) == found.text
    trained = [t for t in row.labels() if t != IGNORED]
    assert tokenizer.decode(trained) == "".join(expected(name, messages))
    masked = tokenizer.decode(
        [t for t, s in zip(row.input_ids, row.segment_ids, strict=True) if not s]
    )
    assert not any(words in tokenizer.decode(trained) for words in MASKED)
    assert all(m["content"] in masked for m in messages if m["role"] == "user")


@needs_templates
@pytest.mark.parametrize(("name", "case"), refused())
def test_where_neither_marks_nor_prefixes_hold_the_row_is_refused_with_a_reason(name, case):
    with pytest.raises(MaskError, match="template"):
        segments(template(name), CASES[case], TOOLS)


@needs_templates
@pytest.mark.parametrize(
    ("name", "case", "why"),
    [
        ("qwen3", ONE_CALL, "no generation marks; prefix difference: turn 2 is rendered otherwise"),
        ("llama3", ONE_CALL, "loses or garbles tool calls"),
        ("llama3_1", PARALLEL, "only supports single tool-calls"),
        ("gptoss", PARALLEL, "loses the call of `get_inventory` in turn 2"),
        ("gptoss_training", THINKING, "turn 2 is rendered otherwise once more follows"),
        ("gptoss_training", RETRIED, "turn 4 is rendered otherwise once more follows"),
        ("deepseekv3", CASES["two rounds"], "what turn 4 was shown is not how the whole begins"),
        ("qwen3_5_nothink", THINKING, "what turn 2 was shown"),
    ],
)
def test_a_refusal_says_why(name, case, why):
    with pytest.raises(MaskError, match=why):
        segments(template(name), case, TOOLS)


@needs_templates
@pytest.mark.parametrize("name", ["qwen3_training", "qwen3_5_think_training", "qwen3_6_training"])
def test_an_empty_think_block_is_the_prompts_and_a_filled_one_the_policys(name):
    empty = segments(template(name), ONE_CALL, TOOLS)
    assert "</think>" not in "".join(empty.trained())
    assert empty.text.count("</think>") == 2
    filled = segments(template(name), THINKING, TOOLS)
    thoughts = [filled.text[s.start : s.thought] for s in filled.spans]
    opened = "<think>\n" if name == "qwen3_training" else ""
    assert thoughts == [
        f"{opened}{t['reasoning_content']}\n</think>\n\n" for t in turns_of(THINKING)
    ]
    assert [s.thought - s.start for s in empty.spans] == [0, 0]


@needs_templates
@pytest.mark.parametrize("name", [n for n in FAMILIES if n.startswith("qwen")])
def test_the_newline_behind_the_end_token_is_masked(name):
    found = segments(template(name), REPLY, None)
    (span,) = found.spans
    assert found.text[span.end - 10 : span.end] == "<|im_end|>"
    assert found.text[span.end :] == "\n"
    assert span.closed


@needs_templates
def test_a_template_without_an_end_token_says_so():
    spans = segments(template("glm4moe"), ONE_CALL, TOOLS).spans
    assert [s.closed for s in spans] == [False, False]
    assert all(s.closed for s in segments(template("glm4moe_training"), ONE_CALL, TOOLS).spans)


@needs_templates
def test_a_prompt_that_opens_a_think_block_which_history_lacks_is_another_context():
    found = segments(template("deepseekv3_training"), ONE_CALL, TOOLS)
    assert [s.same_context for s in found.spans] == [False, True]
    assert all(s.same_context for s in segments(template("qwen3_training"), ONE_CALL, TOOLS).spans)


@needs_templates
@pytest.mark.parametrize("content", [None, "", "absent"])
@pytest.mark.parametrize("arguments", ['{"link_id": 3}', {"link_id": 3}])
@pytest.mark.parametrize("name", [n for n, (_, cases) in FAMILIES.items() if "one call" in cases])
def test_null_empty_and_absent_content_and_both_argument_forms_are_one_row(
    name, arguments, content
):
    turn = asks(call() | {"function": {"name": "get_price", "arguments": arguments}})
    if content == "absent":
        del turn["content"]
    else:
        turn["content"] = content
    messages = [SYSTEM, user(), turn, result(), said()]
    assert segments(template(name), messages, TOOLS) == segments(template(name), ONE_CALL, TOOLS)


@needs_templates
def test_arguments_that_are_no_object_are_refused():
    turn = asks(call() | {"function": {"name": "get_price", "arguments": "[1]"}})
    with pytest.raises(MaskError, match="no JSON object"):
        segments(template("qwen3_training"), [user(), turn], TOOLS)


@needs_templates
@pytest.mark.parametrize("name", [n for n, (_, cases) in FAMILIES.items() if "parallel" in cases])
def test_consecutive_tool_results_are_masked_and_their_ids_are_the_templates(name):
    found = segments(template(name), PARALLEL, TOOLS)
    tokenizer = stand_in(name)
    row = token_row(tokenizer, found)
    between = found.text[found.spans[0].end : found.spans[1].start]
    assert between.count("89") == between.count('"stock": 2') == 1
    masked = [t for t, s in zip(row.input_ids, row.segment_ids, strict=True) if not s]
    head = tokenizer.encode(found.text[: found.spans[0].start])
    after = masked[len(head) :][: len(tokenizer.encode(between))]
    # Not their number alone: the ids themselves.
    assert after == tokenizer.encode(between)
    assert tokenizer.decode(row.input_ids) == template(name).render(PARALLEL, TOOLS)


@needs_templates
@pytest.mark.parametrize(
    "name", ["qwen2_5_training", "qwen3_training", "llama3_training", "glm4moe_training"]
)
def test_an_answer_that_was_cut_off_is_trained_up_to_its_last_word(name):
    messages = [SYSTEM, user(), said("It is 89 yu")]
    found = segments(template(name), messages, None, unfinished=True)
    assert [t.strip() for t in found.trained()] == ["It is 89 yu"]
    assert not found.spans[0].closed


@needs_templates
@pytest.mark.parametrize("name", ["qwen2_5_training", "qwen3_training", "qwen3_5_think_training"])
def test_a_row_cut_inside_the_last_answer_keeps_the_labels_of_what_is_left(name):
    tokenizer = stand_in(name)
    row = token_row(tokenizer, segments(template(name), ONE_CALL, TOOLS))
    labels = row.labels(["reply"])
    end = len(labels) - next(i for i, t in enumerate(reversed(labels)) if t != IGNORED)
    cut = row.first(end - 3)
    left = [t for t in cut.labels(["reply"]) if t != IGNORED]
    assert left == [t for t in labels if t != IGNORED][:-3]
    assert tokenizer.decode(left) in "It is 89 yuan.<|im_end|>"


@pytest.mark.parametrize("marked", [True, False])
def test_an_assistant_that_speaks_first_with_one_token_is_trained_from_token_0(marked):
    source = (
        BARE if marked else BARE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    )
    found = segments(ChatTemplate(source), [said("Hi"), user("you")], None)
    assert (found.spans[0].start, found.spans[0].end) == (0, 2)
    assert found.trained() == ["Hi"]
    assert found.text == "Hi<you>"


@needs_templates
@pytest.mark.parametrize("name", ["llama3_training", "qwen2_5_training", "qwen3_training"])
def test_an_assistant_that_speaks_first_is_found_in_a_real_template(name):
    found = segments(template(name), [said("Hi"), user("you"), said("Yes")], None)
    end = "<|eot_id|>" if name.startswith("llama") else "<|im_end|>"
    assert found.trained() == [f"Hi{end}", f"Yes{end}"]


def test_an_empty_list_of_tools_and_none_are_kept_apart():
    messages = [user("u"), said("s")]
    source = "{% if tools is none %}none{% else %}{{ tools | length }}{% endif %};" + BARE
    assert segments(ChatTemplate(source), messages, None).text == "none;<u>s"
    assert segments(ChatTemplate(source), messages, []).text == "0;<u>s"
    assert segments(ChatTemplate(source), messages, TOOLS).text == "2;<u>s"


@needs_templates
def test_an_empty_list_of_tools_is_not_none_for_one_of_the_templates():
    different = [
        name
        for name in FAMILIES
        if template(name).render(REPLY, []) != template(name).render(REPLY, None)
    ]
    assert different == ["llama3_1"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (BARE.replace("{% generation %}", "").replace("{% endgeneration %}", "") + "x", "shown"),
        (
            "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}"
            "{% endfor %}.",
            "2 marks for 1 assistant turns",
        ),
        (
            "{% for m in messages %}{{ m.content[:1] }}{% generation %}{{ m.content[1:] }}"
            "{% endgeneration %}{% endfor %}.",
            "2 marks",
        ),
        (
            "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}A:"
            "{% generation %}{{ m.content[:3] }}{% endgeneration %}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}A:{% endif %}",
            "drops or changes the text of turn 1",
        ),
    ],
)
def test_marks_that_cannot_be_right_are_not_taken(source, why):
    with pytest.raises(MaskError, match=why):
        segments(ChatTemplate(source), [user("question"), said("answer")], None)


def test_marks_that_leave_out_the_calls_are_not_taken_and_prefixes_decide():
    source = (
        "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
        "{{ m.content }}{% endgeneration %}{% for c in m.tool_calls %}<{{ c.function.name }}"
        "{{ c.function.arguments | tojson }}>{% endfor %}{% else %}{{ m.content }}{% endif %}"
        "</s>\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    found = segments(ChatTemplate(source), ONE_CALL, TOOLS)
    assert found.method == "prefix"
    assert "renders to nothing" in found.doubt
    assert found.trained() == ['<get_price{"link_id": 3}></s>', "It is 89 yuan.</s>"]


def test_marks_inside_a_macro_or_a_captured_block_are_found_where_they_end_up():
    source = (
        "{% macro turn(m) %}{% generation %}{{ m.content }}</s>{% endgeneration %}{% endmacro %}"
        "{% set whole %}{% for m in messages %}{% if m.role == 'assistant' %}A:{{ turn(m) }}"
        "{% else %}U:{{ m.content }}{% endif %}{% endfor %}{% endset %}{{ whole }}"
        "{% if add_generation_prompt %}A:{% endif %}"
    )
    found = segments(ChatTemplate(source), [user("x"), said("one"), user("y"), said("two")], None)
    assert (found.method, found.trained()) == ("marks", ["one</s>", "two</s>"])


def test_a_tag_in_a_comment_is_no_mark():
    source = "{# {% generation %} would be here #}{{ messages[0].content }}"
    assert not ChatTemplate(source).marked
    assert ChatTemplate(BARE).marked


@needs_templates
def test_only_the_turns_that_are_asked_for_have_to_be_found():
    with pytest.raises(MaskError):
        segments(template("qwen3"), ONE_CALL, TOOLS)
    found = segments(template("qwen3"), ONE_CALL, TOOLS, turns=[4])
    assert found.trained() == ["It is 89 yuan.<|im_end|>"]
    with pytest.raises(MaskError, match="no assistant turn"):
        segments(template("qwen3"), ONE_CALL, TOOLS, turns=[0])


@needs_templates
def test_a_template_that_asks_the_day_gives_the_same_row_on_every_day():
    text = segments(template("gptoss"), REPLY, None).text
    assert "Current date: 2026-01-01" in text


LINES = st.text(
    st.characters(exclude_categories=("Cs", "Co"), exclude_characters="<>{}[]|｜\u0085"),
    max_size=40,
).map(str.strip)


@needs_templates
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(LINES, LINES.filter(bool)), min_size=1, max_size=3), st.booleans())
def test_any_words_decode_to_themselves(pairs, marked):
    name = "qwen3_training" if marked else "qwen2_5"
    messages = [SYSTEM]
    for asked, answer in pairs:
        messages += [user(asked), said(answer)]
    found = segments(template(name), messages, None)
    assert found.trained() == [f"{answer}<|im_end|>" for _, answer in pairs]
    tokenizer = stand_in(name)
    row = token_row(tokenizer, found)
    assert tokenizer.decode([t for t in row.labels() if t != IGNORED]) == "".join(found.trained())
