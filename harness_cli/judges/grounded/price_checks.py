"""Claims about money, discounts and stock."""

import re
from collections.abc import Iterable

from harness_cli.judges.grounded.language import (
    NUMBER,
    Clause,
    names_number,
    number,
    phrases,
    same,
    shares_word,
)
from harness_cli.judges.grounded.money import Money
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.world import Card, Source, is_percent

_PRICE_KEYS = ("price", "total", "final", "pay", "amount", "cost", "sum", "subtotal", "after")
_LIST_KEYS = ("list", "original", "market", "regular")
_SAVING_KEYS = ("off", "discount", "amount", "saving", "saved", "reduction", "threshold", "minimum")
_DISCOUNT = phrases(
    rf"""
    (?P<percent>{NUMBER})\s*(?:%|percent|per cent)\s*(?:off|discount|cheaper|less|reduction
    sale|的?优惠|折扣)|(?:discount|save|saves|saving|off|reduced|优惠|便宜|立减
    降价?)\D{{0,8}}(?P<after>\d+(?:\.\d+)?)\s?(?:%|percent)|(?P<fold>\d(?:\.\d)?
    [一二两三四五六七八九]{{1,2}}|\d\d)\s*折(?!叠|扣|痕|边|纸|起)|(?P<half>half[- ]price|半价
    五折)
    """
)


_DEAL = phrases(
    r"""
    \boff\b|discount|coupon|voucher|promo|percent|%|after|member|\b(?:two|three|both|pair|2|3)\b
    折|券|满|减|优惠|会员|[两二三俩2-3]\s?(?:支|瓶|件|个|盒|包|双|套|条|份|罐|袋)|一共|到手
    """
)
"""Words beside which a price may be what several pieces or an offer come to."""


def check_money(reading: Reading) -> None:
    """Every sum against what the catalogue, the FAQ and the tool results say of the product."""
    for clause, sums in zip(reading.clauses, reading.sums, strict=True):
        if clause.question:
            continue
        aligned = _aligned(reading, clause, sums)
        for position, sum_ in enumerate(sums):
            products = aligned[position] if aligned else reading.products_at(sum_.start, clause)
            _check_sum(reading, clause, sum_, products)


def _aligned(reading: Reading, clause: Clause, sums: list[Money]) -> list[tuple[str, ...]] | None:
    """ "A and B are 89 and 139 yuan": as many products as prices, all named before the first."""
    if len(sums) < 2 or any(s.role != "price" for s in sums):
        return None
    named = [
        m.products
        for m in reading.mentions
        if clause.start <= m.start < sums[0].start and len(m.products) == 1
    ]
    distinct: list[tuple[str, ...]] = list(dict.fromkeys(named))
    return distinct if len(distinct) == len(sums) else None


def _check_sum(reading: Reading, clause: Clause, sum_: Money, products: tuple[str, ...]) -> None:
    cards = [reading.world.cards[p] for p in products if p in reading.world.cards]
    if sum_.role == "foreign":
        currency = reading.world.catalogue.currency
        reading.find("wrong_price", f"prices are in {currency}", sum_.start, sum_.end, "catalogue")
        return
    if sum_.role in ("upper", "threshold") and _repeats_viewer(reading, sum_.value):
        return
    if any(_right(reading, sum_, card) for card in cards):
        return
    if not cards and _known_somewhere(reading, sum_.value):
        return
    if _in_texts(reading, clause, sum_, cards) or _total_of_several(reading, sum_):
        return
    if _repeats_viewer(reading, sum_.value) and sum_.role not in ("price", "list", "total"):
        return
    kind = "wrong_discount" if sum_.role in ("saving", "threshold") else "wrong_price"
    if cards:
        product = cards[0].product
        detail = f"{sum_.value:g} is not the {_ROLES[sum_.role]} of {product.name}"
        evidence = f"{product.id}: price {product.price:g}, list price {product.list_price:g}"
    else:
        detail, evidence = f"nothing says {sum_.value:g}", "catalogue"
    reading.find(kind, detail, sum_.start, sum_.end, evidence)


_ROLES = {
    "price": "price", "list": "list price", "saving": "saving", "threshold": "threshold",
    "upper": "bound", "total": "total", "fee": "fee",
}  # fmt: skip


def _right(reading: Reading, sum_: Money, card: Card) -> bool:
    product, value, role = card.product, sum_.value, sum_.role
    offers = reading.world.offers(product.id, reading.room)
    if role == "price":
        allowed: Iterable[float] = (product.price,)
        if _DEAL.search(reading.folded):
            allowed = (product.price, *reading.world.payable(product.id, reading.room))
    elif role == "list":
        allowed = (product.list_price,)
    elif role == "saving":
        allowed = _savings(reading, card)
    elif role == "threshold":
        allowed = [o.threshold for o in offers]
    elif role == "upper":
        return product.price <= value
    elif role == "total":
        allowed = reading.world.payable(product.id, reading.room)
    else:
        allowed = ()
    if any(same(value, a) for a in allowed):
        return True
    return _tool_says(reading, sum_, product.id)


