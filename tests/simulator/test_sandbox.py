"""Sandbox tools: a link is a place in the request's room, every answer comes from the catalogue."""

import asyncio
import json
from pathlib import Path

import pytest

from harness_cli.errors import ToolError
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request, Room
from harness_cli.simulator.sandbox import SandboxExecutor
from harness_cli.store.catalogue import read_catalogue

WORLD = read_catalogue(Path(__file__).parents[2] / "evalsets" / "catalogue")
SANDBOX = SandboxExecutor(WORLD)


def request(room: str = "room-beauty", **more) -> Request:
    products = more.pop("products", WORLD.room(room).products)
    return Request(room=Room(id=room, products=products, **more))


def call(name: str, arguments: dict, made: Request | None = None) -> dict:
    result = asyncio.run(SANDBOX.call(Tool(name=name), arguments, made or request()))
    assert result.ok
    assert json.loads(result.content) == result.structured
    return result.structured


def refused(name: str, arguments: dict, made: Request | None = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        asyncio.run(SANDBOX.call(Tool(name=name), arguments, made or request()))
    return caught.value


def test_link_n_is_the_nth_product_of_the_requests_room():
    for link, product_id in enumerate(WORLD.room("room-tech").products, 1):
        card = call("get_product_info_by_link_id", {"link_id": link}, request("room-tech"))
        product = WORLD.product(product_id)
        assert (card["link_id"], card["product_id"]) == (link, product_id)
        assert (card["name"], card["price"]) == (product.name, product.price)


def test_the_room_of_the_request_wins_over_the_configured_order():
    made = request(products=("p-104", "p-101"))
    assert call("get_product_info_by_link_id", {"link_id": 1}, made)["product_id"] == "p-104"


def test_attributes_stand_flat_beside_the_price():
    card = call("get_product_info_by_link_id", {"link_id": 1})
    assert card["spf"] == "SPF50"
    assert card["volume"] == "50 ml"
    assert card["zh_attributes"]["容量"] == "50毫升"
    assert card["discount"] == card["list_price"] - card["price"] == 40


@pytest.mark.parametrize(
    ("room", "link", "wording", "name"),
    [
        ("room-beauty", 1, "spf", "spf"),
        ("room-beauty", 1, "is it waterproof?", "water resistance"),
        ("room-beauty", 1, "保质期多久", "shelf life"),
        ("room-home", 3, "how long does it keep hot drinks hot", "keeps hot"),
        ("room-home", 3, "什么材质", "material"),
        ("room-tech", 1, "battery", "battery life"),
        ("room-family", 4, "能带上飞机登机吗", "cabin"),
    ],
)
def test_the_attribute_asked_for_is_found_by_its_name_or_in_viewers_words(
    room, link, wording, name
):
    card = call(
        "get_product_info_by_link_id", {"link_id": link, "attribute": wording}, request(room)
    )
    assert card["asked_found"]
    assert card["asked_name"] == name
    assert card["asked_value"] == card[name.replace(" ", "_")]


def test_an_attribute_that_the_card_does_not_have_is_said_to_be_missing():
    card = call("get_product_info_by_link_id", {"link_id": 1, "attribute": "barcode"})
    assert card["asked_found"] is False
    assert "asked_value" not in card


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("get_product_info_by_link_id", {"link_id": 13}, "not_found"),
        ("get_product_info_by_link_id", {"link_id": 0}, "not_found"),
        ("get_inventory", {"link_id": 4, "variant": "turquoise"}, "not_found"),
        ("search_product_by_keyword", {"keyword": "helicopter"}, "not_found"),
        ("compare_products", {"link_ids": [1, 99]}, "not_found"),
        ("compare_products", {"link_ids": [2, 2]}, "invalid_arguments"),
        ("get_faq", {"query": "zzz"}, "not_found"),
        ("get_order_policy", {"topic": "teleport"}, "not_found"),
        ("change_presentation_order", {"link_id": 40}, "not_found"),
        ("select_product_image", {"link_id": 1, "view": "x-ray"}, "not_found"),
        ("launch_rocket", {}, "unavailable"),
    ],
)
def test_what_cannot_be_answered_is_a_typed_error(name, arguments, kind):
    assert refused(name, arguments).kind == kind


def test_a_product_the_catalogue_does_not_know_is_not_found():
    made = request(products=("p-101", "p-999"))
    assert refused("get_product_info_by_link_id", {"link_id": 2}, made).kind == "not_found"


def test_an_empty_room_has_no_links():
    made = Request(room=Room(id="nowhere"))
    assert refused("get_product_info_by_link_id", {"link_id": 1}, made).kind == "not_found"


