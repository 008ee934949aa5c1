"""Claims about stock: counts, sold out, in stock, almost gone."""

import re

from harness_cli.judges.grounded.language import NUMBER, Clause, names_number, number, phrases, same
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.world import Card
from harness_cli.records.catalogue import StockLevel

_COUNT_UNIT = (
    r"(?:件|个|瓶|盒|包|支|双|台|套|条|只|份|片|张|袋|罐|对|顶|把|辆|本"
    r"|pieces?|pcs|units?|items?|sets?|pairs?)"
)
_STOCK_NUMBER = phrases(
    rf"""
    (?P<a>{NUMBER})\s*(?:多|来|几)?\s*{_COUNT_UNIT}?\s*(?:of (?:them|it|these) )?(?:are |is )?\
    (?:still )?(?:left|remaining|in stock|on hand|available(?! in)|to go)|stock (?:is|of
    left|level)?:?\s?(?:at )?(?P<b>\d+)
    \b(?:there(?:'s| are| is)|we(?:'ve| have| still have)(?: got)?)(?: only| just| exactly| still)*\
    \ (?P<g>{NUMBER})\b[^.!?\d]{{0,30}}?\b(?:left|remaining|in stock|on hand)
    \b(?:last|final) (?P<h>{NUMBER}) (?:{_COUNT_UNIT}|of (?:them|these|it)|left|remaining)
    最后的?\s*(?P<i>{NUMBER})\s*{_COUNT_UNIT}
    (?:库存|存货)(?:还?有|剩|是|为|还剩
    :)?\s*(?P<c>{NUMBER})|(?:还剩|只剩下?|仅剩|剩下?|现货(?:还有)?
    还有)\s*(?P<d>{NUMBER})\s*(?:多|来|几)?\s*{_COUNT_UNIT}|(?P<e>{NUMBER})\s*(?:多|来
    几)?\s*{_COUNT_UNIT}\s*(?:现货|库存
    有货)|\b(?:have|got|only|just)\s+(?P<f>\d+)\s+(?:{_COUNT_UNIT}\s+)?(?:left|in stock|more
    remaining)
    """
)
OUT = phrases(
    r"""
    sold out|out of stock|no stock|none left|not in stock|isn't in stock|not available
    unavailable|run out|no longer (?:have|available)|all gone|stock is (?:zero|0)\b|售罄|卖完
    卖光|没货|无货|缺货|断货|抢完|抢光|没有(?:现)?货|暂无库存|没库存|没有库存|库存为?0(?!\d)
    卖没了
    """
)
IN = phrases(
    r"""
    in stock|still (?:have|got) (?:it|some|them|plenty|stock)|(?:is|are|it's
    still) available(?! in)|plenty (?:left|of)|有(?:现)?货|现货|有库存|库存充足|货量充足
    还能拍|可以拍
    """
)
NOT_OUT = phrases(
    r"""
    \b(?:not|isn't|aren't|never|hasn't|haven't)\s+(?:yet )?(?:sold out|out of stock|run out)
    没(?:有)?(?:卖完|售罄|断货)|不会(?:断货|缺货|卖完|没货)
    """
)
_FEW = phrases(
    r"""
    (?:almost|nearly) (?:sold out|gone)|few left|last few|running (?:low|out)|快(?:卖完|没|抢)
    所剩不多|最后几|不多了
    """
)
_COUPON = phrases(
    r"""
    coupon|promo|offer|discount|refund|return|exchange|service|券|优惠|活动|退|换|客服
    """
)
_FEW_UNITS = 30
"""More units than this are not "almost gone" (a choice; the shop's own hosts say it below)."""


def check_stock(reading: Reading) -> None:
    """Counts, sold out, in stock and almost gone against the units on hand."""
    for _, clause in reading.claims():
        counted = False
        for match in _STOCK_NUMBER.finditer(clause.text) if names_number(clause.text) else ():
            value = number(next(g for g in match.groups() if g))
            if value is not None:
                counted = True
                _check_units(reading, clause, match, value)
        if not counted and not _COUPON.search(clause.text):
            _check_availability(reading, clause)


_ABOUT = re.compile(r"over|more than|about|around|some|nearly|多|来|几|大概|差不多|近")


