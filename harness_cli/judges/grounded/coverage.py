"""Effectiveness: which of the things that the viewer asks for the reply delivers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness_cli.judges.grounded import acts
from harness_cli.judges.grounded.language import (
    DIGITS,
    EN_NUMBER,
    ZH_NUMBER,
    fold,
    number,
    same,
    words,
)
from harness_cli.judges.grounded.quantities import measured
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.stock_checks import IN, NOT_OUT, OUT
from harness_cli.judges.grounded.world import Card
from harness_cli.records.item import Fact

ACTS: Mapping[str, Callable[[Reading], bool]] = {
    "clarify": lambda r: acts.asks_back(r.trajectory.reply),
    "refuse": lambda r: acts.declines(r.trajectory.reply),
    "silent": lambda r: not r.trajectory.reply.strip(),
    "greet": lambda r: acts.greets(r.trajectory.reply),
    "thanks": lambda r: acts.thanks(r.trajectory.reply),
    "chat": lambda r: acts.chats(r.trajectory.reply),
    "apologise": lambda r: acts.apologises(r.trajectory.reply),
    "confirm_order": lambda r: acts.confirms_order(r.trajectory.reply),
    "image": lambda r: bool(_image_action(r)) or acts.shows_image(r.trajectory.reply),
    "unknown": lambda r: acts.admits_ignorance(r.trajectory.reply),
}
"""Speech acts of `expect.answers`; every other entry is backed by facts."""

_NUMBERS = re.compile(rf"{DIGITS}|{EN_NUMBER}|{ZH_NUMBER}")
_DURATIONS = {"hours": 1.0, "days": 24.0, "months": 720.0, "years": 8640.0, "minutes": 1 / 60}
_UNIT_OF = {
    "ship_within_hours": "hours", "ship_within": "hours", "delivery": "hours",
    "return_days": "days", "returns": "days", "days": "days",
    "warranty_months": "months", "warranty": "months",
}  # fmt: skip
_WORD = re.compile(r"[a-z][a-z'-]{2,}|\d+(?:\.\d+)?|[\u3400-\u9fff]")
_STOP = words(
    """
    the and for you your with that this are can from not have has will its was one any all but our
    they when of to in on is it at be as by or an if
    的 了 是 在 我 有 和 就 不 都 一 也 可 以 您 你 们 这 个
    """
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One entry of `answers` and how much of it the reply delivers (0 to 1)."""

    answer: str
    share: float
    missing: tuple[str, ...] = ()


def cover(reading: Reading) -> list[Unit]:
    """Every entry of the item's `answers`, covered or not."""
    answers = reading.item.expect.answers
    facts = reading.item.expect.facts
    units: list[Unit] = []
    done: set[str] = set()
    for answer in answers:
        act = ACTS.get(answer)
        if act is not None:
            units.append(Unit(answer, float(act(reading)), () if act(reading) else (answer,)))
        elif answer not in done:
            done.add(answer)
            units += _backed(
                reading, answer, answers.count(answer), _serving(answer, answers, facts)
            )
    return units


def _serving(answer: str, answers: tuple[str, ...], facts: tuple[Fact, ...]) -> list[Fact]:
    """The facts of an entry: named so, or of its field, or all when it is the only such entry."""
    head, _, name = answer.partition(":")
    exact = [f for f in facts if f.answer == answer or (not name and f.answer == head)]
    if exact:
        return exact
    fitting = [
        f for f in facts if not f.answer and (f.field in (head, name) or f.field.startswith(head))
    ]
    if fitting:
        return fitting
    backed = [a for a in answers if a not in ACTS]
    return [f for f in facts if not f.answer] if len(backed) == 1 else []


def _backed(reading: Reading, answer: str, count: int, facts: list[Fact]) -> list[Unit]:
    """`count` units of one word: facts of one product make one unit, spread over the entries."""
    if not facts:
        share = float(covers_without_facts(reading, answer))
        return [Unit(answer, share, () if share else (answer,))] * count
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.product or "" if count > 1 else "", []).append(fact)
    found = []
    for members in list(groups.values()):
        missing = tuple(_named(f) for f in members if not stated(reading, f))
        found.append(Unit(answer, 1 - len(missing) / len(members), missing))
    return found or [Unit(answer, 0.0, (answer,))]


def _named(fact: Fact) -> str:
    return f"{fact.field} {fact.value}" + (f" of {fact.product}" if fact.product else "")


def stated(reading: Reading, fact: Fact) -> bool:
    """Whether the reply carries a fact: one of its wordings, or its value in any form."""
    text = reading.folded
    if any(_worded(form, text) for form in fact.forms):
        return True
    value = fact.value
    if isinstance(value, list | tuple):
        return all(stated(reading, _with(fact, v)) for v in value)
    if isinstance(value, bool):
        return _availability(fact, text, value)
    if isinstance(value, int | float):
        return _numeric(reading, fact, float(value))
    return _textual(reading, fact, str(value))


def _with(fact: Fact, value: Any) -> Fact:
    return Fact(product=fact.product, field=fact.field, value=value, answer=fact.answer)


def _worded(form: str, text: str) -> bool:
    folded = fold(form).strip()
    if not folded:
        return False
    edge = (
        r"(?<![\d.])"
        if folded[0].isdigit()
        else r"(?<![a-z])"
        if folded[0].isalpha() and folded[0].isascii()
        else ""
    )
    end = r"(?![\d]|\.\d)" if folded[-1].isdigit() else ""
    return re.search(edge + re.escape(folded) + end, text) is not None


