# ruff: noqa: E501  one case a line
"""How the policy reads prompts, comments, schemas, skills and messages of the harness."""

import json
from typing import Any

import pytest
from builtin_harness import request, tool, tools
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.models.builtin.arguments import fill
from harness_cli.models.builtin.deciding import decide
from harness_cli.models.builtin.language import language_of, number_of
from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.objections import demand, fit, limit_of
from harness_cli.models.builtin.prompt import described, listing, questions_and_answers, spoken
from harness_cli.models.builtin.reading import read
from harness_cli.models.builtin.scene import Offer, Turn
from harness_cli.models.builtin.similarity import Candidate, Similarity, split_negative
from harness_cli.models.builtin.skilltext import guide
from harness_cli.models.builtin.slots import Facts
from harness_cli.models.builtin.vectors import Cached, open_vectors


@pytest.fixture(scope="module")
def similarity() -> Similarity:
    return Similarity(open_vectors())


@pytest.mark.parametrize(
    "text",
    [
        "- alpha: does this\n- beta: does that",
        "* **alpha**: does this\n* **beta** — does that",
        "| alpha | does this |\n| beta | does that |",
        '<skill name="alpha">does this</skill>\n<skill name="beta">does that</skill>',
        "<name>alpha</name><description>does this</description>\n"
        "<name>beta</name><description>does that</description>",
        "1. `alpha`: does this\n2. `beta`: does that",
    ],
)
def test_listed_names_are_described_in_bullets_tables_and_tags(text: str):
    assert described(text, ("alpha", "beta")) == {"alpha": "does this", "beta": "does that"}


@pytest.mark.parametrize(
    ("text", "current"),
    [
        ("- link 1: Red mug / 红杯子 (cups)\n- link 2: Jug / 水壶 (jugs)\ncurrent link: 2", 2),
        ("- link 1: Red mug / 红杯子 [cups]\n- link 2: Jug / 水壶 [jugs] (being presented now)", 2),
        ("## Products\n1. Red mug | 红杯子 | cups\n2. Jug | 水壶 | jugs", None),
        ("- 1号链接：Red mug / 红杯子\n- 2号链接：Jug / 水壶\n当前讲解：1号", 1),
        ('<item link="1">Red mug / 红杯子</item>\n<item link="2">Jug / 水壶</item>', None),
        (
            "- link 1: Red mug / 红杯子 [cups] (now)- link 2: Jug / 水壶 [jugs]- link 3: Pot [pots]",
            1,
        ),
    ],
)
def test_products_and_the_presented_one_are_found_in_any_list(text: str, current: int | None):
    found = listing(text)
    assert [(p.number, p.own_names) for p in found.products][:2] == [
        (1, ("Red mug", "红杯子")),
        (2, ("Jug", "水壶")),
    ]
    assert found.current == current


def test_a_numbered_list_of_rules_is_no_list_of_products():
    assert listing("# How to work\n1. Read the comment.\n2. Call the tool.").products == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- [v1] how much?", "how much?"),
        ("- v12: how much?", "how much?"),
        ("* viewer v1: how much?", "how much?"),
        ("观众A：多少钱", "多少钱"),
        ('"how much?"', "how much?"),
        ('<comment viewer="v1">how much?</comment>', "how much?"),
        ("how much: the red one or the blue one?", "how much: the red one or the blue one?"),
    ],
)
def test_a_transcript_line_is_read_without_bullet_and_speaker(line: str, said: str):
    assert spoken(line) == said


@pytest.mark.parametrize(
    "text",
    [
        "- Question: Open?\n  Answer: From 7.",
        "Q: Open?\nA: From 7.",
        "- Open? From 7.",
        "问：Open?\n答：From 7.",
    ],
)
def test_configured_questions_are_read_with_their_answers(text: str):
    assert questions_and_answers(text) == (("Open?", "From 7."),)


@pytest.mark.parametrize(
    ("comment", "numbers"),
    [
        ("#3", (3,)),
        ("link 3 and 5 please", (3, 5)),
        ("number two", (2,)),
        ("the third one", (3,)),
        ("3号链接", (3,)),
        ("三号多少钱", (3,)),
        ("第二个怎么样", (2,)),
        ("1和3号哪个好", (1, 3)),
        ("#1 vs #4", (1, 4)),
        ("is 6 still there", (6,)),
        ("the money tree", (3,)),
        ("白掌好养吗", (4,)),
        ("fern or cactus", (2, 6)),
        ("the next one", (6,)),
        ("does it ship in 3 days", (5,)),
        ("3 days later", (5,)),
        ("anything under 3 yuan", (5,)),
        ("first, tell me the price", (5,)),
        ("link 99", (99,)),
    ],
)
def test_products_are_meant_by_number_by_name_or_by_what_is_presented(
    comment: str, numbers: tuple[int, ...]
):
    scene, _ = read(request(comment, current=5))
    assert mentions(comment, scene).numbers == numbers


