"""Builders of comments about the room, the shop, an order, or about nothing in particular."""

from harness_cli.records.item import Assertion, ExpectedTool, Fact
from harness_cli.records.request import FaqEntry, RoomEvent
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.facts import keyed, named, offer_facts
from harness_cli.simulator.scenarios.pieces import Ask, Piece, plain_piece, used


def search(ask: Ask) -> Piece:
    """A wish without a link, which some products of the room satisfy."""
    want = ask.scenario.want
    if want is None:
        raise ValueError(f"`{ask.scenario.id}` has no want")
    room = ask.scene.rooms(ask.scenario.room)[0]
    shelf = ask.scene.shelf
    fitting = [
        p
        for p in (shelf.products[i] for i in want.products)
        if shelf.units(p) and (want.max_price is None or p.price <= want.max_price)
    ]
    arguments = {} if want.max_price is None else {"max_price": want.max_price}
    tools = (ExpectedTool(name="search_product_by_keyword", arguments=arguments),)
    fact = named(fitting[0], ask.answer(), fitting[1:])
    return plain_piece(ask, room, tools=tools, facts=(fact,), asserts=used(tools))


def plain(ask: Ask) -> Piece:
    """A comment that needs no product."""
    return plain_piece(ask, pick(ask.rng, ask.scene.rooms(ask.room or ask.scenario.room)))


def event(ask: Ask) -> Piece:
    """A viewer joins or orders, with few words or none."""
    room = pick(ask.rng, ask.scene.rooms(ask.room))
    product = pick(ask.rng, room.products) if ask.scenario.event == "order" else None
    kind = ask.scenario.event or "join"
    viewer = pick(ask.rng, ask.scene.context.viewers)
    return plain_piece(ask, room, events=(RoomEvent(viewer=viewer, kind=kind, product=product),))


def status(ask: Ask) -> Piece:
    """What is presented right now."""
    room = pick(ask.rng, ask.scene.rooms(ask.room))
    link = ask.scene.presented(ask.rng, room)
    product = ask.scene.shelf.products[room.products[link - 1]]
    check = Assertion(type="icontains-any", value=[product.name, product.zh_name])
    return plain_piece(ask, room, current_link=link, tools=ask.scenario.tools, asserts=(check,))


def vague(ask: Ask) -> Piece:
    """Nothing in the surroundings says which product is meant."""
    room = pick(ask.rng, ask.scene.rooms(ask.room or ask.scenario.room))
    return plain_piece(ask, room, current_link=None)


def policy(ask: Ask) -> Piece:
    """A request about an order, answered by a policy."""
    scenario = ask.scenario
    facts: tuple[Fact, ...] = ()
    tools: tuple[ExpectedTool, ...] = ()
    if scenario.keys.en:
        facts = (
            keyed(f"policy.{scenario.topic}", scenario.keys.en, scenario.keys.zh, ask.answer()),
        )
        tools = (ExpectedTool(name="get_order_policy", arguments={"topic": scenario.topic}),)
    room = pick(ask.rng, ask.scene.rooms(ask.room))
    return plain_piece(ask, room, tools=tools, facts=facts, asserts=used(tools))


def faq(ask: Ask) -> Piece:
    """A configured question; half of the time the entry travels with the request."""
    entry = next(f for f in ask.scene.world.faq if f.id == ask.scenario.entry)
    rooms = [
        r for r in ask.scene.world.rooms if entry.product is None or entry.product in r.products
    ]
    facts = (keyed(f"faq.{entry.id}", ask.scenario.keys.en, ask.scenario.keys.zh, ask.answer()),)
    shop = [f for f in ask.scene.world.faq if f.product is None and f.id != entry.id]
    given = ask.rng.random() < 0.5
    retrieved = [entry, pick(ask.rng, shop)] if given else []
    ask.rng.shuffle(retrieved)
    chinese = ask.language == "zh"
    faq = tuple(
        FaqEntry(
            id=f.id,
            question=f.zh_question if chinese else f.question,
            answer=f.zh_answer if chinese else f.answer,
            product=f.product,
        )
        for f in retrieved
    )
    tools = () if given else (ExpectedTool(name="get_faq"),)
    return plain_piece(ask, pick(ask.rng, rooms), faq=faq, tools=tools, facts=facts)


def promotion(ask: Ask) -> Piece:
    """A room in which exactly one campaign of the asked kind runs on the snapshot day."""
    options = []
    for room in ask.scene.rooms(ask.room):
        running = [
            p
            for p in ask.scene.world.promotions
            if p.kind == ask.scenario.offers
            and p.room == room.id
            and p.starts <= ask.scene.world.snapshot <= p.ends
        ]
        if len(running) == 1:
            options.append((room, running[0]))
    room, promotion = pick(ask.rng, options)
    facts = offer_facts(promotion, ask.answer())
    tools = ask.scenario.tools
    return plain_piece(ask, room, tools=tools, facts=facts, asserts=used(tools))
