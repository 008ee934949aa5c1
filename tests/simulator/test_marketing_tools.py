"""The four marketing tools as functions of a catalogue, a room and arguments."""

from pathlib import Path

import pytest

from harness_cli.errors import ToolError
from harness_cli.harness.tools import value_errors
from harness_cli.records.catalogue import Catalogue, LiveRoom, Product, Promotion
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.marketing_tools import TOOLS
from harness_cli.store.catalogue import read_catalogue

SHIPPED = Path(__file__).parents[2] / "evalsets" / "catalogue"


def product(name, price):
    return Product(id=name, name=name, zh_name=f"中{name}", category="x", price=price, list_price=1)


def offer(name, kind, amount=0.0, threshold=0.0, **more):
    settings = {"room": "r", "starts": "2026-11-01", "ends": "2026-11-30", **more}
    return Promotion(
        id=name,
        name=f"{name} offer",
        zh_name=f"{name}优惠",
        kind=kind,
        amount=amount,
        threshold=threshold,
        **settings,
    )


WORLD = Catalogue(
    snapshot="2026-11-20",
    products=(product("serum", 120), product("soap", 19.9), product("cream", 200)),
    rooms=(LiveRoom(id="r", name="R", host="H", products=("serum", "soap")),),
    promotions=(
        offer("full", "full_reduction", 30, 200, stackable=True),
        offer("coupon", "coupon", 10, 99, stackable=True),
        offer("serum-gift", "gift", gift="two face washes", products=("serum",)),
        offer("member", "member", 50, 0, member_only=True),
        offer("ship", "shipping", 0, 49),
        offer("old", "full_reduction", 100, 600, ends="2026-11-12"),
        offer("soon", "percent", 40, starts="2026-11-25"),
        offer("elsewhere", "percent", 90, room="other"),
    ),
)
MARKETING = Marketing(WORLD)


def ask(tool, room="r", products=(), **arguments):
    return MARKETING.answer(tool, arguments, room, products)


def ids(cards):
    return [c["id"] for c in cards]


def test_what_runs_in_a_room_and_what_has_ended():
    found = ask("get_campaign_conditions")
    assert ids(found["campaigns"]) == ["full", "coupon", "serum-gift", "member", "ship"]
    assert ids(found["ended"]) == ["old"]
    assert ids(found["upcoming"]) == ["soon"]
    assert found["summary"] == (
        "30 yuan off for orders from 200 yuan; a 10 yuan coupon for orders from 99 yuan; "
        "two face washes as a gift (serum-gift offer); free shipping for orders from 49 yuan"
    )
    assert found["zh_summary"].startswith("full优惠（满200元可用）；coupon优惠（满99元可用）")


def test_conditions_of_one_link_and_of_one_kind():
    assert "serum-gift" not in ids(ask("get_campaign_conditions", link_id=2)["campaigns"])
    found = ask("get_campaign_conditions", kind="coupon", link_id=1)
    assert (ids(found["campaigns"]), found["name"]) == (["coupon"], "serum")


def test_nothing_runs_in_a_room_without_offers():
    found = ask("get_campaign_conditions", room="quiet", products=("cream",))
    assert (found["count"], found["summary"], found["zh_summary"]) == (0, "", "")


def test_benefits_are_what_members_get_first():
    found = ask("get_buyer_benefits")
    assert ids(found["member_benefits"]) == ["member"]
    assert ids(found["coupons"]) == ["coupon"]
    assert found["summary"] == "50 percent off for members"


