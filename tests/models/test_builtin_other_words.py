# ruff: noqa: E501  descriptions stand as their author would write them
"""What the policy reads where a harness says the usual in other words, or allows fewer rounds."""

import json

import pytest
from builtin_harness import BODIES, SKILLS, request, tool, tools

from harness_cli.models.builtin.arguments import fill, takes
from harness_cli.models.builtin.calling import as_asked, rank_tools
from harness_cli.models.builtin.deciding import Mind, decide
from harness_cli.models.builtin.reading import read
from harness_cli.models.builtin.roles import asker, plain, shares
from harness_cli.models.builtin.routing import route
from harness_cli.models.builtin.scene import Answer, Offer, Turn
from harness_cli.models.builtin.similarity import Candidate, Ranking, Similarity
from harness_cli.models.builtin.situation import CLEAR, UNCLEAR
from harness_cli.models.builtin.skilltext import Pattern, guide
from harness_cli.models.builtin.vectors import open_vectors
from harness_cli.models.builtin.wanting import Want

OUTRIGHT = "Asks back when it is not clear which product or plant is meant. 不知道哪个商品，追问。"
OTHERWISE = "One short question in return where the wish stays open: follow-up question to the viewer. 反问。"


@pytest.fixture(scope="module")
def similarity() -> Similarity:
    return Similarity(open_vectors())


def scene_of(body):
    return read(body)[0]


@pytest.mark.parametrize(
    "text", [OTHERWISE, "Clarifies the wish.", "Asks a question back.", "反问。"]
)
def test_the_skill_that_asks_back_is_found_in_other_words_too(text, similarity):
    scene = scene_of(request("how much", skills={**SKILLS, "doubt": text}))
    assert not plain(scene, similarity)
    assert asker(scene, similarity, ()) == "doubt"
    assert asker(scene, similarity, ("doubt",)) is None


def test_words_decide_where_a_description_has_the_cue_s_own(similarity):
    scene = scene_of(request("how much", skills={**SKILLS, "doubt": OUTRIGHT}))
    candidates = [Candidate.of(n, t) for n, t in scene.skills.items()]
    assert plain(scene, similarity)
    found = shares(UNCLEAR, candidates, similarity)
    assert found == similarity.rank_wording(UNCLEAR, candidates).by_name


def test_a_cue_that_no_description_is_for_speaks_of_none(similarity):
    scene = scene_of(request("how much"))
    candidates = [Candidate.of(n, t) for n, t in scene.skills.items()]
    assert similarity.rank_wording(UNCLEAR, candidates).top > 0, "words are shared by chance"
    assert set(shares(UNCLEAR, candidates, similarity).values()) == {0.0}
    assert asker(scene, similarity, ()) is None


def test_who_answers_about_products_is_found_in_other_words(similarity):
    texts = {"a": "Every question about one product of the room.", "b": "Shows another link now."}
    found = shares(CLEAR, [Candidate.of(n, t) for n, t in texts.items()], similarity)
    assert found["a"] > 0 == found["b"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("item_position", "Which one of the list."), ("product_slot", "The place."), ("link", "")],
)
def test_the_position_of_an_item_says_which_item(name, told, similarity):
    offer = Offer.read(
        tool("sheet", "A sheet.", {name: {"type": "integer", "description": told}}, name)
    )
    assert takes(offer, 1)
    filled = fill(offer, "price of number 4", scene_of(request("price of number 4")), similarity)
    assert filled.arguments == {name: 4}


@pytest.mark.parametrize("name", ["budget_limit", "max_price", "top_price"])
def test_a_limit_of_the_budget_is_money(name, similarity):
    properties = {name: {"type": "number"}, "limit": {"type": "integer"}}
    offer = Offer.read(tool("find", "Finds plants.", properties))
    comment = "a plant under 30 yuan"
    assert fill(offer, comment, scene_of(request(comment)), similarity).arguments == {name: 30}


def rounds(body, number):
    """The same request in a prompt that allows so many rounds."""
    body["messages"][0]["content"] += f"\nUse at most 6 calls in {number} rounds.\n"
    return body


@pytest.mark.parametrize(
    ("comment", "called"),
    [
        ("how much is link 3", {"plant_sheet": {"link": 3}}),
        ("what about this one", {"plant_sheet": {"link": 5}}),
    ],
)
def test_a_prompt_of_two_rounds_has_skill_and_tool_called_in_one(comment, called, similarity):
    calls = decide(rounds(request(comment), 2), similarity).calls
    assert calls[0][0] == "open_skill"
    assert {n: a for n, a in calls if n in called} == called
    usual = decide(rounds(request(comment), 4), similarity).calls
    assert {n for n, _ in usual} == {"open_skill"}, "with more rounds it reads first"


@pytest.mark.parametrize(
    ("told", "called"),
    [
        ("One plant's stock, costs, size.", True),
        ("Shows one plant's stock, costs, size to viewers.", False),
    ],
)
def test_what_changes_the_room_is_not_called_beside_another(told, called, similarity):
    second = tool("second", told, {"link": {"type": "integer"}}, "link")
    body = rounds(request("the price of link 3, how much light", offered=[*tools(), second]), 2)
    names = [n for n, _ in decide(body, similarity).calls]
    assert "plant_sheet" in names
    assert ("second" in names) is called


CHANGES = "Shows one plant to viewers on the screen."


