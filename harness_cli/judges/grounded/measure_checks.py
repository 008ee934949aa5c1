"""Numbers with a unit: terms of delivery, returns and warranty, packs, and every other measure."""

import re

from harness_cli.judges.grounded.language import NUMBER, Clause, number, phrases, shares_word
from harness_cli.judges.grounded.quantities import Quantity, holds
from harness_cli.judges.grounded.reading import Reading
from harness_cli.judges.grounded.world import Card
from harness_cli.records.catalogue import Product

_CUES = phrases(
    r"""
    (?P<price>price (?:drop|protect)|drops? |difference|price match|保价|价保|降价|差价)
    (?P<exchange>exchang|swap|(?<!更|替)换货?)|(?P<refund>refund|money back|退款|原路)
    (?P<damaged>damage|broken|wrong item|faulty|破损|坏|发错)|(?P<missing>missing|少发|漏发)
    (?P<returns>return|send (?:it |them )?back|sent back|no[- ]reason|无理由|退货?|退换)
    (?P<warranty>warrant|guarantee[ds]?|repair|covered|保修
    保(?=[一二两三四五六七八九十\d]+\s?(?:年|个月))|质保|联保|三包|保用|免费维修)
    (?P<arrive>arriv|deliver|reach(?:es)? you|get (?:it|them|there|to you)|receive
    at your door|送达|到货|收到|送到|签收|能到|就到|到手)|(?P<ship>ship|dispatch|sent? out
    send|leaves?|发货|发出|出库|寄出|发(?!票|现|布|生|烫|质|色))|(?P<cancel>cancel|取消)
    (?P<invoice>invoice|发票)
    (?P<attribute>battery|last(?:s|ing)?|play|charg|shelf|keep|stay|hot|cold|water|timer|wear
    dry|dries|cook|brew|boil|steep|use within|expire|best before|run ?time|hours of|续航|充电
    保质|保温|保冷|持妆|定时|持久|泡|煮|用|防水|有效)
    """
)
_POLICY = {
    "price": ("price_protection",), "exchange": ("exchange", "returns"),
    "refund": ("refund", "cancel"), "damaged": ("damaged",), "missing": ("missing",),
    "returns": ("returns",), "warranty": ("warranty",), "arrive": ("shipping",),
    "ship": ("shipping",), "cancel": ("cancel",), "invoice": ("invoice",),
}  # fmt: skip
_KIND = {
    "ship": "wrong_delivery", "arrive": "wrong_delivery", "warranty": "wrong_warranty",
    "returns": "wrong_returns", "exchange": "wrong_returns", "refund": "wrong_returns",
    "damaged": "wrong_returns", "missing": "wrong_returns", "cancel": "wrong_returns",
    "price": "false_promise", "invoice": "unsupported_claim",
}  # fmt: skip
_WARRANTY_DIMENSION = 720.0


def check_measures(reading: Reading) -> None:
    """Every number with a unit, by what it is said to measure."""
    for position, clause in reading.claims():
        for quantity in reading.measures[position]:
            _check_quantity(reading, clause, quantity)
        _check_limit(reading, clause)


def _check_quantity(reading: Reading, clause: Clause, quantity: Quantity) -> None:
    roles: tuple[str, ...] = ("attribute",)
    if quantity.dimension == "time":
        role = _role(clause, quantity) or _topic(reading, clause)
        roles = (role,) if role else _asked(reading)
    if quantity.dimension == "percent" and _is_discount(clause, quantity):
        return
    cards = reading.cards_at(quantity.start, clause)
    if quantity.dimension in ("clock", "instalments"):
        _check_service(reading, clause, quantity, cards)
        return
    if quantity.dimension == "count":
        _check_count(reading, clause, quantity, cards)
        return
    if not roles or _within_name(reading, quantity):
        return
    if roles[0] == "attribute":
        _check_attribute(reading, clause, quantity, cards)
        return
    known_by = (*roles, *_roles(reading, clause))
    if any(_term_known(reading, clause, role, quantity, cards) for role in known_by):
        return
    first = cards[0].product if cards else None
    evidence = terms_of(first) if first else "order policies"
    words_ = reading.trajectory.reply[quantity.start : quantity.end].strip()
    detail = f"the {_NAMES.get(roles[0], roles[0])} is not {words_}"
    reading.find(_KIND[roles[0]], detail, quantity.start, quantity.end, evidence)


_NAMES = {"ship": "time until it ships", "arrive": "delivery time", "returns": "return period"}


