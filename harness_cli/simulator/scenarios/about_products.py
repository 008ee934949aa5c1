"""Builders of comments about one or two products of a room."""

from typing import NamedTuple

import msgspec

from harness_cli.records.catalogue import LiveRoom
from harness_cli.records.item import Assertion, ExpectedTool, Fact
from harness_cli.simulator.promotions import Line, best, running, yuan
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.facts import named, product_fact, variant_fact
from harness_cli.simulator.scenarios.pieces import (
    Ask,
    Piece,
    placed,
    right_call,
    used,
    value_assert,
)
from harness_cli.simulator.scenarios.setting import Place


def product(ask: Ask) -> Piece:
    """One fact about one product."""
    place = ask.place()
    scenario, shelf = ask.scenario, ask.scene.shelf
    facts = tuple(product_fact(f, place.product, shelf, ask.answer()) for f in scenario.facts)
    return placed(ask, place, facts, asserts=value_assert(facts))


def variant(ask: Ask) -> Piece:
    """Whether one colour, size or flavour is to be had."""
    where = [
        (room, link, product)
        for room, link, product in ask.scene.candidates(ask.scenario.needs, ask.room)
        if len(product.variants) > 1
    ]
    chosen = pick(ask.rng, where)
    place = ask.scene.point(ask.rng, chosen, ask.language, ask.kind)
    variant = pick(ask.rng, ask.scene.shelf.variants(place.product))
    wording = variant["zh_variant" if ask.language == "zh" else "variant"]
    fact = variant_fact(place.product, variant["stock"], ask.answer())
    shown = wording if ask.language == "zh" else wording.lower()
    return placed(ask, place, (fact,), variant=shown)


def wrong_price(ask: Ask) -> Piece:
    """A price that the viewer states wrongly."""
    place = ask.place()
    price, before = int(place.product.price), int(place.product.list_price)
    options = [price - 10, price - 20, price // 2 + 1, price + 10]
    wrong = pick(ask.rng, [p for p in options if p > 0 and p not in (price, before)])
    fact = product_fact("price", place.product, ask.scene.shelf, ask.answer())
    return placed(ask, place, (fact,), asserts=value_assert((fact,)), wrong=wrong)


def final(ask: Ask) -> Piece:
    """What one piece costs after every offer that comes without being a member."""
    where = []
    for room, link, product in ask.scene.candidates(ask.scenario.needs, ask.room):
        offers = running(ask.scene.world, room.id, product=product.id)
        price = best([Line(product)], offers)
        if price.saving:
            where.append((room, link, product, price))
    room, link, product, price = pick(ask.rng, where)
    place = ask.scene.point(ask.rng, (room, link, product), ask.language, ask.kind)
    value = yuan(price.final)
    fact = Fact(product=product.id, field="final_price", value=value, answer=ask.answer())
    made = placed(ask, place, (fact,))
    check = Assertion(type="icontains", value=str(value))
    return msgspec.structs.replace(made, asserts=(check,))


def switch(ask: Ask) -> Piece:
    """A wish to see another product than the one that is presented."""
    kind = ask.kind if ask.kind in ("link", "name") else "link"
    where = pick(ask.rng, ask.scene.candidates(ask.scenario.needs, ask.room))
    place = ask.scene.point(ask.rng, where, ask.language, kind)
    if place.current_link == place.link:
        other = ask.scene.other_link(ask.rng, place.room, place.link)
        place = Place(place.room, place.product, place.link, place.words, place.kind, other)
    return placed(ask, place, ())


class Pair(NamedTuple):
    """Two products of one room with different prices."""

    room: LiveRoom
    one: Place
    two: Place

    @property
    def links(self) -> list[int]:
        """Their link numbers, in the order they are named."""
        return [self.one.link, self.two.link]

    @property
    def cheaper(self) -> Place:
        """The one that costs less."""
        return min((self.one, self.two), key=lambda place: place.product.price)


def _pair(ask: Ask) -> Pair:
    room = pick(ask.rng, ask.scene.rooms(ask.room))
    links = list(enumerate(room.products, 1))
    products = ask.scene.shelf.products
    pairs = [
        (a, b)
        for a, left in links
        for b, right in links
        if a < b and products[left].price != products[right].price
    ]
    first, second = pick(ask.rng, pairs)
    if ask.rng.random() < 0.5:
        first, second = second, first
    kinds = [pick(ask.rng, ["link", "link", "name"]) for _ in range(2)]
    one, two = (
        ask.scene.point(ask.rng, (room, n, products[room.products[n - 1]]), ask.language, kind)
        for n, kind in zip((first, second), kinds, strict=True)
    )
    return Pair(room, one, two)


def compare(ask: Ask) -> Piece:
    """Two products of one room with different prices."""
    pair = _pair(ask)
    room, one, two = pair
    cheapest = pair.cheaper
    answer, shelf = ask.answer(), ask.scene.shelf
    if "both_prices" in ask.scenario.facts:
        facts = tuple(product_fact("price", p.product, shelf, answer) for p in (one, two))
    else:
        price = product_fact("price", cheapest.product, shelf, answer)
        facts = (named(cheapest.product, answer), price)
    family, template = ask.family()
    tools = tuple(
        ExpectedTool(name=t.name, arguments={"link_ids": pair.links}) for t in ask.scenario.tools
    )
    return Piece(
        scenario=ask.scenario,
        family=family.id,
        language=ask.language,
        text=template.format(a=one.words, b=two.words),
        room=room,
        current_link=pick(ask.rng, [None, 1]),
        tools=tools,
        facts=facts,
        asserts=used(tools),
    )


def cheaper(ask: Ask) -> Piece:
    """Something is done with the cheaper of two: which one that is has to be looked up first."""
    pair = _pair(ask)
    family, template = ask.family()
    look_up, act = ask.scenario.order
    link = {"link_id": pair.cheaper.link}
    dearer = next(n for n in pair.links if n != pair.cheaper.link)
    return Piece(
        scenario=ask.scenario,
        family=family.id,
        language=ask.language,
        text=template.format(a=pair.one.words, b=pair.two.words),
        room=pair.room,
        current_link=pick(ask.rng, [None, dearer]),
        tools=(
            ExpectedTool(name=look_up, arguments={"link_ids": pair.links}),
            ExpectedTool(name=act, arguments=link),
        ),
        asserts=(right_call(act, link),),
    )


def switch_if_there(ask: Ask) -> Piece:
    """A wish to see a product on the condition that it is in stock, which it is."""
    made = switch(ask)
    act = ask.scenario.order[-1]
    return msgspec.structs.replace(made, asserts=(right_call(act, {"link_id": made.link}),))
