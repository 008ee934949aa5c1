"""The catalogue as a judge looks things up in it: cards, FAQ, policies, offers, found by words."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness_cli.judges.panel.pricing import running_offers
from harness_cli.records.catalogue import Catalogue, Faq, Product, Promotion

_WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
NEAR = 0.34
"""Share of the query's words from which an entry is listed."""


def product_card(world: Catalogue, product: Product, link: int | None, room: str) -> dict[str, Any]:
    """Everything the catalogue says of one product, with its reference."""
    stock = {s.variant or "all": s.units for s in world.stock if s.product == product.id}
    return {
        "ref": f"product:{product.id}",
        "product_id": product.id,
        "link": link,
        "name": product.name,
        "zh_name": product.zh_name,
        "category": product.category,
        "price": product.price,
        "list_price": product.list_price,
        "attributes": {
            a.name: {"value": a.value, "unit": a.unit, "zh": f"{a.zh_name} {a.zh_value}".strip()}
            for a in product.attributes
        },
        "variants": list(product.variants),
        "zh_variants": list(product.zh_variants),
        "units_on_hand": stock if stock else "not kept",
        "ships_within_hours": product.ship_within_hours,
        "ships_from": product.ship_from,
        "return_days": product.return_days,
        "warranty_months": product.warranty_months,
        "cautions": [*product.cautions, *product.zh_cautions],
        "offers": [offer_card(o) for o in running_offers(world, room, product.id)],
        "faq": [faq_card(f) for f in world.faq if f.product == product.id],
    }


def faq_card(entry: Faq) -> dict[str, Any]:
    """One FAQ entry."""
    return {
        "ref": f"faq:{entry.id}",
        "product": entry.product,
        "question": entry.question,
        "answer": entry.answer,
        "zh_question": entry.zh_question,
        "zh_answer": entry.zh_answer,
    }


def offer_card(offer: Promotion) -> dict[str, Any]:
    """One campaign, coupon or benefit."""
    return {
        "ref": f"offer:{offer.id}",
        "name": offer.name,
        "zh_name": offer.zh_name,
        "kind": offer.kind,
        "threshold": offer.threshold,
        "amount": offer.amount,
        "products": list(offer.products),
        "member_only": offer.member_only,
        "stackable": offer.stackable,
        "gift": offer.gift,
        "starts": offer.starts,
        "ends": offer.ends,
        "conditions": offer.conditions,
        "zh_conditions": offer.zh_conditions,
    }


def room_links(world: Catalogue, room: str, products: Sequence[str]) -> dict[str, int]:
    """Product id → link number, of the request's room or the catalogue's."""
    known = world.room(room)
    return {p: n for n, p in enumerate(products or (known.products if known else ()), 1)}


def nearest(query: str, texts: Iterable[tuple[str, Any]], *, most: int = 3) -> list[Any]:
    """The entries whose text holds most of the query's words, at least `NEAR` of them."""
    wanted = _pieces(query)
    if not wanted:
        return []
    scored = []
    for place, (text, entry) in enumerate(texts):
        share = len(wanted & _pieces(text)) / len(wanted)
        if share >= NEAR:
            scored.append((-share, place, entry))
    return [entry for _, _, entry in sorted(scored, key=lambda row: row[:2])[:most]]


def product_words(product: Product) -> str:
    """What a product is found by."""
    values = [f"{a.name} {a.value} {a.zh_name} {a.zh_value}" for a in product.attributes]
    parts = [product.id, product.name, product.zh_name, product.category, product.zh_category]
    return " ".join([*parts, *product.keywords, *values])


def faq_words(entry: Faq) -> str:
    """What an FAQ entry is found by."""
    return f"{entry.question} {entry.zh_question} {entry.answer} {entry.zh_answer}"


def _pieces(text: str) -> set[str]:
    """Words, and pairs of Chinese characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.lower()):
        if word[0] <= "z":
            found.add(word)
        else:
            found.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
    return found