def terms_of(product: Product) -> str:
    """A product's terms, as a finding quotes them."""
    return (
        f"{product.id}: ships within {product.ship_within_hours} h, return "
        f"{product.return_days} days, warranty {product.warranty_months} months"
    )


def _role(clause: Clause, quantity: Quantity) -> str | None:
    """The nearest cue of the clause; before the quantity counts double."""
    at = quantity.start - clause.start
    end = quantity.end - clause.start
    best, distance = None, 1e9
    for cue in _CUES.finditer(clause.text):
        gap = at - cue.end() if cue.end() <= at else (cue.start() - end) * 1.5 + 1
        if cue.lastgroup == "attribute":
            gap += 4
        if -1 <= gap < distance or cue.start() < at < cue.end():
            best, distance = cue.lastgroup, gap
    return best


def _roles(reading: Reading, clause: Clause) -> set[str]:
    """Every role that the clause has a cue for: a period may be any of them.

    "Ask for an invoice, it arrives within 24 hours": the topic may stand a little earlier.
    """
    found = {str(cue.lastgroup) for cue in _CUES.finditer(clause.text)}
    before = reading.folded[max(0, clause.start - 90) : clause.start]
    found |= {str(cue.lastgroup) for cue in _CUES.finditer(before)} & _TOPICS
    return found - {"attribute"}


def _topic(reading: Reading, clause: Clause) -> str | None:
    """What the words shortly before the clause were about, when that is a matter of orders."""
    before = reading.folded[max(0, clause.start - 60) : clause.start]
    topics = [str(c.lastgroup) for c in _CUES.finditer(before) if c.lastgroup in _TOPICS]
    return topics[-1] if topics else None


def _asked(reading: Reading) -> tuple[str, ...]:
    """Roles of a period without a cue, where one matter of terms is what the viewers ask about."""
    asked = {_ASKED[answer] for answer in reading.item.expect.answers if answer in _ASKED}
    return asked.pop() if len(asked) == 1 else ()


_ASKED = {
    "delivery": ("ship", "arrive"), "warranty": ("warranty",),
    "returns": ("returns", "exchange", "refund", "damaged"),
}  # fmt: skip
_TOPICS = {"invoice", "refund", "cancel", "damaged", "missing", "price", "exchange"}


def _within_name(reading: Reading, quantity: Quantity) -> bool:
    return any(m.start <= quantity.start and quantity.end <= m.end for m in reading.mentions)


def _is_discount(clause: Clause, quantity: Quantity) -> bool:
    near = clause.text[
        max(0, quantity.start - clause.start - 14) : quantity.end - clause.start + 12
    ]
    return bool(
        re.search(r"off|discount|save|saving|cheaper|less|优惠|折|便宜|降|reduc|sure|保证", near)
    )


def _term_known(
    reading: Reading, clause: Clause, role: str, quantity: Quantity, cards: list[Card]
) -> bool:
    """The product's own term, its FAQ, the shop's policy; other texts where they share a word."""
    known = frozenset(t for c in cards for t in _own_terms(c, role))
    if holds(known, quantity):
        return True
    sources = [s for c in cards for s in c.faq]
    if not known or role == "warranty":
        # The product's own period stands above the shop's general one.
        sources += [reading.world.policies[t] for t in _POLICY[role] if t in reading.world.policies]
    if any(holds(s.measured, quantity) for s in sources):
        return True
    names = " ".join(c.own.text for c in cards) + _COMMON
    others = [*reading.world.shop, *reading.evidence.texts]
    return any(
        holds(s.measured, quantity) and shares_word(clause.text, s.text, names) for s in others
    )


_COMMON = (
    "hours days within ships shipping return returns warranty months year "
    "小时 天内 时内 内发 发货 退货"
)


def _own_terms(card: Card, role: str) -> list[tuple[str, float]]:
    product = card.product
    if role == "ship":
        return [("time", float(product.ship_within_hours))]
    if role == "returns":
        return [("time", product.return_days * 24.0)]
    if role == "warranty" and product.warranty_months:
        return [("time", product.warranty_months * _WARRANTY_DIMENSION)]
    return []


def _check_service(reading: Reading, clause: Clause, quantity: Quantity, cards: list[Card]) -> None:
    """Hours of the day and numbers of instalments, by a source on the same matter."""
    texts = [*reading.general_texts(), *reading.evidence.texts]
    texts += [s for c in cards for s in c.sources]
    near = [s for s in texts if holds(s.measured, quantity) and shares_word(clause.text, s.text)]
    if near or holds(reading.evidence.asked.measured, quantity):
        return
    words = reading.trajectory.reply[quantity.start : quantity.end].strip()
    reading.find(
        "wrong_service", f"no source says `{words}`", quantity.start, quantity.end, "shop FAQ"
    )


