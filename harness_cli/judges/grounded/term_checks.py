"""Claims on delivery, returns, warranty and places that carry no number of their own."""

import re

from harness_cli.judges.grounded.language import Clause, phrases
from harness_cli.judges.grounded.measure_checks import terms_of
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.world import source

_SOON = phrases(
    r"""
    same[- ]day|\btoday\b|\btonight\b|\bnow\b|immediately|right away|at once|within the hour
    \btomorrow\b|next[- ]day|overnight|当天|当日|今天|今晚|立刻|立即|马上|明天|次日|隔天|明早
    """
)
_NEXT = re.compile(r"tomorrow|next|overnight|明|次日|隔天")
_MOVES = phrases(
    r"""
    (?P<ship>\bships?\b|shipped|shipping|dispatch|sent out|send (?:it|them) out
    leave the warehouse|发货|发出|寄出)|(?P<arrive>arriv|deliver|reach you|get it|have it
    be with you|at your door|送达|到货|收到|送到|能到|就到|到家)
    """
)
_FREE_SHIPPING = phrases(
    r"""
    free (?:shipping|delivery|postage)|ships? (?:for )?free|no shipping (?:fee|cost)
    shipping is free|包邮|免运费|免邮
    """
)
_NO_WARRANTY = phrases(
    r"""
    no warranty|without (?:a )?warranty|isn't covered|没有?(?:质保|保修)|不(?:保修|质保)
    无(?:质保|保修)
    """
)
_EVER = phrases(
    r"""
    life-?time (?:warranty|guarantee)|forever|终身(?:质保|保修|维修)?|永久(?:质保|保修)?
    """
)
_CAN_RETURN = phrases(
    r"""
    (?:can|may|could) (?:be |still )?(?:return|send (?:it|them) back|sent back)
    returns? (?:are )?(?:ok|fine|accepted|possible)|可以退|能退|支持(?:七天|7天)?(?:无理由)?退
    随时退|包退
    """
)
_NO_RETURN = phrases(
    r"""
    (?:cannot|can't|can not|may not|not) (?:be )?(?:return|send back|sent back)|no returns
    non-?returnable|不能退|不支持退|不可以退|不退不换|不可退|概不退
    """
)
_OPENED = re.compile(r"open|used|wash|cut|alter|unless|once|拆|用过|开封|洗|剪")
_SENT_FROM = phrases(
    r"""
    (?:ships?|sent|dispatched|shipped|shipping|delivered|comes?|leaves?)\b[^.,]{0,30}?\bfrom\b
    warehouse|发货|直发|发出|仓
    """
)
_FROM = phrases(
    r"""
    made in|produced in|origin|grown in|comes? from|imported from|产地|产自|原产|进口|生产|来自
    """
)


def check_terms(reading: Reading) -> None:
    """What is said of time, returns and warranty without a number, and of places."""
    for position, clause in reading.claims():
        _check_soon(reading, clause, position)
        _check_free_shipping(reading, clause)
        _check_warranty_words(reading, clause)
        _check_return_words(reading, clause)
        _check_origin(reading, clause, position)


def _check_soon(reading: Reading, clause: Clause, position: int) -> None:
    soon = _SOON.search(clause.text)
    moves = list(_MOVES.finditer(clause.text)) if soon else []
    move = min(moves, key=lambda m: abs(m.start() - soon.start()), default=None) if soon else None
    if not soon or not move or (move.lastgroup == "ship" and _has_time(reading, position)):
        return
    texts = [*reading.world.policies.values(), *reading.world.shop, *reading.evidence.texts]
    if any(soon.group() in t.text and move.group() in t.text for t in texts):
        return
    cards = reading.cards_at(clause.start + soon.start(), clause)
    hours = min((c.product.ship_within_hours for c in cards), default=48)
    if move.lastgroup == "ship" and _NEXT.search(soon.group()) and hours <= 24:
        return
    start = clause.start + min(soon.start(), move.start())
    end = clause.start + max(soon.end(), move.end())
    evidence = terms_of(cards[0].product) if cards else "order policies"
    reading.find("false_promise", "no source promises that day", start, end, evidence)


def _has_time(reading: Reading, position: int) -> bool:
    return any(q.dimension == "time" for q in reading.measures[position])


def _check_free_shipping(reading: Reading, clause: Clause) -> None:
    free = _FREE_SHIPPING.search(clause.text)
    if not free or re.search(
        r"\bnot?\b|isn't|不|没", clause.text[max(0, free.start() - 10) : free.start()]
    ):
        return
    cards = reading.cards_at(clause.start + free.start(), clause)
    product = cards[0].product.id if cards else None
    offers = reading.world.offers(product, reading.room)
    texts = [*reading.world.shop, *reading.world.policies.values(), *reading.evidence.texts]
    texts += [s for c in cards for s in c.sources]
    if any(o.kind == "shipping" for o in offers) or any(
        _FREE_SHIPPING.search(t.text) for t in texts
    ):
        return
    start, end = clause.start + free.start(), clause.start + free.end()
    reading.find("false_promise", "no source offers free shipping here", start, end, "promotions")


def _check_warranty_words(reading: Reading, clause: Clause) -> None:
    for pattern, claim in ((_NO_WARRANTY, False), (_EVER, True)):
        match = pattern.search(clause.text)
        if not match:
            continue
        start, end = clause.start + match.start(), clause.start + match.end()
        cards = reading.cards_at(start, clause)
        if claim and re.search(r"warrant|guarant|质保|保修|维修|repair", clause.text):
            reading.find("wrong_warranty", "no warranty is for life", start, end, "catalogue")
        elif not claim and cards and cards[0].product.warranty_months:
            reading.find("wrong_warranty", "there is one", start, end, terms_of(cards[0].product))


def _check_return_words(reading: Reading, clause: Clause) -> None:
    refused, allowed = _NO_RETURN.search(clause.text), _CAN_RETURN.search(clause.text)
    match = refused or allowed
    if not match:
        return
    start, end = clause.start + match.start(), clause.start + match.end()
    for card in reading.cards_at(start, clause)[:1]:
        returnable = card.product.return_days > 0
        limits = any(_NO_RETURN.search(s.text) for s in card.sources)
        if refused and returnable and not (limits or _OPENED.search(reading.folded)):
            reading.find("wrong_returns", "it can be returned", start, end, terms_of(card.product))
        elif not refused and not returnable and not _OPENED.search(clause.text):
            reading.find(
                "wrong_returns", "it cannot be returned", start, end, terms_of(card.product)
            )


def _check_origin(reading: Reading, clause: Clause, position: int) -> None:
    """Where it is sent from, and where it comes from."""
    sent, grown = _SENT_FROM.search(clause.text), _FROM.search(clause.text)
    if not sent and not grown:
        return
    for use in reading.uses[position]:
        if use.kind != "place" or not use.positive:
            continue
        for card in reading.cards_at(use.start, clause)[:1]:
            texts = [*card.sources, *reading.world.shop, *reading.evidence.texts]
            if sent:
                texts.append(source("", card.product.ship_from, card.product.zh_ship_from))
            if any(use.concept in t.concepts for t in texts):
                continue
            kind = "wrong_delivery" if sent else "unsupported_claim"
            detail = f"it ships from {card.product.ship_from}" if sent else "no source says so"
            reading.find(kind, detail, use.start, use.end, card.product.id)
