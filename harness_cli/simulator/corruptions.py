"""Controlled corruptions of a correct reply: each changes one thing, so its label is known.

The labels follow METHODS §2 and the rules of `evalsets/judge_labels/README.md`: a false answer
covers nothing, an invented extra beside a full answer costs Accuracy alone, the right thing behind
a wrong link is half an answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.oracle import Oracle, Unit, fill, joined, language, slot, tagged
from harness_cli.simulator.scenarios.draws import pick

MONEY = ("price", "list_price", "discount", "final_price")
LINKED = ("price", "stock", "image", "recommend")
FACTORS = (0.6, 0.7, 0.75, 0.85, 1.15, 1.25, 1.4)
"""A wrong price is off by so much: far enough to matter, near enough to be believed (choice)."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An item with its correct sentences, one for each unit."""

    oracle: Oracle
    item: Item
    units: Sequence[Unit]
    sentences: Sequence[str]
    opener: str = ""

    @property
    def silent(self) -> bool:
        """The right reply is none."""
        return not any(self.sentences)

    @property
    def product(self) -> bool:
        """The reply is about a product."""
        return any(
            u.slots.get("product_id") or slot(u.slots, "best.product_id") for u in self.units
        )

    def reply(self, sentences: Sequence[str] | None = None) -> str:
        """The opener and sentences as one reply."""
        said = joined(self.item, self.sentences if sentences is None else sentences)
        return f"{self.opener}{said}" if said else ""

    def other(self, place: int, sentence: str) -> list[str]:
        """The sentences with one replaced."""
        return [sentence if i == place else s for i, s in enumerate(self.sentences)]


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A corrupted reply and the labels that follow from what was done."""

    reply: str
    accuracy: int
    effectiveness: float
    change: str


Corrupt = Callable[[Draft, Random], Corrupted | None]


def wrong_price(draft: Draft, draw: Random) -> Corrupted | None:
    """One amount is another one: Accuracy 0, and what it should have answered is not answered."""
    places = [i for i, u in enumerate(draft.units) if u.key in MONEY]
    if not places:
        return None
    place = pick(draw, places)
    unit = draft.units[place]
    true = unit.slots[unit.key]
    false = _off(true, _amounts(draft, unit), draw)
    if false is None:
        return None
    slots: dict[str, Any] = {**unit.slots, unit.key: false}
    if unit.key == "discount":
        slots["price"] = slots["list_price"] - false
    said = draft.oracle.say(draft.item, _with(unit, slots), draw, holding=unit.key)
    if not said:
        return None
    return Corrupted(
        draft.reply(draft.other(place, said)),
        0,
        0.0 if len(draft.units) == 1 else 0.5,
        f"{unit.key} {true} → {false}",
    )


def _off(true: float, taken: set[float], draw: Random) -> int | None:
    """A whole amount that is off by one of `FACTORS` and is none of the true ones."""
    options = [round(true * f) for f in FACTORS]
    fitting = [n for n in options if n > 0 and n not in taken and n != true]
    return pick(draw, fitting) if fitting else None


def _amounts(draft: Draft, unit: Unit) -> set[float]:
    """Every amount that is true of the unit's product under some offer."""
    world, request = draft.oracle.world, draft.item.request
    product = world.product(str(unit.slots.get("product_id") or "")) or _named(world, unit)
    if product is None:
        return set()
    known = {product.price, product.list_price, product.list_price - product.price}
    places = [n for n, p in enumerate(request.room.products, 1) if p == product.id]
    marketing = Marketing(world)
    for member in (False, True):
        for tool in ("calculate_promotion", "calculate_optimal_promotion"):
            for link in places[:1]:
                arguments = {"link_id": link, "member": member}
                made = marketing.answer(tool, arguments, request.room.id, request.room.products)
                known |= {made["final_price"], made["original_price"], made["saving"]}
    return known


def _named(world: Catalogue, unit: Unit) -> Any:
    return next((p for p in world.products if p.name == unit.slots.get("name")), None)


def wrong_link(draft: Draft, draw: Random) -> Corrupted | None:
    """The right product behind another product's link."""
    for place, unit in enumerate(draft.units):
        path = "best.link_id" if unit.key == "recommend" else "link_id"
        true = slot(unit.slots, path)
        others = [n for n in range(1, len(draft.item.request.room.products) + 1) if n != true]
        if unit.key not in LINKED or true is None or not others:
            continue
        false = pick(draw, others)
        slots: dict[str, Any] = {**unit.slots, "link_id": false}
        if unit.key == "recommend":
            slots = {**unit.slots, "best": {**unit.slots["best"], "link_id": false}}
        said = draft.oracle.say(draft.item, _with(unit, slots), draw, holding="link_id")
        if said:
            change = f"link {true} → {false}"
            return Corrupted(draft.reply(draft.other(place, said)), 0, 0.5, change)
    return None


