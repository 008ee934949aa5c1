"""Text as the judge reads it: same length as the original, clauses, numbers in two languages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from harness_cli.judges.grounded.searched import Phrases, Terms, once_a_text

_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FOLD = {**_WIDE, 0x3000: 0x20, ord("’"): ord("'"), ord("‘"): ord("'"), ord("“"): ord('"')}
_FOLD |= {ord("”"): ord('"'), ord("—"): ord("-"), ord("–"): ord("-"), ord("～"): ord("~")}
_FOLD |= {ord("￥"): ord("¥"), ord("×"): ord("x"), ord("℃"): ord("度")}

_ZH_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
_ZH_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000}
_EN_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_EN_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
_EN = _EN_SMALL | _EN_TENS
_EN_WORD = "|".join(sorted([*_EN, "hundred", "thousand", "half"], key=len, reverse=True))

# A run of digits is tried from its start only and every repeat has an end: linear on any text.
DIGITS = r"(?<!\d)(?:\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,6})?|\d{1,12}(?:\.\d{1,6})?)"
ZH_NUMBER = r"[零〇一二两俩三四五六七八九十百千万半]{1,12}(?:点[零一二三四五六七八九]{1,6})?"
EN_NUMBER = (
    rf"\b(?:an? )?(?:{_EN_WORD})\b(?:[ -](?:{_EN_WORD})\b){{0,4}}"
    rf"(?:(?<=hundred) and (?:{_EN_WORD})\b(?:[ -](?:{_EN_WORD})\b)?)?(?: and a half\b)?"
)
NUMBER = rf"(?:{DIGITS}|{ZH_NUMBER}|{EN_NUMBER}|\ban?\b)"
"""A number in digits or words. `a` and Chinese characters count only before a unit."""

_ANY_NUMBER = Phrases(rf"[\d零〇一二两三四五六七八九十百千万半点]|half|\b(?:{_EN_WORD}|an?)\b")

# The first character is asked before what stands around it: a search skips all others at once.
_CLAUSE_END = re.compile(
    r"[。！？!?;；\n….,，、:](?:(?<=[。！？!?;；\n…])[。！？!?;；\n…]*"
    r"|(?<=\.)(?:(?<!\d\.)(?!\d)|(?<=\d\.)(?=\s|$))|(?<=[,，、])(?!\d{3}\b)|(?<=:)\s)"
)
_SENTENCE = re.compile(r"[。！？!?;；\n…]|(?<!\d)\.(?!\d)|(?<=\d)\.(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece between commas or stops: where it stands, its folded text, its sentence."""

    start: int
    end: int
    text: str
    sentence: int
    position: int
    """Among the clauses of its text."""
    question: bool
    """The sentence it belongs to ends with a question mark and this is its last clause."""


@once_a_text
def fold(text: str) -> str:
    """Lower case, ASCII width and quotes; every character keeps its place, so quotes stay exact."""
    plain = text.translate(_FOLD)
    lower = plain.lower()
    if len(lower) == len(plain):
        return lower
    return "".join(low if len(low) == 1 else c for c, low in ((c, c.lower()) for c in plain))


def clauses(folded: str) -> list[Clause]:
    """The clauses of a folded text; a decimal point and a thousands comma end none."""
    return list(_clauses(folded))


@once_a_text
def _clauses(folded: str) -> tuple[Clause, ...]:
    found: list[Clause] = []
    start, sentence = 0, 0
    for match in [*_CLAUSE_END.finditer(folded), None]:
        end = match.start() if match else len(folded)
        mark = match.group() if match else ""
        if folded[start:end].strip():
            asks = "?" in mark or "？" in mark
            found.append(Clause(start, end, folded[start:end], sentence, len(found), asks))
        if match:
            sentence += bool(_SENTENCE.search(mark))
            start = match.end()
    return tuple(found)


def names_number(text: str) -> bool:
    """Whether a folded text can hold a `NUMBER` at all, or a half of something; most do not."""
    return _ANY_NUMBER.search(text) is not None


@lru_cache(maxsize=4096)
def number(text: str) -> float | None:
    """The value of a number in digits, Chinese characters or English words; None for none."""
    text = text.strip().replace(",", "")
    try:
        return float(text)
    except ValueError:
        pass
    if text in ("a", "an"):
        return 1.0
    return _chinese(text) if text and text[0] > "\u2000" else _english(text)