def _availability(fact: Fact, text: str, value: bool) -> bool:
    out = bool(OUT.search(text)) and not NOT_OUT.search(text)
    if "stock" in fact.field or "avail" in fact.field:
        return (bool(IN.search(text) or NOT_OUT.search(text)) and not out) if value else out
    negative = re.search(r"\bno\b|\bnot\b|n't\b|without|不|没|无", text) is not None
    return negative is not value


def _numeric(reading: Reading, fact: Fact, value: float) -> bool:
    text = _without_links(reading)
    if "stock" in fact.field or fact.answer == "stock":
        if value == 0:
            return bool(OUT.search(text)) and not NOT_OUT.search(text)
        if any(IN.search(c.text) and not OUT.search(c.text) for c in reading.clauses):
            return True
    unit = _UNIT_OF.get(fact.field)
    if unit and any(d == "time" and same(v, value * _DURATIONS[unit]) for d, v in measured(text)):
        return True
    if "discount" in fact.field or "percent" in fact.field:
        fold_ = (100 - value) / 10
        wanted = (f"{fold_:g}折", f"{100 - value:g}折")
        if any(w in text for w in wanted):
            return True
    return any(same(v, value) for v in _numbers(reading, text)) or (
        unit == "days" and value == 7 and bool(re.search(r"\ba week\b|一周|一个星期", text))
    )


def _numbers(reading: Reading, text: str) -> list[float]:
    found = [number(m.group()) for m in _NUMBERS.finditer(text)]
    found += [m.value for sums in reading.sums for m in sums]
    return [f for f in found if f is not None]


def _without_links(reading: Reading) -> str:
    """The folded reply with link references blanked: link 7 is no seven-day return."""
    text = list(reading.folded)
    for mention in reading.mentions:
        if mention.link is not None:
            text[mention.start : mention.end] = " " * (mention.end - mention.start)
    return "".join(text)


def _textual(reading: Reading, fact: Fact, value: str) -> bool:
    text = reading.folded
    folded = fold(value).strip()
    if not folded:
        return False
    if _worded(value, text) or folded in text:
        return True
    card = reading.world.cards.get(fact.product or "")
    if card and any(_worded(form, text) for form in _other_wordings(card, folded)):
        return True
    wanted = measured(folded)
    if wanted and len(folded) < 24:
        return wanted <= measured(text)
    return resembles(text, folded)


def _other_wordings(card: Card, folded: str) -> list[str]:
    """The same thing in the other language: attribute values, variants, names, places."""
    product = card.product
    pairs = [(str(a.value), a.zh_value) for a in product.attributes]
    pairs += list(zip(product.variants, product.zh_variants, strict=False))
    pairs += list(zip(product.cautions, product.zh_cautions, strict=False))
    pairs += [(product.name, product.zh_name), (product.ship_from, product.zh_ship_from)]
    return [
        b if fold(a) == folded else a for a, b in pairs if a and b and folded in (fold(a), fold(b))
    ]


def resembles(text: str, wanted: str, least: float = 0.6) -> bool:
    """The reply holds the wanted text's numbers and most of its content words."""
    content = {w for w in _WORD.findall(wanted) if w not in _STOP}
    if not content:
        return False
    have = set(_WORD.findall(text))
    numbers = {w for w in content if w[0].isdigit()}
    if numbers and not all(any(same(float(n), v) for v in _values(text)) for n in numbers):
        return False
    # A text with numbers is told by them; how the rest is put is free.
    share = len(content & have) / len(content)
    return share >= (min(least, 0.3) if numbers else least)


def _values(text: str) -> list[float]:
    return [v for v in (number(m.group()) for m in _NUMBERS.finditer(text)) if v is not None]


def covers_without_facts(reading: Reading, answer: str) -> bool:
    """An entry that the item gives no facts for: what the catalogue itself would answer."""
    head, _, name = answer.partition(":")
    if head == "recommend":
        return any(m.products for m in reading.mentions)
    if head == "compare":
        return len({p for m in reading.mentions for p in m.products}) >= 2
    if head in ("promotion", "benefit", "final_price"):
        return any(reading.sums) or bool(re.search(r"%|折|gift|赠|送|free", reading.folded))
    cards = [reading.world.cards[p] for p in reading.focus if p in reading.world.cards]
    for card in cards:
        for fact in _derived(card, head, name):
            if stated(reading, fact):
                return True
    if head in ("faq", "order_policy", "delivery", "returns", "warranty"):
        return _restates(reading, cards)
    return False


def _derived(card: Card, head: str, name: str) -> list[Fact]:
    product = card.product
    simple: dict[str, Any] = {
        "price": product.price, "list_price": product.list_price, "stock": card.units(),
        "delivery": product.ship_within_hours, "returns": product.return_days,
        "warranty": product.warranty_months,
        "discount": round(product.list_price - product.price, 2),
    }  # fmt: skip
    if simple.get(head) is not None:
        return [Fact(product=product.id, field=head, value=simple[head])]
    if head == "attribute":
        return [
            Fact(product=product.id, field=a.name, value=a.value, forms=(a.zh_value,))
            for a in product.attributes
            if not name or a.name == name
        ]
    return []


def _restates(reading: Reading, cards: list[Card]) -> bool:
    texts = [f.answer for f in reading.item.request.faq]
    catalogue = reading.world.catalogue
    ids = {c.product.id for c in cards}
    texts += [a for f in catalogue.faq if f.product in ids for a in (f.answer, f.zh_answer)]
    texts += [a for f in catalogue.faq if not f.product for a in (f.answer, f.zh_answer)]
    texts += [t for p in catalogue.policies for t in (p.text, p.zh_text)]
    return any(resembles(reading.folded, fold(t), 0.5) for t in texts if t)


def _image_action(reading: Reading) -> bool:
    return any("image" in str(a).lower() for a in reading.trajectory.actions)