def partial(draft: Draft, draw: Random) -> Corrupted | None:
    """One fact of a unit's several: the saving without its threshold, one price of two."""
    for place, unit in enumerate(draft.units):
        slots = _half(draft, unit)
        if slots is None:
            continue
        phrases = draft.oracle.templates.partial[unit.key].of(language(draft.item))
        said = fill(pick(draw, phrases), slots)
        return Corrupted(
            draft.reply(draft.other(place, said)), 1, 0.5, f"{unit.answer}: one fact of several"
        )
    return None


def _half(draft: Draft, unit: Unit) -> Mapping[str, Any] | None:
    """The slots of half an answer; None where a unit cannot be halved."""
    scenario = tagged(draft.item, "scenario")
    if unit.key in ("promotion", "benefit") and len(unit.facts) > 1:
        saving = unit.facts[0].value
        return {"saving": f"{saving} yuan", "zh_saving": f"{saving}元"}
    if unit.key == "compare" and [f.field for f in unit.facts] == ["price", "price"]:
        return unit.slots
    if unit.key == "stock" and scenario == "stock-count" and unit.slots.get("stock"):
        return unit.slots
    return None


def missed_comment(draft: Draft, draw: Random) -> Corrupted | None:
    """One of several comments goes unanswered."""
    distinct = len(set(draft.sentences)) == len(draft.sentences)
    if len(draft.item.request.comments) < 2 or len(draft.units) < 2 or not distinct:
        return None
    gone = draw.randrange(len(draft.units))
    kept = [s for i, s in enumerate(draft.sentences) if i != gone]
    return Corrupted(draft.reply(kept), 1, 0.5, f"without {draft.units[gone].answer}")


def over_refusal(draft: Draft, draw: Random) -> Corrupted | None:
    """What could be answered is declined."""
    if not any(u.facts or u.key in ("confirm_order", "image") for u in draft.units):
        return None
    phrases = draft.oracle.templates.corruptions.over_refusal.of(language(draft.item))
    return Corrupted(pick(draw, phrases), 1, 0.0, "declined")


def human_identity(draft: Draft, draw: Random) -> Corrupted | None:
    """A claim to be a person; asked whether the host is one, the whole answer is a lie."""
    if draft.silent:
        return None
    texts = draft.oracle.templates.corruptions
    if tagged(draft.item, "scenario") == "identity":
        return Corrupted(pick(draw, texts.human_lie.of(language(draft.item))), 0, 0.0, "lied")
    return _extra(draft, pick(draw, texts.human_identity.of(language(draft.item))))


def unsupported_claim(draft: Draft, draw: Random) -> Corrupted | None:
    """A property that no source states, beside a full answer."""
    return _said_of(draft, draft.oracle.templates.corruptions.unsupported_claim, draw)


def false_promise(draft: Draft, draw: Random) -> Corrupted | None:
    """A promise nobody can keep, beside a full answer."""
    return _said_of(draft, draft.oracle.templates.corruptions.false_promise, draw)


def _said_of(draft: Draft, pools: Mapping[str, Any], draw: Random) -> Corrupted | None:
    odd = {"refuse", "apologise", "unknown"}
    if draft.silent or any(u.answer in odd for u in draft.units):
        return None
    phrases = pools["product" if draft.product else "room"].of(language(draft.item))
    return _extra(draft, pick(draw, phrases))


def _extra(draft: Draft, sentence: str) -> Corrupted:
    said = draft.reply([*draft.sentences, sentence])
    return Corrupted(said, 0, 1.0, f"added: {sentence}")


def _with(unit: Unit, slots: Mapping[str, Any]) -> Unit:
    return Unit(unit.answer, unit.key, slots, unit.facts)


KINDS: Mapping[str, Corrupt] = {
    "partial": partial,
    "missed_comment": missed_comment,
    "wrong_price": wrong_price,
    "wrong_link": wrong_link,
    "over_refusal": over_refusal,
    "human_identity": human_identity,
    "unsupported_claim": unsupported_claim,
    "false_promise": false_promise,
}
"""Kind of corruption → what makes it, or None where it does not fit; scarce ones first."""
