"""Where a comment is made: the room, the product it is about, and what makes clear which one."""

import random
from dataclasses import dataclass
from typing import Any

from harness_cli.records.catalogue import Catalogue, LiveRoom, Product
from harness_cli.simulator.cards import Shelf
from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.library import Context, Needs

REFERENCES = {"link": 0.47, "name": 0.25, "anchor": 0.11, "history": 0.08, "current": 0.09}
"""How a product is referred to (choice: link numbers are most of live-room traffic)."""
_TOO_WIDE = frozenset(
    {"set", "winter", "snack", "baby", "gift", "portable", "electric", "bluetooth"}
)


@dataclass(frozen=True, slots=True)
class Place:
    """A product in a room, and how the comment points at it."""

    room: LiveRoom
    product: Product
    link: int
    words: str
    """The reference as it stands in the comment."""
    kind: str
    current_link: int | None
    anchor: tuple[str, ...] = ()
    history: tuple[dict[str, Any], ...] = ()


class Scene:
    """A catalogue with the surroundings of one split: draws rooms, products and references."""

    def __init__(self, world: Catalogue, context: Context, split: str) -> None:
        self.world = world
        self.shelf = Shelf(world)
        self.context = context
        self.split = split

    def rooms(self, name: str | None = None) -> tuple[LiveRoom, ...]:
        """All rooms, or the one of that id."""
        return tuple(r for r in self.world.rooms if name in (None, r.id))

    def candidates(
        self, needs: Needs, room: str | None = None
    ) -> list[tuple[LiveRoom, int, Product]]:
        """Every link of every room whose product can be asked about."""
        return [
            (r, link, self.shelf.products[product_id])
            for r in self.rooms(room)
            for link, product_id in enumerate(r.products, 1)
            if self._fits(self.shelf.products[product_id], needs)
        ]

    def _fits(self, product: Product, needs: Needs) -> bool:
        if needs.attribute and all(a.name != needs.attribute for a in product.attributes):
            return False
        if needs.category and product.category != needs.category:
            return False
        if needs.in_stock and not self.shelf.units(product):
            return False
        return not (needs.warranty and not product.warranty_months)

    def point(
        self,
        rng: random.Random,
        where: tuple[LiveRoom, int, Product],
        language: str,
        kind: str,
    ) -> Place:
        """A reference of one kind to a product, with the context that resolves it."""
        room, link, product = where
        other = self.other_link(rng, room, link)
        if kind == "name" and self.short_name(room, product, language) is None:
            kind = "link"
        form = {"anchor": "pronoun", "current": "pronoun", "history": "recalled"}.get(kind, kind)
        template = pick(rng, self.context.refs[form][self.split].of(language))
        words = self._fill(template, room, link, product, language)
        if kind == "anchor":
            return Place(
                room, product, link, words, kind, None, self.said(rng, link, product, language)
            )
        if kind == "history":
            turn = pick(rng, self.context.history[language])
            told = [("user", turn.user), ("assistant", turn.assistant)]
            turns = tuple(
                {"role": role, "content": self._fill(text, room, link, product, language)}
                for role, text in told
            )
            shown = pick(rng, [None, other])
            return Place(room, product, link, words, kind, shown, history=turns)
        shown = link if kind == "current" else pick(rng, [other, link, None, other])
        return Place(room, product, link, words, kind, shown, self.small_talk(rng, language))

    def presented(self, rng: random.Random, room: LiveRoom) -> int:
        """The link in the host's hand, for a comment that asks what that is."""
        return rng.randrange(1, len(room.products) + 1)

    def said(
        self, rng: random.Random, link: int, product: Product, language: str
    ) -> tuple[str, ...]:
        """The host's last words, about one product."""
        line = pick(rng, self.context.anchor.product.of(language))
        line = line.format(name=product.name, zh_name=product.zh_name, link=link)
        if rng.random() < 0.5:
            return (pick(rng, self.context.anchor.filler.of(language)), line)
        return (line,)

    def small_talk(self, rng: random.Random, language: str) -> tuple[str, ...]:
        """The host's last words about nothing in particular, half of the time."""
        if rng.random() < 0.5:
            return ()
        return (pick(rng, self.context.anchor.filler.of(language)),)

    def other_link(self, rng: random.Random, room: LiveRoom, link: int) -> int:
        """A link of the room that is another one."""
        return pick(rng, [n for n in range(1, len(room.products) + 1) if n != link])

    def short_name(self, room: LiveRoom, product: Product, language: str) -> str | None:
        """A keyword that only this product of the room answers to; None when there is none."""
        others = [self.shelf.products[p] for p in room.products if p != product.id]
        for word in product.keywords:
            if word.isascii() != (language == "en") or word in _TOO_WIDE or len(word) < 2:
                continue
            if not any(_named(word, other) for other in others):
                return word
        return None

    def _fill(
        self, template: str, room: LiveRoom, link: int, product: Product, language: str
    ) -> str:
        short = self.short_name(room, product, language) or product.name
        return template.format(
            link=link, name=product.name, zh_name=product.zh_name, short=short, zh_short=short
        )


def _named(word: str, product: Product) -> bool:
    text = " ".join((product.name, product.zh_name, *product.keywords)).casefold()
    return word.casefold() in text