@pytest.mark.parametrize(
    ("comment", "money", "counts"),
    [
        ("two of #3 for 100 yuan", (100.0,), (2,)),
        ("买两件多少钱", (), (2,)),
        ("200块以内", (200.0,), ()),
        ("一百五以内", (150.0,), ()),
        ("something under 80", (80.0,), ()),
        ("¥59.9 each", (59.9,), ()),
        ("x3 please", (), (3,)),
    ],
)
def test_sums_and_counts_carry_their_units(
    comment: str, money: tuple[float, ...], counts: tuple[int, ...]
):
    scene, _ = read(request(comment))
    found = mentions(comment, scene)
    assert (found.money, found.counts) == (money, counts)


@pytest.mark.parametrize(
    ("word", "number"),
    [("3", 3), ("three", 3), ("third", 3), ("三", 3), ("十二", 12), ("二十", 20), ("一百五", 150),
     ("两千五百", 2500), ("mug", None), ("", None)],
)  # fmt: skip
def test_number_words_in_both_languages(word: str, number: int | None):
    assert number_of(word) == number


BASKET = {
    "type": "object",
    "properties": {"link_id": {"type": "integer"}, "quantity": {"type": "integer", "minimum": 1}},
    "required": ["link_id", "quantity"],
}


@pytest.mark.parametrize(
    ("properties", "required", "comment", "arguments"),
    [
        ({"item_no": {"type": "integer", "description": "Link number."}}, ["item_no"], "#2?", {"item_no": 2}),
        ({"link": {"type": "integer"}, "budget": {"type": "number"}}, ["link"], "#2", {"link": 2}),
        ({"items": {"type": "array", "items": BASKET}}, ["items"], "two of #3 with coupon",
         {"items": [{"link_id": 3, "quantity": 2}]}),
        ({"ids": {"type": "array", "items": {"type": "integer"}, "minItems": 2}}, ["ids"], "#1 or #2",
         {"ids": [1, 2]}),
        ({"ids": {"type": "array", "items": {"type": "integer"}, "minItems": 2}}, ["ids"],
         "this one or #2", {"ids": [2, 5]}),
        ({"link": {"type": "integer"}, "when": {"enum": ["now", "later"]}}, ["link", "when"],
         "show #2 later", {"link": 2, "when": "later"}),
        ({"variant": {"type": "string", "description": "Colour or size."}}, [], "有黑色M码吗",
         {"variant": "黑色 M码"}),
        ({"query": {"type": "string", "description": "The question in the viewer's own words."}},
         ["query"], "do you ship abroad", {"query": "do you ship abroad"}),
        ({"language": {"type": "string"}}, ["language"], "多少钱", {"language": "zh"}),
        ({"link": {"type": ["integer", "null"]}}, [], "do you ship abroad", {}),
        ({"member": {"type": "boolean"}}, ["member"], "hi", {"member": False}),
        ({"limit": {"type": "integer", "default": 3}}, ["limit"], "show me some", {"limit": 3}),
        ({"kind": {"const": "a"}}, ["kind"], "hi", {"kind": "a"}),
        ({"link": {"type": "integer", "maximum": 20}}, [], "link 99", {}),
    ],
)  # fmt: skip
def test_arguments_are_filled_by_the_schema(
    similarity: Similarity,
    properties: dict[str, Any],
    required: list[str],
    comment: str,
    arguments: dict[str, Any],
):
    scene, _ = read(request(comment))
    offer = Offer.read(tool("any_name", "Any tool.", properties, *required))
    assert fill(offer, comment, scene, similarity).arguments == arguments


def test_a_required_product_that_nothing_names_is_reported_missing(similarity: Similarity):
    scene, _ = read(request("how much is it", current=None))
    offer = Offer.read(tools()[1])
    assert fill(offer, "how much is it", scene, similarity).missing == ("link",)


def test_the_loader_is_known_by_its_enum_and_not_by_its_name():
    scene, _ = read(request("hi"))
    assert scene.loader is not None
    assert scene.loader.name == "open_skill"
    assert list(scene.skills) == ["plant-facts", "parcel", "small-talk", "which-one"]
    scene, _ = read(request("hi", offered=tools()[1:]))
    assert scene.loader is None


def test_what_a_description_excludes_is_set_apart():
    told, against = split_negative("Answers prices. Not for refunds. Never use it for gifts.")
    assert told == "Answers prices."
    assert against == ["refunds.", "it for gifts."]


def test_a_skill_is_read_into_rules_tools_patterns_and_examples():
    body = (
        "# Cups\n## Do not use\n- For jugs: use `jugs`.\n## Rules\n- Be brief.\n## Tools\n"
        "- `cup_facts`: always, with the number.\n## Reply patterns\n"
        "- **price**: how much\n  - en: {name} is {price.value} yuan.\n  - zh: {name}{price.value}元。\n"
        "- **unknown**: the card does not say\n  - en: Not on the card.\n"
        "## Examples\n\nViewer: what does it cost\nHost: The mug is 12 yuan.\n"
    )
    read_guide = guide("cups", body, ("cup_facts",))
    assert read_guide.avoid == ("For jugs: use `jugs`.",)
    assert read_guide.rules == ("Be brief.",)
    assert read_guide.tools == {"cup_facts": "`cup_facts`: always, with the number."}
    price, unknown = read_guide.patterns
    assert price.slots == ("name", "price.value")
    assert price.examples == ("what does it cost",)
    assert (price.fallback, unknown.fallback) == (False, True)