def _savings(reading: Reading, card: Card) -> list[float]:
    product = card.product
    found = [product.list_price - product.price]
    found += [o.amount for o in reading.world.offers(product.id, reading.room) if not is_percent(o)]
    found += [product.price - p for p in reading.world.payable(product.id, reading.room)]
    # "40 yuan cheaper than the serum": the gap to any product that the reply names.
    for mention in reading.mentions:
        for other in mention.products:
            found.append(abs(product.price - reading.world.cards[other].product.price))
    return found


def _tool_says(reading: Reading, sum_: Money, product: str | None) -> bool:
    keys = {
        "price": _PRICE_KEYS, "total": _PRICE_KEYS, "list": _LIST_KEYS, "saving": _SAVING_KEYS,
        "threshold": _SAVING_KEYS,
    }.get(sum_.role, ())  # fmt: skip
    for number_ in reading.evidence.sums(product, keys):
        listed = any(k in number_.key for k in _LIST_KEYS)
        if same(number_.value, sum_.value) and (sum_.role == "list" or not listed):
            return True
    return False


def _known_somewhere(reading: Reading, value: float) -> bool:
    """No product to hold it against: a price of the room or a number of a tool result."""
    room = [reading.world.cards.get(p) for p in reading.resolver.products]
    prices = {c.product.price for c in room if c} | {c.product.list_price for c in room if c}
    offers = reading.world.offers(None, reading.room)
    prices |= {o.amount for o in offers} | {o.threshold for o in offers}
    return any(same(value, p) for p in prices) or any(
        same(value, n.value) for n in reading.evidence.numbers
    )


def _in_texts(reading: Reading, clause: Clause, sum_: Money, cards: list[Card]) -> bool:
    """A text that names the sum, and shares a word with the clause unless it is a promotion's."""
    texts: list[Source] = [s for c in cards for s in c.faq]
    texts += [*reading.world.shop, *reading.world.policies.values(), *reading.evidence.texts]
    names = " ".join(s.own.text for s in cards)
    for text in texts:
        if not any(same(sum_.value, m) for m in text.money):
            continue
        if sum_.role not in ("price", "list") or shares_word(clause.text, text.text, names):
            return True
    return False


def _total_of_several(reading: Reading, sum_: Money) -> bool:
    """The prices of the products that the reply names, added up."""
    named = {p for m in reading.mentions if len(m.products) == 1 for p in m.products}
    named |= set(reading.focus)
    if sum_.role not in ("total", "price") or not 2 <= len(named) <= 5:
        return False
    prices = [reading.world.cards[p].product.price for p in named]
    whole = sum(prices)
    if same(whole, sum_.value):
        return True
    offers = reading.world.offers(None, reading.room)
    return any(same(whole - o.amount, sum_.value) and whole >= o.threshold for o in offers)


def _repeats_viewer(reading: Reading, value: float) -> bool:
    asked = reading.evidence.asked
    return any(same(value, m) for m in asked.money) or f"{value:g}" in asked.text


def check_discounts(reading: Reading) -> None:
    """Percent off, 折 and half price against promotions, the list price and the texts."""
    for _, clause in reading.claims():
        for match in _DISCOUNT.finditer(clause.text) if names_number(clause.text) else ():
            percent = _percent(match)
            if percent is not None and not _discount_known(reading, clause, match, percent):
                start, end = clause.start + match.start(), clause.start + match.end()
                reading.find(
                    "wrong_discount", f"no offer takes {percent:g} % off", start, end, "promotions"
                )


def _percent(match: re.Match[str]) -> float | None:
    if match["half"]:
        return 50.0
    if match["fold"]:
        value = number(match["fold"])
        if value is None or not 1 <= value < 100:
            return None
        return round(100 - (value * 10 if value < 10 else value), 2)
    return number(match["percent"] or match["after"])


def _discount_known(reading: Reading, clause: Clause, match: re.Match[str], percent: float) -> bool:
    cards = reading.cards_at(clause.start + match.start(), clause)
    offers = [
        o
        for p in ([c.product.id for c in cards] or [""])
        for o in reading.world.offers(p or None, reading.room)
    ]
    if any(is_percent(o) and same(o.amount, percent) for o in offers):
        return True
    for card in cards:
        off = 100 * (1 - card.product.price / card.product.list_price)
        if abs(off - percent) <= 1.0:
            return True
    texts = [*reading.evidence.texts, *reading.world.shop, *(s for c in cards for s in c.faq)]
    if any(("percent", percent) in t.measured for t in texts):
        return True
    keys = ("percent", "discount", "off", "amount")
    return any(same(n.value, percent) for n in reading.evidence.sums(None, keys))