@pytest.mark.parametrize(
    ("link", "wording", "variant", "units"),
    [
        (1, "XL", "Size XL", 90),
        (1, "这款XL码还有吗", "Size XL", 90),
        (1, "l码", "Size L", 0),
        (3, "pink", "Pink", 55),
    ],
)
def test_a_variant_is_found_by_its_longest_name(link, wording, variant, units):
    found = call("get_inventory", {"link_id": link, "variant": wording}, request("room-family"))
    assert (found["variant"], found["variant_stock"]) == (variant, units)


def test_a_colour_means_all_sizes_of_it():
    found = call("get_inventory", {"link_id": 1, "variant": "black"}, request("room-style"))
    assert found["variant"] == "Black M, Black L"
    assert found["variant_stock"] == 75 + 66


def test_stock_is_the_sum_over_variants_and_names_what_is_left():
    found = call("get_inventory", {"link_id": 4})
    assert found["stock"] == 86 + 0 + 142
    assert found["in_stock"] == "Brick Red, Milk Tea"
    assert not found["sold_out"]
    gone = call("get_inventory", {"link_id": 8})
    assert gone["sold_out"]
    assert gone["availability"] == "sold out"


def test_a_search_honours_the_budget_and_recommends_what_is_in_stock():
    made = request("room-family")
    found = call("search_product_by_keyword", {"keyword": "snack", "max_price": 60}, made)
    assert all(p["price"] <= 60 for p in found["products"])
    assert found["best"]["stock"] > 0
    masks = call("search_product_by_keyword", {"keyword": "face mask", "limit": 1})
    assert masks["products"][0]["product_id"] == "p-108"
    assert masks["products"][0]["stock"] == 0


@pytest.mark.parametrize("keyword", ["hand cream", "护手霜", "HAND CREAM", "有护手霜吗"])
def test_a_product_is_found_in_both_languages(keyword):
    found = call("search_product_by_keyword", {"keyword": keyword})
    assert found["best"]["product_id"] == "p-112"


def test_a_comparison_names_the_cheapest_the_gap_and_the_differences():
    found = call("compare_products", {"link_ids": [1, 3]})
    assert found["cheapest"]["product_id"] == "p-103"
    assert found["price_gap"] == 89 - 49
    assert found["first"]["name"] == "Sunscreen SPF50"
    assert found["differences"]["volume"] == {
        "Sunscreen SPF50": "50 ml", "Amino Acid Face Wash": "120 g",
    }  # fmt: skip


def test_every_configured_question_finds_its_own_entry_in_both_languages():
    for entry in WORLD.faq:
        rooms = [r.id for r in WORLD.rooms if entry.product is None or entry.product in r.products]
        for words in (entry.question, entry.zh_question):
            assert call("get_faq", {"query": words}, request(rooms[0]))["id"] == entry.id


def test_faq_entries_of_other_rooms_are_not_found():
    tent = next(f for f in WORLD.faq if f.product == "p-704")
    assert call("get_faq", {"query": tent.question}, request("room-outdoor"))["id"] == tent.id
    error = None
    try:
        found = call("get_faq", {"query": tent.question}, request("room-beauty"))
    except ToolError as exc:
        error = exc
    assert error is not None or found["id"] != tent.id


def test_a_policy_names_what_holds_for_the_link():
    found = call("get_order_policy", {"topic": "returns", "link_id": 8}, request("room-style"))
    assert found["days"] == 7
    assert found["returns"] == "cannot be returned"


def test_moving_a_product_answers_from_the_request_alone():
    made = request(current_link=2)
    first = call("change_presentation_order", {"link_id": 5}, made)
    again = call("change_presentation_order", {"link_id": 5}, made)
    assert first == again
    assert first["moved"]
    assert first["previous_link"] == 2
    assert not first["already_current"]
    assert call("get_room_status", {}, made)["current_link"] == 2


def test_nothing_is_moved_after_the_live_has_ended():
    ended = request(current_link=2, status="ended")
    assert refused("change_presentation_order", {"link_id": 5}, ended).kind == "denied"


def test_the_room_status_lists_links_and_what_is_presented():
    found = call("get_room_status", {}, request("room-tech", current_link=3))
    assert found["current_name"] == "20000 mAh Power Bank"
    assert [p["link_id"] for p in found["products"]] == list(range(1, 11))


def test_rollouts_side_by_side_get_the_same_answers():
    async def many():
        calls = [
            SANDBOX.call(
                Tool(name="get_product_info_by_link_id"), {"link_id": 1 + n % 3}, request()
            )
            for n in range(30)
        ]
        return await asyncio.gather(*calls)

    results = asyncio.run(many())
    assert len({r.content for r in results}) == 3


def test_a_renamed_tool_still_runs_under_its_operation():
    tool = Tool(name="room_info", meta={"harness.operation": "get_room_status"})
    assert asyncio.run(SANDBOX.call(tool, {}, request())).structured["room_id"] == "room-beauty"
