"""Effectiveness: which of the things that the viewer asks for the reply delivers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness_cli.judges.grounded import acts
from harness_cli.judges.grounded.facts import resembles, share_of, stated
from harness_cli.judges.grounded.language import (
    fold,
)
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.world import Card
from harness_cli.records.item import Fact

ACTS: Mapping[str, Callable[[Reading], bool]] = {
    "clarify": lambda r: acts.asks_back(r.trajectory.reply),
    "refuse": lambda r: acts.declines(r.trajectory.reply),
    "silent": lambda r: not r.trajectory.reply.strip(),
    "greet": lambda r: acts.greets(r.trajectory.reply),
    "thanks": lambda r: acts.thanks(r.trajectory.reply),
    "chat": lambda r: acts.chats(r.trajectory.reply) and not _lied_about_itself(r),
    "apologise": lambda r: acts.apologises(r.trajectory.reply),
    "confirm_order": lambda r: (
        acts.confirms_order(r.trajectory.reply) and not _found(r, "capability_overreach")
    ),
    "image": lambda r: _image_action(r),
    "unknown": lambda r: acts.admits_ignorance(r.trajectory.reply),
}
"""Speech acts of `expect.answers`; every other entry is backed by facts."""


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
        shares = [share_of(reading, f) for f in members]
        missing = tuple(_named(f) for f, share in zip(members, shares, strict=True) if share < 1)
        found.append(Unit(answer, sum(shares) / len(members), missing))
    return found or [Unit(answer, 0.0, (answer,))]


def _named(fact: Fact) -> str:
    return f"{fact.field} {fact.value}" + (f" of {fact.product}" if fact.product else "")


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
    return any(resembles(reading.folded, fold(t)) for t in texts if t)


def _image_action(reading: Reading) -> bool:
    """A picture was selected: an action, or a call that went well."""
    if any("image" in str(a).lower() for a in reading.trajectory.actions):
        return True
    calls = reading.trajectory.calls
    return any(c.result.ok and "image" in f"{c.name} {c.arguments_raw}".lower() for c in calls)


def _lied_about_itself(reading: Reading) -> bool:
    """Asked about itself, the host claimed a human life: that answers nothing."""
    asked = any(acts.asks_about_host(c.text) for c in reading.item.request.comments)
    return asked and _found(reading, "human_identity")


def _found(reading: Reading, kind: str) -> bool:
    """A false answer is none: the checks ran before."""
    return any(f.kind == kind for f in reading.findings)
