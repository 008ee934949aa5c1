"""Claims about what a product is: properties, materials, colours, whom it suits, values by name."""

import re
from collections.abc import Iterable, Sequence

from harness_cli.judges.grounded.language import Clause, fold, phrases, terms_pattern
from harness_cli.judges.grounded.lexicon import ADVICE, ASSURED, MADE_OF, Use
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.world import Card, Source, World
from harness_cli.records.catalogue import Attribute

_COLOUR_TALK = phrases(
    r"""
    envelope|packet|friday|light|tea\b|date|wine|flag|红包|红枣|绿茶|蓝牙
    """
)
_COLOUR_OFFER = phrases(
    r"""
    colou?r|come|available|have|choose|option|version|in |颜色|有|款|可选|色
    """
)


def check_properties(reading: Reading) -> None:
    """Each use of a concept against the texts of the product it is about."""
    for position, clause in reading.claims():
        for use in reading.uses[position]:
            if use.kind == "property":
                _check(reading, clause, use)
            elif use.kind in ("shop", "offer"):
                _check_shop(reading, clause, use)
            elif use.kind == "group":
                assured = ASSURED.search(clause.text) and not ADVICE.search(reading.folded)
                if use.positive and assured:
                    _check(reading, clause, use)
            elif use.kind in ("material", "colour"):
                _check_exclusive(reading, clause, use)


def _check(reading: Reading, clause: Clause, use: Use) -> None:
    cards = reading.cards_at(use.start, clause)
    if not cards or _part_of_name(reading, use):
        return
    sources = [s for c in cards for s in c.sources]
    known = _ways(sources, use.concept)
    if use.positive in known:
        return
    if known:
        detail = f"{cards[0].product.name}: the opposite is true of `{use.concept}`"
        reading.find("wrong_attribute", detail, use.start, use.end, cards[0].product.id)
        return
    others = reading.evidence.texts
    if use.kind == "property":
        others = [*reading.world.shop, *reading.world.policies.values(), *others]
        offers = reading.world.offers(cards[0].product.id, reading.room)
        others += [reading.world.promotion_texts[o.id] for o in offers]
    if not use.positive or _ways(others, use.concept):
        return
    if _of_another(reading, clause, use):
        return
    detail = f"nothing says that {cards[0].product.name} is `{use.concept}`"
    reading.find("unsupported_claim", detail, use.start, use.end, cards[0].product.id)


def _check_shop(reading: Reading, clause: Clause, use: Use) -> None:
    """What the shop does or does not do, and the offers it has."""
    texts = [*reading.world.shop, *reading.world.policies.values(), *reading.evidence.texts]
    cards = reading.cards_at(use.start, clause)
    if use.kind == "offer":
        product = cards[0].product.id if cards else None
        offers = reading.world.offers(product, reading.room)
        texts += [reading.world.promotion_texts[o.id] for o in offers]
    texts += [s for c in cards for s in c.faq]
    known = _ways(texts, use.concept)
    if use.positive in known or not (use.positive or known):
        return
    detail = f"no source says that there is `{use.concept}`"
    if known:
        detail = f"the opposite is true of `{use.concept}`"
    kind = "wrong_service" if use.kind == "shop" else "invented_promotion"
    reading.find(kind, detail, use.start, use.end, "shop FAQ, policies, promotions")


def _ways(sources: Iterable[Source], concept: str) -> set[bool]:
    return {way for s in sources for way in s.concepts.get(concept, ())}


def _part_of_name(reading: Reading, use: Use) -> bool:
    return any(m.start <= use.start and use.end <= m.end for m in reading.mentions)


def _of_another(reading: Reading, clause: Clause, use: Use) -> bool:
    """The clause names a second product of which it is true."""
    for mention in reading.mentions:
        if clause.start <= mention.start < clause.end:
            for product in mention.products:
                if use.positive in _ways(reading.world.cards[product].sources, use.concept):
                    return True
    return False


def _check_exclusive(reading: Reading, clause: Clause, use: Use) -> None:
    """A material or colour that is not among those the product has, where it has any."""
    cards = reading.cards_at(use.start, clause)
    if not use.positive or not cards or _part_of_name(reading, use):
        return
    if any(use.concept in s.concepts for c in cards for s in c.sources):
        return
    has = any(_is_stated(c, use.kind) for c in cards)
    if use.kind == "colour":
        talk = _COLOUR_TALK.search(clause.text) or not _COLOUR_OFFER.search(clause.text)
        claimed = has and not talk
    else:
        made = MADE_OF.search(clause.text) is not None
        claimed = made or (has and _names_whole(clause, use))
    others = [*reading.world.shop, *reading.evidence.texts] if claimed else []
    if claimed and not any(use.concept in s.concepts for s in others):
        kind = "wrong_attribute" if has else "unsupported_claim"
        name = cards[0].product.name
        reading.find(
            kind, f"{name} has no `{use.concept}`", use.start, use.end, cards[0].product.id
        )