@pytest.mark.parametrize(
    ("tool", "arguments", "final", "applied"),
    [
        ("calculate_promotion", {"link_id": 1}, 120, []),
        ("calculate_promotion", {"link_id": 1, "quantity": 2}, 210, ["full"]),
        ("calculate_promotion", {"link_id": 1, "offers": ["coupon"]}, 110, ["coupon"]),
        ("calculate_promotion", {"link_id": 1, "offers": ["COUPON offer"]}, 110, ["coupon"]),
        ("calculate_promotion", {"link_id": 1, "offers": ["coupon优惠"]}, 110, ["coupon"]),
        (
            "calculate_promotion",
            {"link_id": 1, "offers": ["member"], "member": True},
            60,
            ["member"],
        ),
        ("calculate_optimal_promotion", {"link_id": 1}, 110, ["coupon"]),
        ("calculate_optimal_promotion", {"link_id": 1, "quantity": 2}, 200, ["coupon", "full"]),
        ("calculate_optimal_promotion", {"link_id": 1, "member": True}, 60, ["member"]),
        ("calculate_optimal_promotion", {"link_id": 2, "quantity": 3}, 59.7, []),
        (
            "calculate_optimal_promotion",
            {"items": [{"link_id": 1}, {"link_id": 2, "quantity": 5}]},
            179.5,
            ["coupon", "full"],
        ),
    ],
)
def test_prices(tool, arguments, final, applied):
    found = ask(tool, **arguments)
    assert found["final_price"] == final
    assert ids(found["applied"]) == applied
    assert round(found["original_price"] - found["saving"], 2) == final


def test_a_price_names_the_order_its_gifts_and_what_is_missing_for_the_next_offer():
    found = ask("calculate_optimal_promotion", link_id=1)
    assert (found["name"], found["zh_name"]) == ("serum", "中serum")
    assert found["gifts"] == ["two face washes"]
    assert found["free_shipping"] is True
    assert found["member_price"] == 60
    assert (found["next_offer"]["id"], found["next_offer"]["missing"]) == ("full", 80)
    assert found["summary"] == "110 yuan with coupon offer"
    two = ask("calculate_optimal_promotion", items=[{"link_id": 1, "quantity": 2}, {"link_id": 2}])
    assert two["name"] == "2 pieces of serum and soap"
    assert two["zh_name"] == "2件中serum加中soap"


def test_the_same_link_twice_is_one_line():
    found = ask("calculate_promotion", items=[{"link_id": 1}, {"link_id": 1}])
    assert [(i["link_id"], i["quantity"]) for i in found["items"]] == [(1, 2)]


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "said"),
    [
        ("calculate_promotion", {"link_id": 3}, "not_found", "links 1 to 2"),
        ("calculate_promotion", {}, "invalid_arguments", "link_id"),
        ("calculate_promotion", {"link_id": 1, "offers": ["full"]}, "denied", "does not reach"),
        ("calculate_promotion", {"link_id": 1, "offers": ["old"]}, "not_found", "running:"),
        ("calculate_promotion", {"link_id": 1, "offers": ["member"]}, "denied", "members only"),
        (
            "calculate_promotion",
            {"link_id": 1, "offers": ["coupon", "member"], "member": True},
            "denied",
            "together",
        ),
        ("cancel_order", {}, "not_found", "cancel_order"),
    ],
)
def test_what_cannot_be_calculated_is_a_typed_error(tool, arguments, kind, said):
    with pytest.raises(ToolError, match=said) as caught:
        ask(tool, **arguments)
    assert caught.value.kind == kind


def test_the_links_of_the_request_win_over_those_of_the_catalogue():
    assert ask("calculate_promotion", products=("cream",), link_id=1)["name"] == "cream"


@pytest.mark.skipif(not SHIPPED.is_dir(), reason="the shipped catalogue is not there")
def test_every_answer_on_the_shipped_catalogue_fits_the_listed_schema():
    world = read_catalogue(SHIPPED)
    schemas = {t["name"]: t["outputSchema"] for t in TOOLS}
    for room in world.rooms:
        for tool, schema in schemas.items():
            for link in range(1, len(room.products) + 1):
                found = Marketing(world).answer(tool, {"link_id": link}, room.id)
                assert value_errors(schema, found) == []
                assert found.get("final_price", 0) <= found.get("original_price", 0)
