"""One comment in its surroundings with what a good answer does, and what builders are given."""

import random
from typing import Any

import msgspec

from harness_cli.records.catalogue import LiveRoom
from harness_cli.records.item import Assertion, ExpectedTool, Fact
from harness_cli.records.request import FaqEntry, RoomEvent
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.library import Family, Scenario
from harness_cli.simulator.scenarios.setting import Place, Scene

SOLE_SOURCES = (
    "get_order_policy",
    "get_campaign_conditions",
    "change_presentation_order",
    "select_product_image",
)
"""Tools whose result or effect no other tool has; a price, say, stands in several results."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One comment in its surroundings, and the expectations it brings."""

    scenario: Scenario
    family: str
    language: str
    text: str
    room: LiveRoom
    current_link: int | None = None
    anchor: tuple[str, ...] = ()
    history: tuple[dict[str, Any], ...] = ()
    faq: tuple[FaqEntry, ...] = ()
    events: tuple[RoomEvent, ...] = ()
    tools: tuple[ExpectedTool, ...] = ()
    facts: tuple[Fact, ...] = ()
    asserts: tuple[Assertion, ...] = ()
    tags: tuple[str, ...] = ()
    link: int | None = None
    """The link it is about, where there is one."""
    slots: dict[str, Any] = {}
    """What stands in its template, so that it can be worded in another way."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a builder is given."""

    scenario: Scenario
    scene: Scene
    language: str
    rng: random.Random
    kind: str
    """How the product is referred to."""
    room: str | None = None
    """Only this room (further comments of a group)."""

    def family(self) -> tuple[Family, str]:
        """One family of this split and one of its templates."""
        fitting = [f for f in self.scenario.families if f.split == self.scene.split]
        family = pick(self.rng, fitting)
        return family, pick(self.rng, family.zh if self.language == "zh" else family.en)

    def place(self) -> Place:
        """A product that can be asked about, and a reference to it."""
        where = pick(
            self.rng,
            self.scene.candidates(self.scenario.needs, self.room or self.scenario.room),
        )
        return self.scene.point(self.rng, where, self.language, self.kind)

    def answer(self) -> str:
        """The entry of `answers` that facts serve."""
        return self.scenario.answers[0]


def placed(
    ask: Ask,
    place: Place,
    facts: tuple[Fact, ...],
    *,
    asserts: tuple[Assertion, ...] = (),
    **slots: Any,
) -> Piece:
    """A piece about one product: its tools get the link, its tags say what resolves it."""
    family, template = ask.family()
    tools = tuple(
        ExpectedTool(name=t.name, arguments={"link_id": place.link}) for t in ask.scenario.tools
    )
    tags = {"anchor": ("anaphora", "anchor"), "history": ("anaphora", "history")}
    resolved = tags.get(place.kind, ("anaphora",) if place.kind == "current" else ())
    return Piece(
        scenario=ask.scenario,
        family=family.id,
        language=ask.language,
        text=template.format(ref=place.words, **slots),
        slots={"ref": place.words, **slots},
        room=place.room,
        current_link=place.current_link,
        anchor=place.anchor,
        history=place.history,
        tools=tools,
        facts=facts,
        asserts=(*used(tools), *asserts),
        tags=resolved,
        link=place.link,
    )


def plain_piece(ask: Ask, room: LiveRoom, **parts: Any) -> Piece:
    """A piece that is about no single product."""
    family, text = ask.family()
    if "current_link" not in parts:
        parts["current_link"] = pick(ask.rng, [None, *range(1, len(room.products) + 1)])
    parts.setdefault("tools", ask.scenario.tools)
    return Piece(
        scenario=ask.scenario,
        family=family.id,
        language=ask.language,
        text=text,
        room=room,
        anchor=ask.scene.small_talk(ask.rng, ask.language),
        **parts,
    )


def used(tools: tuple[ExpectedTool, ...]) -> tuple[Assertion, ...]:
    """A call that nothing else can stand for has to be made."""
    names = [t.name for t in tools if t.name in SOLE_SOURCES]
    return tuple(Assertion(type="trajectory:tool-used", value=name) for name in names)


def right_call(name: str, arguments: dict[str, Any]) -> Assertion:
    """A call with these arguments has to be made, whatever else is called."""
    return Assertion(
        type="trajectory:tool-args-match",
        value={"name": name, "args": arguments, "mode": "partial"},
    )


def value_assert(facts: tuple[Fact, ...]) -> tuple[Assertion, ...]:
    """Prices have to stand in the reply as numbers."""
    numbers = [f for f in facts if f.field in ("price", "list_price")]
    return tuple(Assertion(type="icontains", value=str(f.value)) for f in numbers)