def _is_stated(card: Card, kind: str) -> bool:
    if kind == "colour":
        return bool(card.product.variants) and any(c in card.own.concepts for c in _COLOUR_NAMES)
    return any(a.name in ("material", "fabric") for a in card.product.attributes)


_COLOUR_NAMES = (
    "white", "black", "grey", "red", "blue", "green", "pink", "purple", "yellow", "orange", "brown",
    "beige", "silver", "gold",
)  # fmt: skip


def _names_whole(clause: Clause, use: Use) -> bool:
    """ "it's silk", "是真丝的": the material is what the product is said to be."""
    before = clause.text[: use.start - clause.start]
    return bool(re.search(r"(?:\bis|\bare|'s|\bof|\bin|是|为)\s*(?:a |an |the |\w+ )?$", before))


_ABSENT = phrases(
    r"""
    \b(?:no|without(?: a| any)?|not have (?:a |any )?|doesn't have (?:a |any )?\
    |doesn't include (?:a )?|doesn't come with (?:a )?|isn't a)\s?(?:\w+ )?$
    (?:没有?|不带|不配|不送|不含|无)$
    """
)
_NEGATIVE = phrases(r"""free\b|\bno\b|\bnot\b|nothing|without|无|不|没""")


def _check_absent(reading: Reading, clause: Clause) -> None:
    """ "no lid", "没有锅盖", where the catalogue lists one."""
    if not _NEGATIVE.search(clause.text):
        return
    for card in reading.cards_at(clause.start + len(clause.text) // 2, clause)[:1]:
        for attribute in card.product.attributes:
            value = fold(f"{attribute.value} {attribute.zh_value}")
            if _NEGATIVE.search(value) or value.startswith("false"):
                continue
            for name in (attribute.name.replace("_", " "), attribute.zh_name):
                at = clause.text.find(name) if name else -1
                if at > 0 and _ABSENT.search(clause.text[:at]):
                    start, end = clause.start + at, clause.start + at + len(name)
                    detail = f"{card.product.name}: {attribute.value}"
                    reading.find("wrong_attribute", detail, start, end, card.product.id)


def check_values(reading: Reading) -> None:
    """A named attribute beside a value that another product has and this one has not."""
    table = attribute_values(reading.world)
    for _, clause in reading.claims():
        _check_absent(reading, clause)
        for match in table.pattern.finditer(clause.text):
            _check_value(reading, clause, match, table)


class ValueTable:
    """Worded attribute values of the whole catalogue, and which attribute each belongs to."""

    def __init__(self, world: World) -> None:
        self.names: dict[str, set[str]] = {}
        for card in world.cards.values():
            for attribute in card.product.attributes:
                for value in (attribute.value, attribute.zh_value):
                    if isinstance(value, str) and _worded(value):
                        self.names.setdefault(value.lower(), set()).add(attribute.name)
        self.pattern = terms_pattern(list(self.names))


_TABLES: dict[str, ValueTable] = {}


def attribute_values(world: World) -> ValueTable:
    """The table of a catalogue, made once per digest."""
    key = world.catalogue.digest
    if not key or key not in _TABLES:
        made = ValueTable(world)
        if not key:
            return made
        _TABLES.clear()
        _TABLES[key] = made
    return _TABLES[key]


def _worded(value: str) -> bool:
    """Values worth a look: words, not measures or yes and no."""
    return len(value) >= 2 and not re.search(r"\d", value) and value.lower() not in ("yes", "no")


def _check_value(reading: Reading, clause: Clause, match: re.Match[str], table: ValueTable) -> None:
    names = table.names.get(match.group(), set())
    start, end = clause.start + match.start(), clause.start + match.end()
    for card in reading.cards_at(start, clause)[:1]:
        mine = [a for a in card.product.attributes if a.name in names]
        if not mine or match.group() in card.own.text:
            continue
        if any(match.group() in s.text for s in [*card.faq, *reading.evidence.texts]):
            continue
        if any(m.start <= start and end <= m.end for m in reading.mentions):
            continue
        if not _attributed(clause, match, mine):
            continue
        detail = f"{mine[0].name.replace('_', ' ')} of {card.product.name} is {mine[0].value}"
        reading.find("wrong_attribute", detail, start, end, card.product.id)


def _attributed(clause: Clause, match: re.Match[str], mine: Sequence[Attribute]) -> bool:
    """The value is said of the product: its attribute is named, or it follows a verb of being."""
    for attribute in mine:
        names = (
            attribute.name.replace("_", " "),
            attribute.zh_name,
        )
        if any(n and n in clause.text for n in names):
            return True
    before = clause.text[: match.start()]
    return bool(
        re.search(
            r"(?:\bis|\bare|'s|\bfor|\bhas|\bwith|\bin|是|为|适合|有)\s*(?:a |an |the |very )?$",
            before,
        )
    )
