"""Whether a reply carries a fact: one of its wordings, or its value in any form."""

import re
from typing import Any

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
from harness_cli.judges.grounded.searched import Phrases, once_a_text
from harness_cli.judges.grounded.stock_checks import IN, NOT_OUT, OUT
from harness_cli.judges.grounded.world import Card
from harness_cli.records.item import Fact

_NUMBERS = re.compile(rf"{DIGITS}|{EN_NUMBER}|{ZH_NUMBER}")
_DURATIONS = {"hours": 1.0, "days": 24.0, "months": 720.0, "years": 8640.0, "minutes": 1 / 60}
_UNIT_OF = {
    "ship_within_hours": "hours", "ship_within": "hours", "delivery": "hours",
    "return_days": "days", "returns": "days", "days": "days",
    "warranty_months": "months", "warranty": "months",
}  # fmt: skip
_WORD = re.compile(r"[a-z][a-z'-]{2,}|\d+(?:\.\d+)?|[\u3400-\u9fff]")
_COUNT_ASKED = re.compile(
    r"\bhow many [^.!?]{0,40}?\b(?:left|have|remain|in stock|available|there)\b|\bhow much stock\b"
    r"|\bnumber of (?:pieces|units)|(?:剩|库存)[^，。！？?]{0,3}(?:多少|几)|多少(?:件|个|库存|货)"
    r"|几(?:件|个)(?:货|库存)"
)
"""A viewer who wants to know how many there are, not whether there are any."""
_STOP = words(
    """
    the and for you your with that this are can from not have has will its was one any all but our
    they when of to in on is it at be as by or an if
    的 了 是 在 我 有 和 就 不 都 一 也 可 以 您 你 们 这 个
    """
)


def stated(reading: Reading, fact: Fact) -> bool:
    """Whether the reply carries a fact: one of its wordings, or its value in any form."""
    text = reading.folded
    if any(_worded(form, text) or _spread(form, text) for form in fact.forms):
        return True
    value = fact.value
    if fact.field == "name" and _named_product(reading, fact):
        return True
    if isinstance(value, list | tuple):
        return all(stated(reading, _with(fact, v)) for v in value)
    if isinstance(value, bool):
        return _availability(fact, text, value)
    if isinstance(value, int | float):
        return _numeric(reading, fact, float(value))
    return _textual(reading, fact, str(value))


def share_of(reading: Reading, fact: Fact) -> float:
    """1 where the reply carries a fact, 0 where it does not, 0.5 where it says that there is some
    and was asked how many."""
    if not stated(reading, fact):
        return 0.0
    counted = isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
    if fact.field != "stock" or not counted or not fact.value or not _asks_count(reading):
        return 1.0
    said = _numbers(reading, _without_links(reading))
    return 1.0 if any(same(v, float(fact.value)) for v in said) else 0.5


def _asks_count(reading: Reading) -> bool:
    return any(_COUNT_ASKED.search(fold(c.text)) for c in reading.item.request.comments)


def _spread(form: str, text: str) -> bool:
    """A Chinese wording whose every character occurs: 可拆洗 in 枕套可以拆下来洗."""
    folded = fold(form)
    return len(folded) >= 3 and all("\u3400" <= c <= "\u9fff" and c in text for c in folded)


def _named_product(reading: Reading, fact: Fact) -> bool:
    """A product that goes by the fact's name or one of its forms is spoken of, however."""
    wanted = {fold(str(fact.value)), *(fold(form) for form in fact.forms)}
    for mention in reading.mentions:
        for product_id in mention.products if len(mention.products) == 1 else ():
            product = reading.world.cards[product_id].product
            if wanted & {fold(product.name), fold(product.zh_name)}:
                return True
    return False


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
    return folded in text and re.search(edge + re.escape(folded) + end, text) is not None


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
    return [*_values(text), *(m.value for sums in reading.sums for m in sums)]


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


def resembles(text: str, wanted: str, least: float = 0.5) -> bool:
    """The reply holds the wanted text's numbers and at least half of its content words.

    A text with numbers is told by them: of its words three in ten are enough.
    """
    content = _content(wanted)
    if not content:
        parts = re.findall(r"[a-z0-9]+", wanted)
        return bool(parts) and set(parts) <= set(re.findall(r"[a-z0-9]+", text))
    if _DENIES.search(wanted) and not _DENIES.search(text):
        return False
    numbers = {w for w in content if w[0].isdigit()}
    if numbers and not all(any(same(float(n), v) for v in _values(text)) for n in numbers):
        return False
    share = len(content & _stems(text)) / len(content)
    if wanted[0] > "\u3400" and len(wanted) < 6:
        least = 0.8
    return share >= (min(least, 0.3) if numbers else least)


_DENIES = Phrases(r"\bno\b|\bnot\b|n't\b|\bfree\b|without|cannot|不|无|没")


def _stem(word: str) -> str:
    """A word without its plural or third-person s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] != "s" else word


@once_a_text
def _content(text: str) -> frozenset[str]:
    """The content words of a text."""
    return frozenset(_stem(w) for w in _WORD.findall(text) if w not in _STOP)


@once_a_text
def _stems(text: str) -> frozenset[str]:
    """All its words."""
    return frozenset(_stem(w) for w in _WORD.findall(text))


@once_a_text
def _values(text: str) -> tuple[float, ...]:
    """The numbers of a text, in order."""
    found = (number(m.group()) for m in _NUMBERS.finditer(text))
    return tuple(v for v in found if v is not None)