@pytest.mark.parametrize(
    ("slot", "text"),
    [
        ("price", "89"),
        ("rate", "4.5"),
        ("deep", "7"),
        ("first.name", "Mug"),
        ("tags", "a, b"),
        ("zh_name", "Mug"),
        ("rows.1.name", "Jug"),
        ("row.name", "Jug"),
        ("fresh", "yes"),
        ("empty", None),
        ("absent", None),
        ("first", None),
    ],
)
def test_slots_find_fields_of_results(similarity: Similarity, slot: str, text: str | None):
    data = {
        "price": 89.0, "rate": 4.5, "name": "Mug", "nested": {"deep": 7}, "tags": ["a", "b"],
        "first": {"name": "Mug"}, "rows": [{"name": "Mug"}, {"name": "Jug"}], "fresh": True, "empty": "",
    }  # fmt: skip
    assert Facts(data, "and the jug?", similarity, "en").text(slot) == text


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Call `plant_sheet` first.", {"tools": ("plant_sheet",)}),
        ("Load a reply skill before you answer.", {"load": True}),
        ("Load `parcel` instead.", {"skills": ("parcel",), "load": False}),
        ("Too long: at most 40 characters.", {"shorter": True, "limit": (40, "c")}),
        ("No markdown, plain sentences.", {"plain": True}),
        (
            '"guaranteed" is a promise, and 99 yuan is in no result.',
            {"avoid": ("guaranteed", "99")},
        ),
    ],
)
def test_messages_of_the_harness_are_read(message: str, expected: dict[str, Any]):
    scene, _ = read(request("How much is #3?"))
    found = demand(scene, Turn(objections=[message]))
    assert {name: getattr(found, name) for name in expected} == expected


def after(comment: str, *turns: dict[str, Any]) -> dict[str, Any]:
    body = request(comment)
    return {**body, "messages": [*body["messages"], *turns]}


def called(name: str, arguments: dict[str, Any], content: str) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": content},
    ]


def test_it_calls_the_tool_that_a_retry_message_names(similarity: Similarity):
    loaded = called("open_skill", {"name": "small-talk"}, "# Small talk\nSay hello.")
    body = after(
        "How much is #3?",
        *loaded,
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "[harness] Look it up with `plant_sheet` first."},
    )
    assert decide(body, similarity).calls == (("plant_sheet", {"link": 3}),)


def test_it_loads_a_skill_when_told_to(similarity: Similarity):
    loaded = called("open_skill", {"name": "small-talk"}, "# Small talk\nSay hello.")
    body = after(
        "How much is #3?",
        *loaded,
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "[harness] Load a fitting skill before you answer."},
    )
    assert decide(body, similarity).calls == (("open_skill", {"name": "plant-facts"}),)


def test_a_length_is_kept_by_leaving_whole_sentences_out():
    parts = ["One two three.", "Four five six.", "Seven."]
    assert fit(parts, (6, "w"), "en") == parts[:2]
    assert fit(parts, (20, "c"), "en") == parts[:1]
    assert limit_of("At most 2 short sentences and 300 characters.", "en") == (300, "c")
    assert limit_of("不超过60字", "zh") == (60, "c")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("多少钱", "zh"),
        ("how much", "en"),
        ("iPhone手机壳多少钱", "zh"),
        ("SPF50 ok? 好", "en"),
        ("", "en"),
    ],
)
def test_the_language_is_that_of_most_words(text: str, language: str):
    assert language_of(text) == language


def test_cached_vectors_are_the_same_and_bounded():
    cached = Cached(open_vectors(), size=2)
    once = cached.embed(["a cup", "a jug"])
    again = cached.embed(["a jug", "a pot", "a cup"])
    assert (once[0] == again[2]).all()
    assert (once[1] == again[0]).all()
    assert len(cached._known) == 2


def test_equal_scores_are_ordered_by_name(similarity: Similarity):
    twins = [Candidate(n, ("about cups",)) for n in ("b", "a", "c")]
    assert [n for n, _ in similarity.rank("a cup", twins).scores] == ["a", "b", "c"]


ANY_TEXT = st.text(max_size=60) | st.sampled_from(
    ["#3", "3号", "{name}", "<a>", "| x |", "- a: b", "```"]
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": ANY_TEXT}),
    max_size=5,
)  # fmt: skip


@given(messages=MESSAGES, comment=ANY_TEXT, result=ANY_TEXT)
def test_no_text_makes_it_stumble(similarity: Similarity, messages: Any, comment: str, result: str):
    body = request(comment)
    body["messages"] = [
        *messages,
        *body["messages"],
        *called("open_skill", {"name": "parcel"}, result),
        {"role": "assistant", "content": comment},
        {"role": "user", "content": result},
    ]
    move = decide(body, similarity)
    assert move.calls or isinstance(move.text, str)