def _chinese(text: str) -> float | None:
    if text == "半":
        return 0.5
    whole, _, decimals = text.partition("点")
    half = whole.endswith("半") and len(whole) > 1
    value = _chinese_whole(whole.rstrip("半") if half else whole)
    if value is None:
        return None
    if decimals:
        value += float("0." + "".join(str(_ZH_DIGITS[c]) for c in decimals))
    return value + 0.5 if half else value


def _chinese_whole(text: str) -> float | None:
    if not text or any(c not in _ZH_DIGITS and c not in _ZH_UNITS for c in text):
        return None
    if all(c in _ZH_DIGITS for c in text):
        return float("".join(str(_ZH_DIGITS[c]) for c in text))
    total, section, digit, last = 0, 0, 0, 1
    for c in text:
        if c in _ZH_DIGITS:
            digit = _ZH_DIGITS[c]
            last = 1 if c in "零〇" else last
            continue
        unit = _ZH_UNITS[c]
        if unit == 10000:
            total, section, digit = (total + section + digit) * unit, 0, 0
        else:
            section, digit = section + (digit or 1) * unit, 0
        last = unit
    # 一百二 is 120, 三千五 is 3500: a last digit without a unit takes the next smaller one.
    return float(total + section + digit * (last // 10 if last >= 100 else 1))


def _english(text: str) -> float | None:
    total, part = 0.0, 0.0
    words = [w for w in re.split(r"[ -]+", text) if w not in ("and", "a", "an")]
    for word in words:
        if word == "half":
            part += 0.5
        elif word in _EN:
            part += _EN[word]
        elif word == "hundred":
            part = (part or 1) * 100
        elif word == "thousand":
            total, part = total + (part or 1) * 1000, 0
        else:
            return None
    if len(words) > 1 and 1 <= _EN.get(words[0], 0) < 10 <= _EN.get(words[1], 0):
        # "two ninety-nine" is 299.
        part += 99 * _EN[words[0]]
    return total + part if words else None


def same(a: float, b: float) -> bool:
    """Two values as a reply would round them: equal to a cent."""
    return abs(a - b) < 0.005 + 1e-9 * abs(a)


def phrases(lines: str) -> Phrases:
    """A pattern from lines: a line end stands for `|`, a backslash there for nothing.

    Long lists of wordings stay readable so. Indentation is dropped; a blank that counts is
    written with a backslash before it.
    """
    kept = [line.lstrip() for line in lines.strip().split("\n")]
    # A backslash takes the bar away that the line end stood for; a bar may begin the next line.
    return Phrases("|".join(kept).replace("\\||", "|").replace("\\|", ""))


def words(text: str) -> frozenset[str]:
    """The blank-separated words of a text."""
    return frozenset(text.split())


def terms_pattern(terms: Iterator[str] | list[str]) -> Terms:
    """Many literal terms to be found, longest first; Latin ones end at word boundaries.

    A `*` at the end of a term lets the word go on.

    Grouped by first character, which keeps the search of a few hundred terms at microseconds.
    """
    groups: dict[str, list[str]] = {}
    for term in sorted({t for t in terms if t}, key=lambda t: (-len(t), t)):
        rest = re.escape(term[1:])
        if term[-1] == "*":
            rest = re.escape(term[1:-1]) + "[a-z]*"
        elif term[-1].isascii() and term[-1].isalnum():
            rest += r"(?:e?s)?(?![a-z0-9])"
        groups.setdefault(term[0], []).append(rest)
    parts = {}
    for first, rests in groups.items():
        before = r"(?<![a-z0-9])" if first.isascii() and first.isalnum() else ""
        parts[first] = f"{before}{re.escape(first)}(?:{'|'.join(rests)})"
    return Terms(parts)


def shares_word(clause: str, text: str, beside: str = "") -> bool:
    """A content word of the clause stands in the text and not in `beside` (product names)."""
    for word in re.findall(r"[a-z]{4,}|[\u3400-\u9fff]{2}", clause):
        if word in text and word not in beside and word not in _COMMON:
            return True
    return False


_COMMON = words(
    """
    yuan this that with your from only just have price right 现在 直播 可以 我们 这款 的是 只要
    """
)
