"""Sums of money in a reply and what each is said to be: price, list price, saving, total."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from harness_cli.judges.grounded.language import (
    DIGITS,
    EN_NUMBER,
    ZH_NUMBER,
    Clause,
    names_number,
    number,
    phrases,
)

_N = rf"(?:{DIGITS}|{ZH_NUMBER}|{EN_NUMBER})"
_UNIT = r"(?:yuan|rmb|cny|kuai|bucks|dollars?|usd|euros?|元|块钱|块|圆)"
_WITH_UNIT = phrases(
    rf"""
    (?P<sign>¥|\$|€|rmb\s?|cny\s?)\s*(?P<a>{DIGITS})|(?:(?P<first>{DIGITS})\s*(?:and|or|和|、
    /)\s*)?(?P<b>{_N})\s*(?P<unit>{_UNIT})(?P<dime>\d)?
    """
)
_OTHER_UNIT = (
    r"(?!\s*(?:%|percent|折|号|hours?|days?|months?|years?|weeks?|minutes?|hrs?|ml|kg|g\b|cm|mm"
    r"|w\b|mah|小时|天|个月|年|周|分钟|毫升|克|公斤|厘米|瓦|毫安|件|个|片|包|瓶|pieces?|left"
    r"|in stock|x\s?\d|乘|by\b|\d|,\d|\.\d|-?\s?(?:inch|piece|pack|degree|level|star)))"
)
_BARE = phrases(
    rf"""
    (?:\bprice(?:d)?(?: is| at| of| now)?|\bcosts?(?: only| just)?|\bsells? for|\bgoing for\
    |\byours for|\bdown to|\bgoes for|\bbecomes?|\bcomes? to|售价|现价|价格是?|特价|原价|到手价?\
    |券后价?|只要|只需|仅需|卖价?|现在是?|优惠价|秒杀价|直播价|活动价|日常价)[:：为是]?\s*\
    (?P<n>{DIGITS}|(?=[^\s]*[十百千]){ZH_NUMBER}){_OTHER_UNIT}
    \b(?:only|just)\s+(?P<m>{DIGITS})(?!\.?\d)(?=\s+(?:in total|altogether|for|tonight|today|now
    right|each)\b|\s*(?:[!.,;]|$))
    """
)
_OFF_SPEND = phrases(
    rf"""
    (?P<off>{DIGITS})\s*(?:yuan )?off\s*(?:(?:for |on |every |any )?(?:orders? )?\
    (?:of |over |above |from )?)?(?P<over>{DIGITS})
    满\s*(?P<over_zh>{_N})\s*(?:元|块)?\s*(?:立?减|省|返|减免)\s*(?P<off_zh>{_N})
    """
)
_CUES = (
    (
        "list",
        r"original(?:ly)?|list price|regular(?:ly)?|usual(?:ly)?|\bwas\b|\bwere\b|normal(?:ly)?|"
        r"used to be|instead of|down from|before (?:the )?(?:sale|discount)|rrp|full price|retail|"
        r"原价|吊牌价|划线价|市场价|平时|日常价|专柜价|原本|原来|之前",
    ),
    (
        "saving",
        r"sav(?:e|es|ing)|\bcheaper|\bless than|more than|more expensive|discount of|differen|"
        r"reduc|coupon|voucher|takes?|cut|knock|减|省|便宜|立减|直降|优惠了?|贵|差价|相差|抵|券",
    ),
    (
        "threshold",
        r"spend|orders? (?:of|over|from|above)|when you (?:buy|spend)|\bover\b|\breach|"
        r"at least|minimum|\bfrom\b|满|达到|凑",
    ),
    (
        "upper",
        r"under|below|within|less than|up to|at most|budget|no more than|预算|不超过|不到|低于",
    ),
    (
        "total",
        r"total|together|altogether|both|all in|after (?:the )?(?:coupon|discount|promo)|final|"
        r"checkout|end up|pay|net|comes? to|works out|with the (?:coupon|discount|promo)|bundle|"
        r"到手|券后|折后|实付|合计|一共|总共|加起来|最后|付|优惠后|算下来|领券|用券|叠加",
    ),
    ("fee", r"shipping|postage|freight|delivery fee|wrap|运费|邮费|快递费|包装"),
    (
        "price",
        r"price|cost|\bnow\b|sell|going for|yours for|\bis\b|\bare\b|\bat\b|\bfor\b|\bonly\b|just|"
        r"现价|售价|价格|现在|只要|仅|卖|特价|是|价",
    ),
)
_BEFORE = re.compile("|".join(f"(?P<{name}>{cue})" for name, cue in _CUES))
_PIECE = re.compile(r"[一两几半]块(?![钱0-9一二三四五六七八九]|$|\s|[哦啦呢吧就起到拿包了])")
_AFTER = phrases(
    r"""
    \s*(?:(?P<saving>off|cheaper|less|more|discount|saved|in savings|(?:[a-z]+ ){0,2}\
    (?:coupon|voucher)|的?(?:优惠|[\u4e00-\u9fff]{0,4}券|红包|差价))
    (?P<list>originally|before|原价)|(?P<upper>以内|以下|之内|or less|or under)
    (?P<threshold>or more|and up|minimum|以上|就能用|可用|起)
    (?P<total>after|in total|altogether|for both|到手)
    (?P<fee>for shipping|shipping|postage|运费|邮费))
    """
)


@dataclass(frozen=True, slots=True)
class Money:
    """A sum in a clause, its role and place in the whole text."""

    value: float
    role: str
    """price, list, saving, threshold, upper, total, fee, foreign."""
    start: int
    end: int


def money(clause: Clause) -> list[Money]:
    """Every sum of money of a clause; one without a unit counts only after a word of price."""
    return [
        Money(m.value, m.role, clause.start + m.start, clause.start + m.end)
        for m in _within(clause.text)
    ]


@lru_cache(maxsize=8192)
def _within(text: str) -> tuple[Money, ...]:
    """The sums of a clause's text, their places those of the text itself."""
    if not names_number(text):
        return ()
    taken: list[tuple[int, int]] = []
    found = _offers(text, taken)
    for match in _WITH_UNIT.finditer(text):
        number_at = match.start("b") if match["b"] else match.end()
        if _free(match.span(), taken) and not _PIECE.match(text, number_at):
            found += _with_unit(match)
            taken.append(match.span())
    for match in _BARE.finditer(text):
        name = "n" if match["n"] else "m"
        if _free(match.span(name), taken):
            found.append(_made(match[name], "", match.span(name)))
    sums = sorted((m for m in found if m is not None), key=lambda m: m.start)
    return tuple(_with_roles(text, sums))