def _check_limit(reading: Reading, clause: Clause) -> None:
    """How many one account may buy."""
    match = _LIMIT.search(clause.text)
    value = number(next((g for g in match.groups() if g), "")) if match else None
    if match is None or value is None:
        return
    sources = [*reading.world.shop, *reading.evidence.texts, reading.evidence.asked]
    said = [_LIMIT.search(s.text) for s in sources]
    known = {number(next((g for g in m.groups() if g), "")) for m in said if m}
    if value not in known:
        start, end = clause.start + match.start(), clause.start + match.end()
        reading.find("wrong_service", "no source sets this limit", start, end, "shop FAQ")


def _check_count(reading: Reading, clause: Clause, quantity: Quantity, cards: list[Card]) -> None:
    """How many are in a pack: where the clause speaks of the pack, or names the attribute."""
    sources = [s for c in cards for s in c.sources]
    counts = {v for s in sources for d, v in s.measured if d == "count"}
    if _LIMIT.search(clause.text) or _STOCKED.search(clause.text):
        return
    if (
        not counts
        or quantity.value in counts
        or quantity.value == 1
        or quantity.unit in ("bag", "bags", "袋", "包")
    ):
        return
    named = any(
        n and n in clause.text
        for c in cards
        for a in c.product.attributes
        for n in (a.name.replace("_", " "), a.zh_name)
    )
    if named or _PACK.search(clause.text):
        texts = [*reading.evidence.texts, reading.evidence.asked]
        if not any(holds(s.measured, quantity) for s in texts):
            words = reading.trajectory.reply[quantity.start : quantity.end].strip()
            detail = f"`{words}` is not what is in the pack"
            reading.find(
                "wrong_attribute", detail, quantity.start, quantity.end, cards[0].product.id
            )


_LIMIT = phrases(
    rf"""
    \blimit(?:ed)? (?:of|to|is)\s*({NUMBER})|\b(?:at most|no more than|maximum of
    up to)\s*({NUMBER})(?= (?:of|per|each|pieces|items|units|a))
    限购\s*({NUMBER})|最多(?:买|拍|购买)\s*({NUMBER})|每人限?\s*({NUMBER})
    """
)
_STOCKED = re.compile(r"stock|\bleft\b|remaining|on hand|库存|现货|剩|有货")
_PACK = phrases(
    r"""
    \bpack of|\bbox of|\bset of|\bcontains?\b|\bcomes? with \d|\bin (?:a|each|the) (?:pack|box|set)
    \bper (?:pack|box)|一盒|一包|一箱|一套|每盒|每包|装$|片装|支装|条装|包装有|里面有|共有
    """
)


def _check_attribute(
    reading: Reading, clause: Clause, quantity: Quantity, cards: list[Card]
) -> None:
    if not cards:
        return
    sources = [s for c in cards for s in c.sources]
    if any(holds(s.measured, quantity) for s in sources):
        return
    others = [*reading.general_texts(), reading.evidence.asked, *reading.evidence.texts]
    if any(holds(s.measured, quantity) for s in others) or _other_named(reading, quantity):
        return
    comparable = any(d == quantity.dimension for s in sources for d, _ in s.measured)
    if quantity.dimension in ("time", "percent", "temperature") and not (
        comparable or _RESULT.search(clause.text)
    ):
        return
    name = cards[0].product.name
    words = reading.trajectory.reply[quantity.start : quantity.end].strip()
    kind = "wrong_attribute" if comparable else "unsupported_claim"
    detail = f"`{words}` is nothing the catalogue says of {name}"
    reading.find(kind, detail, quantity.start, quantity.end, cards[0].product.id)


_RESULT = phrases(
    r"""
    result|visible|effect|works? in|see |improve|reduc|见效|有效|改善|淡化|提升|显著
    """
)


def _other_named(reading: Reading, quantity: Quantity) -> bool:
    """A comparison puts the measures of two products in one clause."""
    return any(
        holds(reading.world.cards[p].own.measured, quantity)
        for m in reading.mentions
        if abs(m.start - quantity.start) < 60 and len(m.products) == 1
        for p in m.products
        if p not in reading.focus
    )
