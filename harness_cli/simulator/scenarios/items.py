"""Items of `live_stream_qa`: intent mix of TR Table 1, noise, groups, languages, both splits."""

import random
from collections.abc import Mapping, Sequence

import msgspec

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Assertion, Expect, ExpectedTool, Item
from harness_cli.records.request import Comment, Request, Room
from harness_cli.simulator.scenarios.builders import build
from harness_cli.simulator.scenarios.draws import generator, pick, shares, spread
from harness_cli.simulator.scenarios.library import Library, Noise, Scenario
from harness_cli.simulator.scenarios.noise import noisy
from harness_cli.simulator.scenarios.pieces import Ask, Piece
from harness_cli.simulator.scenarios.setting import REFERENCES, Scene

MIX = {
    "product-qa": 46.0,
    "chat": 19.0,
    "clarification": 16.0,
    "after-sales": 7.0,
    "promotion": 4.0,
    "presentation-order": 2.0,
    "faq": 2.0,
    "refusal": 0.8,
}
"""TR Table 1 in per cent; `<1 %` is taken as 0.8 (choice). They sum to 96.8 and are rescaled."""
SIZES = {"dev": 482, "test": 978}
"""TR §4.1: the calibration set and the Live-Stream QA test set."""
CHINESE = 0.4
NOISY = 0.25
PRIVATE = 0.07
GROUPS = {"product-qa": 0.16, "after-sales": 0.1, "promotion": 0.1, "faq": 0.1}
"""Share of a category's items that hold several comments."""
_QUIET = ("refusal",)
_TRIES = 60
_FRESH = 40
"""Tries for a wording that the split does not have yet; after them another room is enough."""


def make_items(
    library: Library,
    world: Catalogue,
    split: str,
    *,
    seed: int,
    total: int,
    prefix: str = "lsq",
    mix: Mapping[str, float] = MIX,
) -> list[Item]:
    """`total` items of one split in a mix of categories, shuffled, with ids in that order."""
    scene = Scene(world, library.context, split)
    drafts: list[Item] = []
    seen: set[str] = set()
    for category, count in shares(mix, total).items():
        drafts += _of_category(library, scene, category, count, seed, seen)
    generator(seed, split, prefix, "order").shuffle(drafts)
    offset = 0 if split == "dev" else SIZES["dev"]
    return [
        msgspec.structs.replace(item, id=f"{prefix}-{n:04d}", split=split)
        for n, item in enumerate(drafts, offset + 1)
    ]


def _of_category(
    library: Library, scene: Scene, category: str, count: int, seed: int, seen: set[str]
) -> list[Item]:
    rng = generator(seed, scene.split, category)
    scenarios = {s.id: s for s in library.of(category)}
    plan = _replaced(
        spread({s.id: float(s.weight) for s in scenarios.values() if s.weight}, count, rng),
        scenarios,
        scene.split,
    )
    languages = spread({"en": 1 - CHINESE, "zh": CHINESE}, count, rng)
    kinds = spread(REFERENCES, count, rng)
    grouped = spread(_yes_no(GROUPS.get(category, 0.0)), count, rng)
    spoiled = spread(_yes_no(0.0 if category in _QUIET else NOISY), count, rng)
    made = []
    for n, name in enumerate(plan):
        for attempt in range(_TRIES):
            ask = Ask(
                scenario=scenarios[name],
                scene=scene,
                language=languages[n],
                rng=generator(seed, scene.split, category, n, attempt),
                kind=kinds[n],
            )
            item = _item(library, ask, grouped[n] == "yes", spoiled[n] == "yes")
            if not seen & {_wording(item) if attempt < _FRESH else _key(item)}:
                break
        seen |= {_key(item), _wording(item)}
        made.append(item)
    return made


def _replaced(plan: list[str], scenarios: Mapping[str, Scenario], split: str) -> list[str]:
    """The plan with the scenarios in it that stand `instead` of occurrences of another."""
    made = list(plan)
    for scenario in scenarios.values():
        for taken in scenario.instead:
            places = [n for n, name in enumerate(plan) if name == taken.of]
            for k in taken.at(split):
                if k < len(places):
                    made[places[k]] = scenario.id
    return made


def _yes_no(share: float) -> dict[str, float]:
    return {"no": 1 - share, "yes": share}


def _wording(item: Item) -> str:
    return "|".join(c.text for c in item.request.comments)


def _key(item: Item) -> str:
    request = item.request
    texts = _wording(item)
    room = request.room
    return f"{texts}/{room.id}/{room.current_link}/{request.anchor}/{request.history}"


def _item(library: Library, ask: Ask, grouped: bool, spoiled: bool) -> Item:
    pieces = [build(ask)]
    tags: list[str] = []
    alone = pieces[0].scenario.build in ("event", "search", "compare") or ask.scenario.order
    if grouped and not alone:
        pieces += _companions(library, ask, pieces[0])
    noise = library.context.noise
    worded = any(letter.isalpha() for letter in pieces[0].text)
    spoil = spoiled and worded and "injection" not in ask.scenario.tags
    texts = [_worded(p, noise, ask.rng, spoil) for p in pieces]
    if spoil:
        tags.append("noisy")
    channel = "private" if _private(ask, pieces) else "public"
    if channel == "private":
        tags.append("private")
    return _assembled(ask, pieces, texts, channel, tags)