def _with_roles(text: str, sums: list[Money]) -> list[Money]:
    """Roles from left to right: what led to one sum does not lead to the next.

    A sum after a saving in one clause is what is left to pay: 满200减30后248元.
    """
    done: list[Money] = []
    since, saved = 0, False
    for sum_ in sums:
        start, end = sum_.start, sum_.end
        role = sum_.role or _role(text, since, start, end)
        if role == "price" and saved:
            role = "total"
        done.append(replace(sum_, role=role))
        after = _AFTER.match(text, end)
        since = after.end() if after and after.lastgroup else end
        saved = saved or role in ("saving", "threshold")
    return done


def _offers(text: str, taken: list[tuple[int, int]]) -> list[Money | None]:
    """ "30 off 200", "满200减30": what is taken off, and from which sum on."""
    found = []
    for match in _OFF_SPEND.finditer(text):
        for name, role in _OFFER_ROLES.items():
            if match[name]:
                found.append(_made(match[name], role, match.span(name)))
        taken.append(match.span())
    return found


_OFFER_ROLES = {
    "off": "saving", "off_zh": "saving", "over": "threshold", "over_zh": "threshold",
}  # fmt: skip


def _with_unit(match: re.Match[str]) -> list[Money | None]:
    """ "89 yuan", "¥89", "89块9", and both sums of "89 and 139 yuan"; roles come later."""
    value = match["a"] or match["b"]
    if match["dime"] and value.isdigit():
        value = f"{value}.{match['dime']}"
    unit = (match["sign"] or match["unit"] or "").strip()
    foreign = unit in ("$", "€", "usd") or unit.startswith(("dollar", "euro"))
    role = "foreign" if foreign else ""
    span = (match.start("a" if match["a"] else "b"), match.end())
    first = [_made(match["first"], role, match.span("first"))] if match["first"] else []
    return [*first, _made(value, role, span)]


def _free(span: tuple[int, int], taken: list[tuple[int, int]]) -> bool:
    return all(span[1] <= start or span[0] >= end for start, end in taken)


def _made(text: str, role: str, span: tuple[int, int]) -> Money | None:
    value = number(text)
    if value is None:
        return None
    return Money(value, role, *span)


def _role(text: str, since: int, start: int, end: int) -> str:
    """The role by what follows the sum, else by the nearest cue before it in its clause."""
    after = _AFTER.match(text, end)
    if after and after.lastgroup:
        return after.lastgroup
    last = None
    for cue in _BEFORE.finditer(text, since, start):
        # `price` is the weakest reading: "original price 129" is a list price.
        weak = cue.lastgroup == "price" and last is not None and start - cue.end() <= 24
        if not weak or text.startswith(("now", "现", "只要"), cue.start()):
            last = cue.lastgroup
    return last or "price"
