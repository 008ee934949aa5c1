"""Numbers the reply states about products must stand in a tool result or an FAQ entry.

A cheap guard on the way out, not the judge: it knows prices, percentages, stock and spans of time
by their units, and asks of each number only whether a source states it (or whether it is the
difference of two amounts of money of one result, which is how a saving is told).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness_cli.errors import HookError
from harness_cli.records.trajectory import ToolCall
from harness_cli.runtime.hooks.check_text import Found
from harness_cli.runtime.hooks.moment import Moment, Objection
from harness_cli.runtime.hooks.patterns import LONGEST

_N = r"(?<!\d)(\d{1,9}(?:,\d{3})*(?:\.\d{1,4})?)"
_CLAIMS = {
    "price": re.compile(
        rf"(?:[¥￥$]|\b(?:RMB|CNY)\s?){_N}|{_N}\s?(?:-\s?)?(?:yuan|rmb|cny|dollars?|元|块钱?|圆)",
        re.IGNORECASE,
    ),
    "percent": re.compile(rf"{_N}\s?(?:%|％|percent\b)|{_N}\s?折", re.IGNORECASE),
    "stock": re.compile(
        rf"{_N}\s?(?:units?|pieces?|pcs|items?|left\b|in stock|remaining|available)|"
        rf"(?:还剩|仅剩|只剩|剩下|剩余|库存(?:还有|有|为)?)\s?{_N}|{_N}\s?(?:件|个|只|瓶|盒|台|双|套|支)(?:库存|现货|左右)?",
        re.IGNORECASE,
    ),
    "days": re.compile(
        rf"{_N}[\s-]?(?:business |working )?(?:days?|hours?|hrs?|months?|weeks?|years?)\b|"
        rf"{_N}\s?(?:个工作日|工作日|天|小时|个月|周|年)",
        re.IGNORECASE,
    ),
}
_NUMBER = re.compile(r"\d{1,9}(?:,\d{3})*(?:\.\d{1,4})?")
_MONEY_KEY = re.compile(
    r"price|amount|total|pay|list|discount|threshold|saving|reduc|subtotal|off", re.IGNORECASE
)
RESULT_CAP = 64_000
"""Characters of one result that are read for its numbers."""
_MOST = 80
"""Amounts of one result that are paired for savings; more would make any number a saving."""


def grounded_claims(kinds: Sequence[str] = ("price", "percent", "stock", "days")) -> Found:
    """Every number the reply states of these kinds stands in a result or an FAQ entry."""
    unknown = [k for k in kinds if k not in _CLAIMS]
    if unknown or isinstance(kinds, str):
        raise HookError(f"`kinds` takes {', '.join(_CLAIMS)}, not {', '.join(unknown) or kinds}")

    def check(moment: Moment) -> Objection | None:
        claims = claimed(moment.reply, kinds)
        if not claims:
            return None
        known = _known(moment)
        for kind, number, words in claims:
            if not _supported(kind, number, words, known):
                return Objection(reason=f"no result states the {kind} `{words.strip()}`")
        return None

    return check


def claimed(text: str, kinds: Iterable[str]) -> list[tuple[str, float, str]]:
    """The claims of a text: kind, number, the words."""
    if len(text) > LONGEST:
        raise HookError(f"a reply of {len(text)} characters is too long to check")
    found = []
    for kind in kinds:
        for match in _CLAIMS[kind].finditer(text):
            number = next(g for g in match.groups() if g is not None)
            found.append((kind, _value(number), match[0]))
    return found


def _known(moment: Moment) -> set[float]:
    """Numbers that results and FAQ entries state, and savings between amounts of one result."""
    known: set[float] = set()
    for call in moment.calls:
        if call.result.ok and not _ours(call):
            known |= numbers(call.result.content[:RESULT_CAP])
            known |= _savings(call)
    for entry in moment.request.faq:
        known |= numbers(entry.answer) | numbers(entry.question)
    return known


def _ours(call: ToolCall) -> bool:
    """A tool of the loop itself, whatever the harness calls it: its result states no fact."""
    return call.executor == "builtin" or call.name in ("load_skill", "refuse")


def _supported(kind: str, number: float, words: str, known: set[float]) -> bool:
    if number in known:
        return True
    if kind == "percent":
        # 8折 and 85折 are what is paid, in tenths and hundredths; `20%` is paid or taken off.
        share = number * 10 if "折" in words and number < 10 else number
        forms = {share, 100 - share, share / 100, 1 - share / 100}
        return bool({round(f, 6) for f in forms if f not in (0, 100)} & known)
    if kind == "days":
        return _span(number, words) & known != set()
    return False


def _span(number: float, words: str) -> set[float]:
    """The same span of time in the other units in which a source may state it."""
    low = words.casefold()
    if "hour" in low or "hr" in low or "小时" in low:
        return {number / 24}
    if "year" in low or "年" in low:
        return {number * 12}
    if "week" in low or "周" in low:
        return {number * 7}
    if "day" in low or "天" in low:
        return {number * 24, number / 7}
    return {number / 12}


def _savings(call: ToolCall) -> set[float]:
    amounts = sorted(set(_amounts(call.result.structured)))[:_MOST]
    return {round(b - a, 4) for i, a in enumerate(amounts) for b in amounts[i + 1 :]}


def _amounts(value: Any, money: bool = False) -> Iterable[float]:
    """Numbers under keys that speak of money, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _amounts(inner, money or bool(_MONEY_KEY.search(str(key))))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _amounts(inner, money)
    elif money and isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def numbers(text: str) -> set[float]:
    """Every number of a text."""
    return {_value(m) for m in _NUMBER.findall(text)}


def _value(text: str) -> float:
    return float(text.replace(",", ""))