def _check_units(reading: Reading, clause: Clause, match: re.Match[str], value: float) -> None:
    cards = reading.cards_at(clause.start + match.start(), clause)
    known = [c for c in cards if c.stock]
    about = _ABOUT.search(clause.text[max(0, match.start() - 12) : match.end()])
    for card in known:
        units = card.units()
        rows = _rows(reading, card, clause)
        right = {float(units or 0)} if len(rows) == len(card.stock) else set()
        right |= {float(s.units) for s in rows} | {float(sum(s.units for s in rows))}
        if value in right or (about and any(value <= r < 2 * value for r in right)):
            return
    keys = ("stock", "units", "inventory", "quantity", "available", "left")
    numbers = [n for c in cards for n in reading.evidence.sums(c.product.id, keys)]
    if any(same(n.value, value) for n in numbers):
        return
    if not cards:
        return
    detail = f"{value:g} is not what is on hand of {cards[0].product.name}"
    rows_ = "; ".join(f"{s.variant or 'all'} {s.units}" for c in known for s in c.stock)
    start, end = clause.start + match.start(), clause.start + match.end()
    reading.find("wrong_stock", detail, start, end, f"{cards[0].product.id}: {rows_ or 'no count'}")


def _rows(reading: Reading, card: Card, clause: Clause) -> list[StockLevel]:
    """Stock rows that the clause names, else those the viewer asked for, else all of them."""
    for text in (clause.text, reading.evidence.asked.text):
        named = _named_variants(card, text)
        if named:
            return [s for s in card.stock if s.variant in named]
    return list(card.stock)


_VARIANT_PART = re.compile(
    r"[a-z]{3,}|(?<![a-z])[smlx]{1,4}(?![a-z])|\d+(?:\.\d+)?"
    r"|[\u3400-\u9fff]+?(?=色|米|码|号|$|[^\u3400-\u9fff])"
)


def _named_variants(card: Card, text: str) -> set[str]:
    """The variants of which the text names the most parts; none when it names no part."""
    scores: dict[str, float] = {}
    for wording, variant in card.variant_words.items():
        parts = [p for p in _VARIANT_PART.findall(wording) if p not in _VARIANT_FILL]
        score = sum(_part_named(p, text) for p in parts) + (wording in text)
        scores[variant] = max(score, scores.get(variant, 0.0))
    most = max(scores.values(), default=0.0)
    return {v for v, score in scores.items() if score == most} if most >= 0.5 else set()


_VARIANT_FILL = ("size", "色", "码", "米", "号")


def _part_named(part: str, text: str) -> float:
    """1 for the part itself, ½ for the colour it ends in (雾蓝 for 雾霾蓝)."""
    if part[0].isascii():
        word = rf"(?<![a-z0-9.]){re.escape(part)}(?![a-z0-9])"
        return float(part in text and re.search(word, text) is not None)
    if part in text:
        return 1.0
    if len(part) > 2 and part[:2] in text:
        return 0.75
    last = part[-1]
    named = len(part) > 1 and last in text and re.search(rf"{last}(?:色|\d|款)", text)
    return 0.5 if named else 0.0


def _check_availability(reading: Reading, clause: Clause) -> None:
    text = clause.text
    out = OUT.search(text)
    if out and NOT_OUT.search(text):
        out = None
    inside = None if out else IN.search(text) or NOT_OUT.search(text)
    few = _FEW.search(text)
    for match, claim in ((out, "out"), (inside, "in"), (few, "few")):
        if match is None:
            continue
        at = clause.start + match.start()
        for card in reading.cards_at(at, clause)[:1]:
            rows = _rows(reading, card, clause)
            if rows and not _holds(claim, [s.units for s in rows]):
                units = "; ".join(f"{s.variant or 'all'} {s.units}" for s in card.stock)
                detail = f"{card.product.name} is not {_CLAIMS[claim]}"
                end = clause.start + match.end()
                reading.find("wrong_stock", detail, at, end, f"{card.product.id}: {units}")


_CLAIMS = {"out": "sold out", "in": "in stock", "few": "almost gone"}


def _holds(claim: str, units: list[int]) -> bool:
    if claim == "out":
        return not any(units)
    if claim == "in":
        return any(units)
    return 0 < sum(units) <= _FEW_UNITS