@pytest.mark.parametrize(
    ("comment", "called"),
    [("show me the screen for link 3", True), ("show viewers this one on the screen", False)],
)
def test_what_changes_the_room_is_called_unread_only_for_a_product_that_is_named(
    comment, called, similarity
):
    shown = tool("screen_plant", CHANGES, {"link": {"type": "integer"}}, "link")
    body = rounds(request(comment, offered=[*tools(), shown]), 2)
    assert ("screen_plant" in {n for n, _ in decide(body, similarity).calls}) is called


HOST = "Casual talk that concerns no plant and no parcel: the weather, moods. 聊天。"


@pytest.mark.parametrize(
    "comment", ["where do you come from", "how old are you host", "主播你是哪里人"]
)
def test_a_question_about_the_host_is_talk_whatever_else_has_its_words(comment, similarity):
    near = {
        "parcels": "Says where parcels come from, how old an order is. 快递从哪里发，哪里收。反问。",
        "chatter": HOST,
    }
    assert route(scene_of(request(comment, skills=near)), similarity) == ["chatter"]
    certain = {**near, "doubt": OUTRIGHT}
    assert route(scene_of(request(comment, skills=certain)), similarity) != ["chatter"]
    about = request(f"{comment}, and link 3?", skills=near)
    assert "parcels" in route(scene_of(about), similarity), "a product is named"


@pytest.mark.parametrize(
    ("near", "first"), [(1.0, "all_in"), (0.9, "card")], ids=["about as near", "nearer by far"]
)
def test_of_tools_about_as_near_the_one_that_the_comment_speaks_of_is_tried_next(
    near, first, similarity
):
    link = {"link": {"type": "integer"}}
    offered = [
        tools()[0],
        tool("card", "A plant's name, number, price.", link, "link"),
        tool("all_in", "What a basket comes to, postage and voucher included.", link, "link"),
    ]
    scene = scene_of(request("how much money would it cost me with my voucher", offered=offered))
    price = Pattern("price", "the price", (("en", "{name} is {price} yuan, number {number}."),))
    want = Want(scene.comments[0], scene.comments[0], price)
    by_slots = rank_tools(want, [], scene, similarity).by_name
    assert by_slots["card"] > by_slots["all_in"], "the slots of the pattern speak for the card"
    ranking = Ranking.of({"asked already": 1.4, "card": 1.1, "all_in": near})
    found = as_asked(["card", "all_in"], ranking, want, [], scene, similarity)
    assert found[0] == first
    assert set(found) == {"card", "all_in"}


FEES = """# Fees
## Tools
- `by_voucher`: the price under a voucher, name and number.
- `card`: name, number and price of a plant.
- `all_in`: what is paid at last, every voucher included.
## Reply patterns
- **price**: how much it costs, what the price is
  - en: {name} is {price} yuan, number {number}.
- **total**: what it costs after vouchers
  - en: {name} comes to {total} yuan.
"""


@pytest.mark.parametrize(
    ("told", "share", "then"),
    [
        ({"name": "Monstera", "total": 80}, 0.9, "all_in"),
        ({"name": "Monstera", "total": 80}, 0.7, "card"),
        ({"name": "Monstera"}, 0.9, "card"),
    ],
    ids=["answered otherwise", "that is far from what was asked", "not answered"],
)
def test_a_tool_that_told_something_else_asked_for_is_followed_by_the_one_for_that(
    told, share, then, similarity
):
    link = {"link": {"type": "integer"}}
    offered = [
        tools()[0],
        tool(
            "by_voucher", "Under a voucher that is named: a price, a name, a number.", link, "link"
        ),
        tool("card", "A plant's name, number, price.", link, "link"),
        tool("all_in", "The price of a plant in the end.", link, "link"),
    ]
    scene = scene_of(request("how much is this one after vouchers", offered=offered))
    fees = guide("fees", FEES, ("by_voucher", "card", "all_in"))
    turn = Turn(loaded={"fees": FEES}, answers=[Answer("by_voucher", {"link": 5}, told)], rounds=2)
    ranked = (("fees/price", 1.0), ("fees/total", share))
    want = Want(scene.comments[0], scene.comments[0], fees.patterns[0], ranked)
    mind = Mind(scene, turn, similarity, guides=[fees])
    assert mind._tools_for(want)[0].name == then


def after_loading(body, *skills, bodies):
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "open_skill", "arguments": json.dumps({"name": s})},
        }
        for n, s in enumerate(skills)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": bodies[s]}
        for n, s in enumerate(skills)
    ]
    body["messages"] += [{"role": "assistant", "content": None, "tool_calls": calls}, *results]
    return body


def test_a_fact_of_no_product_is_asked_back_for_at_last(similarity):
    for text, loads in ((OTHERWISE, True), (OUTRIGHT, False)):
        skills = {**SKILLS, "doubt": text}
        body = request(
            "and the window light it needs?", skills=skills, offered=tools(skills), current=None
        )
        after_loading(body, "plant-facts", bodies=BODIES)
        calls = decide(body, similarity).calls
        assert (("open_skill", {"name": "doubt"}) in calls) is loads


def test_a_second_skill_is_read_where_descriptions_leave_doubt(similarity):
    near = {
        "one": "Parcels: delivery, boxes, tracking. 反问。",
        "two": "Couriers: delivery, vans, tracking.",
        "far": "Songs and jokes.",
    }
    comment = "my delivery tracking never changes since tuesday"
    assert set(route(scene_of(request(comment, skills=near)), similarity)) == {"one", "two"}
    certain = {**near, "doubt": OUTRIGHT}
    assert len(route(scene_of(request(comment, skills=certain)), similarity)) == 1
