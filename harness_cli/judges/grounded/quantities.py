"""Measured quantities: numbers with a unit, brought to one unit per dimension."""

import re
from dataclasses import dataclass

from harness_cli.judges.grounded.language import (
    DIGITS,
    EN_NUMBER,
    NUMBER,
    ZH_NUMBER,
    names_number,
    number,
    phrases,
)
from harness_cli.judges.grounded.searched import once_a_text

_UNITS: dict[str, tuple[str, float]] = {}


def _add(dimension: str, factor: float, names: str) -> None:
    _UNITS.update({name.replace("_", " "): (dimension, factor) for name in names.split()})


_add("time", 1, "hours hour hrs hr h 小时 个小时 钟头 个钟头")
_add("time", 1 / 60, "minutes minute mins min 分钟")
_add("time", 1 / 3600, "seconds second sec 秒 秒钟")
_add(
    "time", 24, "days day working_days business_days working_day business_day 天 日 个工作日 工作日"
)
_add("time", 168, "weeks week 周 星期 个星期 礼拜 个礼拜")
_add("time", 720, "months month 个月 月")
_add("time", 8640, "years year yrs yr 年")
_add("volume", 1, "ml millilitres milliliters 毫升")
_add("volume", 1000, "l litre litres liter liters 升")
_add("mass", 1, "g grams gram 克")
_add("mass", 1000, "kg kgs kilos kilograms 公斤 千克")
_add("mass", 500, "斤")
_add("mass", 0.001, "mg 毫克")
_add("density", 1, "gsm")
_add("length", 1, "cm centimetres centimeters 厘米 公分")
_add("length", 0.1, "mm millimetres 毫米")
_add("length", 100, "m metres meters metre meter 米")
_add("length", 2.54, "inch inches 英寸 寸")
_add("power", 1, "w watts watt 瓦")
_add("charge", 1, "mah 毫安时 毫安")
_add("energy", 1, "wh 瓦时")
_add("suction", 1, "kpa 千帕")
_add("sound", 1, "db decibels 分贝")
_add("light", 1, "lumens lumen ansi_lumens ansi流明 流明")
_add("temperature", 1, "degrees degree °c 度 摄氏度")
_add("colour temperature", 1, "k")
_add("percent", 1, "% percent per_cent")
_add("pressure", 1, "atm")
_add("memory", 1, "gb")
_add("instalments", 1, "instalments installments instalment monthly_payments 期")
_add("count", 1, "pieces piece pcs pc packs pack bags bag boxes bottles tubes capsules cups sheets")
_add(
    "count", 1, "levels modes heads speeds vents panels tablets units items pairs 件 个 片 包 袋 瓶"
)
_add("count", 1, "盒 双 支 颗 杯 条 张 只 台 套 档 种 粒 枚 对 组 罐")

_NAMES = sorted(_UNITS, key=len, reverse=True)
_UNIT = "|".join(
    re.escape(n).replace(r"\ ", " ") + ("(?![a-z])" if n[-1].isascii() and n[-1].isalpha() else "")
    for n in _NAMES
)
_JOIN = r"\s*(?:by|x|to|-|~|and|or|乘|到|至|\*)\s*"
_QUANTITY = phrases(
    rf"""
    (?P<first>{NUMBER})(?P<more>(?:{_JOIN}(?:{DIGITS}|{ZH_NUMBER}
    {EN_NUMBER})){{0,3}})[\s-]*(?:interest-free |monthly |working |business |full |whole |solid )?\
    (?P<unit>{_UNIT})(?P<half>半(?!价|折)| and a half)?
    """
)
_MORE = re.compile(rf"{_JOIN}({DIGITS}|{ZH_NUMBER}|{EN_NUMBER})")
_RATED = phrases(
    r"""
    (?<![a-z])(spf|upf|ipx?|pa|usb|bluetooth|蓝牙|pu)\s?-?(\d+(?:\.\d+)?|\++|x\d)
    """
)
_CLOCK = phrases(
    rf"""
    \b(?:at|from|to|until|till) (?P<a>\d{{1,2}})(?=\s*(?:o'clock|[ap]\.?m\b|this evening|tonight\
    |in the (?:morning|evening)|every (?:day|evening|night)|sharp|to \d|\.?$))
    \b(?P<b>\d{{1,2}})\s?(?:o'clock|[ap]\.?m\b)|(?P<c>{DIGITS}
    (?!一点){ZH_NUMBER})点(?![\d零一二三四五六七八九])
    """
)
_PERCENT_ZH = re.compile(rf"百分之({DIGITS}|{ZH_NUMBER})")
_HALF_DAY = re.compile(r"\b(?:a|one) (?:fortnight)\b")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value in the base unit of its dimension, and where it stands."""

    dimension: str
    value: float
    start: int
    end: int
    unit: str = ""


def quantities(folded: str, offset: int = 0) -> list[Quantity]:
    """Every quantity of a folded text; `offset` is added to the places."""
    return [
        Quantity(q.dimension, q.value, q.start + offset, q.end + offset, q.unit)
        for q in _quantities(folded)
    ]


@once_a_text
def _quantities(folded: str) -> tuple[Quantity, ...]:
    found: list[Quantity] = []
    numbered = names_number(folded)
    for match in _QUANTITY.finditer(folded) if numbered else ():
        dimension, factor = _UNITS[match["unit"]]
        texts = [match["first"], *(m[1] for m in _MORE.finditer(match["more"]))]
        for text in texts:
            value = number(text)
            if value is not None:
                value += 0.5 if match["half"] else 0
                start, end = match.span()
                found.append(Quantity(dimension, value * factor, start, end, match["unit"]))
    for match in _RATED.finditer(folded):
        rating = match[2].lstrip("x")
        value = float(len(rating)) if rating.startswith("+") else float(rating)
        kind = {"蓝牙": "bluetooth", "ip": "ipx"}.get(match[1], match[1])
        start, end = match.span()
        found.append(Quantity(kind, value, start, end, match[1]))
    for match in _CLOCK.finditer(folded) if numbered else ():
        value = number(next(g for g in match.groups() if g))
        if value is not None and value <= 24:
            # Nine in the evening is 9 or 21: the half of the day is not compared.
            start, end = match.span()
            found.append(Quantity("clock", value % 12, start, end, "clock"))
    for match in _PERCENT_ZH.finditer(folded) if numbered else ():
        value = number(match[1])
        if value is not None:
            start, end = match.span()
            found.append(Quantity("percent", value, start, end, "%"))
    return tuple(found)


def holds(known: frozenset[tuple[str, float]], quantity: Quantity) -> bool:
    """Whether the quantity stands in a set of (dimension, value), within 1 %."""
    value = quantity.value
    if (quantity.dimension, value) in known:
        return True
    return any(
        d == quantity.dimension and abs(v - value) <= 0.01 * max(abs(v), abs(value))
        for d, v in known
    )


def measured(folded: str) -> frozenset[tuple[str, float]]:
    """The set of (dimension, value) of a text."""
    return frozenset((q.dimension, q.value) for q in _quantities(folded))
