"""Sums of money and counts in a viewer's words: "200元", "under 80", "两件", "two of them"."""

import re

from harness_cli.models.builtin.language import CJK_NUMBERS, NUMBER_WORDS, number_of

CJK_N = "[" + "".join(CJK_NUMBERS) + "]{1,3}"
N = rf"(?:\d{{1,3}}|{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))}|{CJK_N})"
_CJK_SUM = "[" + "".join(CJK_NUMBERS) + "百千]{1,6}"
MONEY = re.compile(
    r"(?:¥|￥|\$|rmb\s?)\s*(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)\s*(?:yuan|rmb|dollars?|bucks|元|块)"
    r"|\b(?:under|below|less than|within|budget(?: of| is)?)\s+(\d{2,5})\b(?!\s*(?:day|hour|%))"
    rf"|(\d{{2,5}}|{_CJK_SUM})\s*(?:块钱?|元|以内|以下|左右|之内)",
    re.IGNORECASE,
)
_UNITS = (
    r"(?:x\b|pcs|pieces?|units?|sets?|pairs?|box(?:es)?|bottles?|packs?|bags?|copies|of\s+(?:them|these"
    r"|those|it|this|that|#|link)|件|个|双|套|盒|瓶|条|份|包|只|支|袋|把|台|组)"
)
COUNT = re.compile(rf"(?<![\d.#第])({N})\s*{_UNITS}|[x×*]\s*(\d{{1,3}})\b", re.IGNORECASE)
_BUY = re.compile(rf"(?:\b(?:buy|order|take|get|want)\s+|买|拍|要|下单)({N})(?!\d)", re.IGNORECASE)


def amounts(comment: str) -> tuple[float, ...]:
    """The sums of money a comment names, in its order."""
    found = ("".join(groups) for groups in MONEY.findall(comment))
    values = ((float(t) if t[0].isdigit() else number_of(t)) for t in found)
    return tuple(float(v) for v in values if v)


def without_amounts(comment: str) -> str:
    """A comment without sums of money."""
    return MONEY.sub(" ", comment)


def counts(comment: str) -> tuple[int, ...]:
    """How many of something a comment asks for, in its order."""
    found = [a or b for a, b in COUNT.findall(comment)] or _BUY.findall(comment)
    return tuple(n for n in (number_of(f) for f in found) if n)
