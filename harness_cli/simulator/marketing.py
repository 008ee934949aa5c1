"""The four tools of the marketing service as plain functions of a catalogue, a room and arguments.

Amounts are yuan. Every result carries `summary` and `zh_summary`, which a host can say as they are.
"""

from collections.abc import Callable, Sequence
from typing import Any

from harness_cli.errors import ToolError
from harness_cli.records.catalogue import Catalogue, Product, Promotion
from harness_cli.simulator.promotions import (
    AUTOMATIC,
    Line,
    Quote,
    best,
    combinable,
    fitting,
    is_percent,
    quote,
    reached,
    running,
    runs,
    shortfall,
    yuan,
)

Arguments = dict[str, Any]
BENEFITS = ("member", "coupon", "shipping")


class Marketing:
    """Answers for one catalogue. `products` are those of the room, link n is the n-th."""

    def __init__(self, world: Catalogue) -> None:
        self.world = world

    def answer(
        self, tool: str, arguments: Arguments, room: str, products: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The result of a tool; raises `ToolError` for what it cannot answer."""
        known: dict[str, Callable[[_Room, Arguments], dict[str, Any]]] = {
            "get_campaign_conditions": _campaigns,
            "get_buyer_benefits": _benefits,
            "calculate_promotion": _calculate,
            "calculate_optimal_promotion": _optimal,
        }
        if tool not in known:
            raise ToolError.of("not_found", f"no tool named `{tool}`")
        return known[tool](_Room(self.world, room, tuple(products)), arguments)


class _Room:
    """A room's offers and links."""

    def __init__(self, world: Catalogue, room: str, products: tuple[str, ...]) -> None:
        configured = world.room(room)
        self.world = world
        self.id = room
        self.links = products or (configured.products if configured else ())

    def product(self, link_id: int) -> Product:
        """The product of a link."""
        if not 1 <= link_id <= len(self.links):
            raise ToolError.of(
                "not_found",
                f"there is no link {link_id}; this room has links 1 to {len(self.links)}",
            )
        found = self.world.product(self.links[link_id - 1])
        if found is None:
            raise ToolError.of("not_found", f"link {link_id} is not in the catalogue")
        return found

    def lines(self, arguments: Arguments) -> list[Line]:
        """The order that is asked about: `items`, or one link and a quantity."""
        items = arguments.get("items") or [arguments]
        if any("link_id" not in item for item in items):
            raise ToolError.of("invalid_arguments", "`link_id` or `items` is needed")
        counted: dict[str, int] = {}
        for item in items:
            product = self.product(item["link_id"])
            counted[product.id] = counted.get(product.id, 0) + int(item.get("quantity", 1))
        return [Line(p, n) for i, n in counted.items() if (p := self.world.product(i))]

    def running(self, link_id: int | None = None) -> list[Promotion]:
        """Offers that run now, for a link where one is given."""
        product = None if link_id is None else self.product(link_id).id
        return running(self.world, self.id, product=product)


def _campaigns(room: _Room, arguments: Arguments) -> dict[str, Any]:
    """Conditions of what runs, and of what has ended or not begun."""
    link, kind = arguments.get("link_id"), arguments.get("kind")
    offers = [o for o in room.running(link) if kind in (None, o.kind)]
    product = None if link is None else room.product(link).id
    day = room.world.snapshot
    others = [o for o in fitting(room.world, room.id, product=product) if runs(o, day)]
    public = [o for o in offers if not o.member_only or kind == "member"]
    return {
        **_named(room, link),
        "count": len(offers),
        "campaigns": [card(o) for o in offers],
        "ended": [card(o) for o in others if runs(o, day) > 0],
        "upcoming": [card(o) for o in others if runs(o, day) < 0],
        **spoken(public or offers),
    }


def _benefits(room: _Room, arguments: Arguments) -> dict[str, Any]:
    """What a buyer can have for themselves: member benefits, coupons, free shipping."""
    link = arguments.get("link_id")
    offers = [o for kind in BENEFITS for o in room.running(link) if o.kind == kind]
    members = [o for o in offers if o.member_only]
    return {
        **_named(room, link),
        "count": len(offers),
        "member_benefits": [card(o) for o in members],
        "coupons": [card(o) for o in offers if o.kind == "coupon"],
        "free_shipping": [card(o) for o in offers if o.kind == "shipping"],
        **spoken(members or offers),
    }


def _calculate(room: _Room, arguments: Arguments) -> dict[str, Any]:
    """The order under the offers that are named, or under those that apply by themselves."""
    lines, member = room.lines(arguments), bool(arguments.get("member"))
    offers = room.running()
    named = arguments.get("offers") or []
    if not named:
        automatic = [o for o in offers if o.kind in AUTOMATIC or o.gift or o.kind == "shipping"]
        return _priced(room, lines, best(lines, automatic, member=member), offers, member)
    chosen = [_offer(offers, name) for name in named]
    for offer in chosen:
        if offer.member_only and not member:
            raise ToolError.of("denied", f"`{offer.name}` is for members only")
        if not reached(lines, offer):
            raise ToolError.of(
                "denied", f"this order does not reach `{offer.name}`: {offer.conditions}"
            )
    if not combinable([o for o in chosen if o.amount]):
        names = ", ".join(f"`{o.name}`" for o in chosen)
        raise ToolError.of("denied", f"{names} cannot be used together")
    made = quote(
        lines,
        [o for o in chosen if o.amount],
        extras=[o for o in chosen if not o.amount],
    )
    return _priced(room, lines, made, offers, member)


def _optimal(room: _Room, arguments: Arguments) -> dict[str, Any]:
    """The cheapest combination of all offers, coupons included."""
    lines, member = room.lines(arguments), bool(arguments.get("member"))
    offers = room.running()
    return _priced(room, lines, best(lines, offers, member=member), offers, member)


def _priced(
    room: _Room, lines: list[Line], made: Quote, offers: list[Promotion], member: bool
) -> dict[str, Any]:
    """A quote as a result; the member's price beside it where that is lower."""
    result: dict[str, Any] = {
        "name": " and ".join(_counted(ln) for ln in lines),
        "zh_name": "加".join(_zh_counted(ln) for ln in lines),
        "items": [
            {
                "link_id": room.links.index(ln.product.id) + 1,
                "name": ln.product.name,
                "quantity": ln.quantity,
                "price": yuan(ln.cents),
            }
            for ln in lines
        ],
        "original_price": yuan(made.original),
        "final_price": yuan(made.final),
        "saving": yuan(made.saving),
        "applied": [{**card(a.offer), "saving": yuan(a.saving)} for a in made.applied],
        "gifts": [o.gift for o in made.extras if o.gift],
        "free_shipping": any(o.kind == "shipping" for o in made.extras),
        "member": member,
    }
    cheaper = best(lines, offers, member=True)
    if not member and cheaper.final < min(made.final, best(lines, offers).final):
        result["member_price"] = yuan(cheaper.final)
    near = shortfall(lines, [o for o in offers if member or not o.member_only])
    if near is not None:
        offer, gap = near
        result["next_offer"] = {**card(offer), "missing": yuan(gap)}
    return {**result, **_spoken_price(result)}


def _counted(line: Line) -> str:
    name = line.product.name
    return name if line.quantity == 1 else f"{line.quantity} pieces of {name}"


def _zh_counted(line: Line) -> str:
    name = line.product.zh_name or line.product.name
    return name if line.quantity == 1 else f"{line.quantity}件{name}"


def _spoken_price(result: dict[str, Any]) -> dict[str, str]:
    used = ", ".join(a["name"] for a in result["applied"])
    zh_used = "、".join(a["zh_name"] or a["name"] for a in result["applied"])
    final = result["final_price"]
    return {
        "summary": f"{final} yuan" + (f" with {used}" if used else ""),
        "zh_summary": f"{final}元" + (f"（{zh_used}）" if zh_used else ""),
    }


def _offer(offers: list[Promotion], name: str) -> Promotion:
    """A running offer by id or by either of its names."""
    wanted = name.strip().casefold()
    for offer in offers:
        if wanted in (offer.id.casefold(), offer.name.casefold(), offer.zh_name.casefold()):
            return offer
    known = ", ".join(f"`{o.name}`" for o in offers)
    raise ToolError.of("not_found", f"no offer `{name}` runs; running: {known or 'none'}")


def _named(room: _Room, link: int | None) -> dict[str, Any]:
    if link is None:
        return {"room": room.id}
    product = room.product(link)
    return {"room": room.id, "link_id": link, "name": product.name, "zh_name": product.zh_name}


def card(offer: Promotion) -> dict[str, Any]:
    """An offer's conditions."""
    return {
        "id": offer.id,
        "name": offer.name,
        "zh_name": offer.zh_name,
        "kind": offer.kind,
        "threshold": whole(offer.threshold),
        "amount": whole(offer.amount),
        "unit": "percent" if is_percent(offer) else "yuan",
        "gift": offer.gift,
        "members_only": offer.member_only,
        "stackable": offer.stackable,
        "starts": offer.starts,
        "ends": offer.ends,
        "conditions": offer.conditions,
        "zh_conditions": offer.zh_conditions,
    }


def spoken(offers: Sequence[Promotion]) -> dict[str, str]:
    """What runs, as a host says it: the saving and its condition together."""
    return {
        "summary": "; ".join(_phrase(o) for o in offers),
        "zh_summary": "；".join(_zh_phrase(o) for o in offers),
    }


def _phrase(offer: Promotion) -> str:
    amount, threshold = whole(offer.amount), whole(offer.threshold)
    if offer.gift:
        saving = f"{offer.gift} as a gift"
    elif offer.kind == "shipping":
        saving = "free shipping"
    elif is_percent(offer):
        saving = f"{amount} percent off"
    else:
        saving = f"{amount} yuan off"
    if offer.kind == "coupon":
        saving = f"a {amount} yuan coupon"
    text = f"{saving} for orders from {threshold} yuan" if threshold else saving
    if offer.products:
        text += f" ({offer.name})"
    return f"{text} for members" if offer.member_only else text


def _zh_phrase(offer: Promotion) -> str:
    """The Chinese name tells saving and condition; the conditions follow where it does not."""
    threshold = whole(offer.threshold)
    name = offer.zh_name or offer.name
    text = name
    if threshold and str(threshold) not in name:
        text = f"{name}（满{threshold}元可用）"
    if offer.gift:
        text = f"{name}（{offer.zh_conditions.rstrip('。')}）"
    return text if "会员" in text or not offer.member_only else f"会员{text}"


def whole(amount: float) -> float | int:
    """20 for 20.0: numbers as they are said."""
    return int(amount) if amount == int(amount) else amount
