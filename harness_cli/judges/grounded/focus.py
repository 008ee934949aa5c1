"""Which product a clause speaks of: link numbers, names, and what the item is about."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness_cli.judges.grounded.language import (
    DIGITS,
    EN_NUMBER,
    ZH_NUMBER,
    Clause,
    fold,
    number,
    phrases,
    terms_pattern,
)
from harness_cli.judges.grounded.lexicon import lexicon
from harness_cli.judges.grounded.searched import Terms, once_a_text
from harness_cli.judges.grounded.world import World
from harness_cli.records.catalogue import Product
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Trajectory

_LINK = phrases(
    rf"""
    (?:\blinks?|\bitems?|\bproducts?|\bno\.?|\bnumbers?|链接|产品|商品)\s?(?:no\.?|number|#
    号)?\s?#?(?P<a>{DIGITS}|{EN_NUMBER})(?![\d.]*\s?(?:yuan|元|块|%|days|hours|best|selling|in the
    in china|choice|brand|pieces|left
    in stock))|#\s?(?P<b>\d+)|(?P<c>{DIGITS}|{ZH_NUMBER})\s?号(?:链接|产品|商品|宝贝|款)?(?!店
    线|楼|码)|(?:第)(?P<d>[一二三四五六七八九十\d]+)(?:个|款)(?:链接|产品|商品|宝贝)?
    """
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A product spoken of: by its link or by a name."""

    start: int
    end: int
    products: tuple[str, ...]
    """More than one when a word fits several; none when the link number leads nowhere."""
    link: int | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a set of products, as one pattern."""

    pattern: Terms
    owners: Mapping[str, tuple[str, ...]]

    def find(self, folded: str) -> list[Mention]:
        """Every name, longest first where they overlap."""
        found = []
        for match in self.pattern.finditer(folded):
            term = match.group()
            owner = (
                self.owners.get(term) or self.owners.get(term[:-1]) or self.owners.get(term[:-2])
            )
            if owner:
                found.append(Mention(match.start(), match.end(), owner))
        return found


class Resolver:
    """Finds products in texts of one room. Built once per room and kept."""

    def __init__(self, world: World, products: tuple[str, ...]) -> None:
        self.world = world
        self.products = products
        self._names = _names(world, products)
        self._known = once_a_text(self._mentions)

    def mentions(self, folded: str) -> list[Mention]:
        """Links and names in the order of the text."""
        return list(self._known(folded))

    def _mentions(self, folded: str) -> tuple[Mention, ...]:
        found = self._names.find(folded)
        for match in _LINK.finditer(folded):
            value = number(next(g for g in match.groups() if g))
            if value is not None and value == int(value):
                link = int(value)
                known = 0 < link <= len(self.products)
                products = (self.products[link - 1],) if known else ()
                found.append(Mention(match.start(), match.end(), products, link))
        return tuple(sorted(found, key=lambda m: m.start))


def _names(world: World, products: tuple[str, ...]) -> Names:
    owners: dict[str, list[str]] = {}
    cards = [world.cards[p] for p in products or tuple(world.cards) if p in world.cards]
    for card in cards:
        for term in _terms(card.product):
            listed = owners.setdefault(term, [])
            if card.product.id not in listed:
                listed.append(card.product.id)
    for term in [t for t in owners if " " not in t and len(t) < 9]:
        # "cream" also tells the texture of another product: such a word names none of them.
        if any(c.product.id not in owners[term] and _occurs(term, c.own.text) for c in cards):
            del owners[term]
    return Names(terms_pattern(list(owners)), {t: tuple(o) for t, o in owners.items()})


def _occurs(term: str, text: str) -> bool:
    if term not in text:
        return False
    edge = r"(?<![a-z])" if term[0].isascii() else ""
    return re.search(edge + re.escape(term), text) is not None


def _terms(product: Product) -> set[str]:
    """Full names, names without what stands in brackets, their last words, own keywords."""
    full = [fold(product.name), fold(re.sub(r"\s*\(.*?\)", "", product.name))]
    full.append(fold(product.zh_name))
    words = full[1].split()
    if len(words) > 2:
        full.append(" ".join(words[-2:]))
    if len(words) > 1 and len(words[-1]) > 3:
        full.append(words[-1])
    own = [fold(k) for k in product.keywords]
    return {t for t in [*full, *own] if len(t) > 1 and t not in lexicon().generic}


def item_focus(item: Item, trajectory: Trajectory, resolver: Resolver) -> tuple[str, ...]:
    """The products the item is about: of its facts and tools, else its comments, else on screen."""
    found = [f.product for f in item.expect.facts if f.product]
    for tool in item.expect.tools:
        found += products_of(tool.arguments, resolver)
    if not found:
        found = asked(item.request, resolver)
    if not found:
        found = _on_screen(item.request)
    if not found:
        found = [p for c in trajectory.calls for p in products_of(c.arguments or {}, resolver)]
    return tuple(dict.fromkeys(p for p in found if p in resolver.world.cards))


def asked(request: Request, resolver: Resolver) -> list[str]:
    """Products that the comments name."""
    found: list[str] = []
    for comment in request.comments:
        for mention in resolver.mentions(fold(comment.text)):
            if len(mention.products) == 1:
                found += mention.products
    return found


def _on_screen(request: Request) -> list[str]:
    room = request.room
    if room.current_link and 0 < room.current_link <= len(room.products):
        return [room.products[room.current_link - 1]]
    return []


def products_of(arguments: Mapping[str, object], resolver: Resolver) -> list[str]:
    """Products that arguments of a call name, by id or by link."""
    found = []
    for key, value in arguments.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one in resolver.world.cards:
                found.append(one)
            elif isinstance(one, int) and "link" in key and 0 < one <= len(resolver.products):
                found.append(resolver.products[one - 1])
    return found


def spoken_of(
    at: int, clause: Clause, mentions: list[Mention], sentence_start: int
) -> tuple[str, ...] | None:
    """The product of what stands at `at`: the last one named before it in its sentence, else the
    first one named after it in its clause, else the last one named in an earlier sentence."""
    before = [m for m in mentions if m.end <= at and m.products]
    within = [m for m in before if m.start >= sentence_start]
    if within:
        return _sharpened(within)
    after = [m for m in mentions if at < m.start < clause.end and m.products]
    if after:
        return after[0].products
    return _sharpened(before) if before else None


def _sharpened(before: list[Mention]) -> tuple[str, ...]:
    """The last mention; when it fits several products, the one also named shortly before."""
    last = before[-1].products
    if len(last) == 1:
        return last
    for earlier in reversed(before[:-1]):
        both = tuple(p for p in earlier.products if p in last)
        if len(both) == 1:
            return both
    return last