def _worded(piece: Piece, noise: Noise, rng: random.Random, spoil: bool) -> str:
    return noisy(piece.text, piece.language, noise, rng) if spoil and piece.text else piece.text


def _private(ask: Ask, pieces: Sequence[Piece]) -> bool:
    open_only = ask.scenario.category in ("refusal", "presentation-order")
    events = any(p.events for p in pieces)
    return not open_only and not events and len(pieces) == 1 and ask.rng.random() < PRIVATE


def _companions(library: Library, ask: Ask, first: Piece) -> list[Piece]:
    """One or two more comments of the same room: other questions, the same one again, chatter."""
    rng = ask.rng
    how = pick(rng, ["other", "other", "same", "chatter", "three"])
    if how == "chatter":
        return [_chatter(library, ask, first)]
    if how == "same":
        return [_again(ask, first)]
    more = [_other_question(library, ask, first, taken=first.scenario.answers)]
    if how == "three":
        taken = (*first.scenario.answers, *more[0].scenario.answers)
        more.append(_other_question(library, ask, first, taken=taken))
    return more


def _other_question(library: Library, ask: Ask, first: Piece, *, taken: Sequence[str]) -> Piece:
    """A product question with another answer; it names its link or product, never `this one`."""
    fitting = [
        s
        for s in library.of("product-qa")
        if s.build in ("product", "variant")
        and not set(s.answers) & set(taken)
        and not {"adversarial", "unanswerable"} & set(s.tags)
        and s.answers[0] != "image"
        and _askable(ask.scene, s, first.room.id)
    ]
    scenario = pick(ask.rng, fitting)
    kind = pick(ask.rng, ["link", "link", "name"])
    return build(msgspec.structs.replace(ask, scenario=scenario, kind=kind, room=first.room.id))


def _askable(scene: Scene, scenario: Scenario, room: str) -> bool:
    found = scene.candidates(scenario.needs, room)
    if scenario.build == "variant":
        found = [entry for entry in found if len(entry[2].variants) > 1]
    return bool(found)


def _again(ask: Ask, first: Piece) -> Piece:
    """The same question of another viewer, in other words where the library has some."""
    split = ask.scene.split
    templates = [
        t
        for family in first.scenario.families
        if family.split == split
        for t in (family.zh if first.language == "zh" else family.en)
        if t.format(**first.slots) != first.text
    ]
    text = pick(ask.rng, templates).format(**first.slots) if templates else first.text
    return msgspec.structs.replace(first, text=text, tools=(), facts=(), asserts=(), tags=())


def _chatter(library: Library, ask: Ask, first: Piece) -> Piece:
    text = pick(ask.rng, library.context.chatter[ask.scene.split].of(ask.language))
    blank = msgspec.structs.replace(first, text=text, tools=(), facts=(), asserts=(), tags=())
    empty = msgspec.structs.replace(ask.scenario, answers=(), skills=(), forbidden=(), tags=())
    return msgspec.structs.replace(blank, scenario=empty, link=None)


def _assembled(
    ask: Ask, pieces: Sequence[Piece], texts: Sequence[str], channel: str, tags: list[str]
) -> Item:
    first, rng = pieces[0], ask.rng
    multi = len(pieces) > 1
    viewers = rng.sample(ask.scene.context.viewers, len(pieces))
    start = float(rng.randrange(300, 5000))
    comments = tuple(
        Comment(viewer=viewer, text=text, at=start + 2.0 * n)
        for n, (viewer, text) in enumerate(zip(viewers, texts, strict=True))
        if text
    )
    request = Request(
        channel="private" if channel == "private" else "public",
        comments=comments,
        anchor=first.anchor,
        room=Room(id=first.room.id, current_link=first.current_link, products=first.room.products),
        faq=first.faq,
        history=first.history,
        events=first.events,
        mode="multi" if multi else "single",
    )
    scenario = first.scenario
    tags += [*scenario.tags, *(t for p in pieces for t in p.tags), ask.language]
    if multi:
        tags.append("multi")
    return Item(
        id="",
        category=scenario.category,
        mode=request.mode,
        request=request,
        expect=expectations(pieces, multi),
        assert_=assertions(pieces),
        tags=tuple(sorted({*tags, f"scenario:{scenario.id}", f"family:{first.family}"})),
    )


def expectations(pieces: Sequence[Piece], multi: bool) -> Expect:
    """What a good answer to all of the pieces does."""
    skills = [s for p in pieces for s in p.scenario.skills]
    if multi:
        skills.append("tool-strategy-multi")
    tools: list[ExpectedTool] = []
    for tool in (t for p in pieces for t in p.tools):
        if tool not in tools:
            tools.append(tool)
    return Expect(
        skills=tuple(dict.fromkeys(skills)),
        tools=tuple(tools),
        order=pieces[0].scenario.order,
        facts=tuple(f for p in pieces for f in p.facts),
        forbidden=tuple(dict.fromkeys(w for p in pieces for w in p.scenario.forbidden)),
        answers=tuple(dict.fromkeys(a for p in pieces for a in p.scenario.answers)),
    )


def assertions(pieces: Sequence[Piece]) -> tuple[Assertion, ...]:
    """The assertions of all pieces, each once."""
    made: list[Assertion] = []
    for piece in pieces:
        for check in (*piece.asserts, *piece.scenario.assert_):
            if check not in made:
                made.append(check)
    return tuple(made)
