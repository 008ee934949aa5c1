"""Which products and amounts a viewer's words mean: "#3", "三号", "this one", "两件", "200元"."""

import re
from dataclasses import dataclass
from functools import lru_cache

from harness_cli.models.builtin.amounts import CJK_N, COUNT, MONEY, N, amounts, counts
from harness_cli.models.builtin.language import (
    COMMON_ADJECTIVES,
    NEXT,
    NUMBER_WORDS,
    PREVIOUS,
    cjk_runs,
    number_of,
    stem,
    words,
)
from harness_cli.models.builtin.prompt import Listing, Product
from harness_cli.models.builtin.scene import Scene

NUMBERED = re.compile(
    rf"\b(?:links?|number|no\.?|item|product)\s*#?\s*{N}\b|链接\s*{N}|第?{CJK_N}[号款](?:链接|商品)?"
    r"|#?\s*\d+\s*号?(?:链接|商品)?",
    re.IGNORECASE,
)
"""How a comment gives a product's number."""
_JOIN = (
    r"\s*(?:,|，|、|/|&|\band\b|\bor\b|\bvs\.?|\bversus\b|\bwith\b|\bto\b|和|跟|与|还是|或|比)\s*"
)
_OTHER_UNIT = re.compile(
    r"^\s*(?:%|percent|yuan|rmb|days?|hours?|months?|years?|cm|mm|kg|g\b|ml|l\b|inch|元|块|天|小时"
    r"|个月|年|折|斤|克|厘米|岁|点|分钟|号码|am\b|pm\b|:\d)",
    re.IGNORECASE,
)
NAME_SHARE = 0.34
"""A product is named when this share of its name's rarity is in the comment."""
_ADJECTIVES = frozenset(stem(w) for w in COMMON_ADJECTIVES)
POINTED_WORD = 0.15
"""Added when a word that only this product has follows "the" or "that": a thing is named."""
_THE = re.compile(r"\b(?:the|that|this|your|those|these)\s+([A-Za-z]{3,})", re.IGNORECASE)
CJK_PIECE = 1.1
"""A third of a Chinese name is enough: names are short and their last characters name the kind."""
NAME_RIVAL = 0.7
"""Another one is named too when it comes this near to the best."""


@dataclass(frozen=True)
class Mentions:
    """What a comment points at."""

    said: tuple[int, ...] = ()
    """Product numbers it gives or names, in order."""
    pointed: int | None = None
    """What it can only mean by its context."""
    money: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    ambiguous: bool = False
    """A name that fits several products alike."""
    named: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The product numbers meant; at most one when only the context says so."""
        return self.said or ((self.pointed,) if self.pointed is not None else ())


@lru_cache(maxsize=1024)
def mentions(comment: str, scene: Scene) -> Mentions:
    """Everything a comment points at in its scene."""
    goods = scene.goods
    said = explicit(comment, goods)
    named, ambiguous = by_name(comment, goods)
    both = tuple(dict.fromkeys([*said, *(n for n in named if not ambiguous or not said)]))
    both = both or _beside(comment, goods)
    if ambiguous and not said:
        both = tuple(n for n in named if n in context_numbers(scene)) or ()
    return Mentions(
        said=both,
        pointed=None if both else pointed(scene),
        money=amounts(comment),
        counts=counts(comment),
        ambiguous=ambiguous and not both,
        named=bool(named),
    )


def _beside(comment: str, goods: Listing) -> tuple[int, ...]:
    """The product before or after the one being presented, when a comment says "the next one"."""
    step = 1 if NEXT.search(comment) else -1 if PREVIOUS.search(comment) else 0
    number = (goods.current or 0) + step
    return (number,) if step and goods.current and goods.numbered(number) else ()


@lru_cache(maxsize=4096)
def explicit(comment: str, goods: Listing) -> tuple[int, ...]:
    """The numbers a comment gives products by, in their order."""
    labels = {*goods.labels, "link", "number", "no.", "no", "item", "product", "lot"}
    latin = "|".join(sorted((re.escape(x) + r"s?" for x in labels if x.isascii()), key=len)[::-1])
    signs = rf"(?:#\s*|№\s*)({N})|(\d{{1,3}}|{CJK_N})\s*(?:#|号)"
    one = rf"{signs}|(?:{latin})\s*#?\s*({N})\b|链接\s*({N})"
    ranks = rf"{'|'.join(NUMBER_WORDS)}|\d+(?:st|nd|rd|th)"
    ordinal = rf"\b({ranks})\s+(?:one|{latin})\b|第\s*({N})\s*[个款件号条]"
    found: list[tuple[int, int]] = []
    for match in re.finditer(f"{one}|{ordinal}", comment, re.IGNORECASE):
        text = next(g for g in match.groups() if g)
        found.append((match.start(), _number(text)))
        found += _joined(comment, match.end(), goods)
        found += _joined_before(comment, match.start(), goods)
    if not found:
        found = _bare(comment, goods)
    ordered = [n for _, n in sorted(found) if n > 0]
    return tuple(dict.fromkeys(ordered))


@lru_cache(maxsize=4096)
def by_name(comment: str, goods: Listing) -> tuple[tuple[int, ...], bool]:
    """The products whose name a comment holds, and whether it fits several alike."""
    shares = {p.number: _share(comment, p, goods) for p in goods.products}
    best = max(shares.values(), default=0.0)
    if best < NAME_SHARE:
        return (), False
    near = [n for n, s in shares.items() if s >= max(NAME_SHARE, NAME_RIVAL * best)]
    places = {n: _place(comment, goods.numbered(n)) for n in near}
    alike = len(near) > 1 and len(set(places.values())) == 1
    if len(near) == 1:
        others = _sharing(comment, near[0], goods)
        near, alike = near + others, bool(others)
        places |= dict.fromkeys(others, places[near[0]])
    return tuple(sorted(near, key=lambda n: (places[n], n))), alike


def _sharing(comment: str, number: int, goods: Listing) -> list[int]:
    """Other products whose names hold every word of this one's that the comment uses."""
    product = goods.numbered(number)
    said = (
        set(words(comment)) & {w for n in product.own_names for w in words(n)} if product else set()
    )
    said = {w for w in said if not w.isdigit()}
    if not said:
        return []
    return [
        p.number
        for p in goods.products
        if p.number != number and said <= {w for n in p.own_names for w in words(n)}
    ]


def pointed(scene: Scene) -> int | None:
    """The product that a comment without a name or number means.

    What the conversation was about, what the host last spoke of, what is presented: in the order
    in which the prompt itself puts them, where it does.
    """
    return next((n for n in context_numbers(scene) if n is not None), None)


def context_numbers(scene: Scene) -> tuple[int, ...]:
    """Every product the context points at, the nearest first."""
    sources = {
        "history": _latest(scene.history, scene),
        "host": _latest(scene.host, scene),
        "presented": scene.goods.current,
    }
    return tuple(n for name in scene.order if (n := sources[name]) is not None)


def _latest(lines: tuple[str, ...], scene: Scene) -> int | None:
    for line in reversed(lines):
        numbers = explicit(line, scene.goods)
        listed = [n for n in numbers if scene.goods.numbered(n)]
        named, ambiguous = by_name(line, scene.goods)
        if listed:
            return listed[-1]
        if named and not ambiguous:
            return named[-1]
    return None


def _number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else (number_of(text) or 0)


def _joined(comment: str, end: int, goods: Listing) -> list[tuple[int, int]]:
    """Numbers that are joined on: "links 1 and 3"."""
    found = []
    while match := re.compile(rf"{_JOIN}(?:#\s*)?({N})(?![\d.%])", re.IGNORECASE).match(
        comment, end
    ):
        number = _number(match[1])
        if goods.numbered(number) is None or _OTHER_UNIT.match(comment[match.end() :]):
            break
        found.append((match.start(1), number))
        end = match.end()
    return found


def _joined_before(comment: str, start: int, goods: Listing) -> list[tuple[int, int]]:
    """Numbers before a joined one: "1和3号"."""
    match = re.search(rf"(?<![\d.])(\d{{1,3}}|{CJK_N}){_JOIN}$", comment[:start], re.IGNORECASE)
    if match and goods.numbered(_number(match[1])):
        return [(match.start(1), _number(match[1]))]
    return []


def _bare(comment: str, goods: Listing) -> list[tuple[int, int]]:
    """Plain digits that are listed numbers and carry no unit."""
    found = []
    taken = [m.span() for m in (*MONEY.finditer(comment), *COUNT.finditer(comment))]
    for match in re.finditer(
        r"(?<![\d.\w])\d{1,2}(?![\d.]|\w)|(?<=[^\x00-\x7f])\d{1,2}(?=[^\d.])", comment
    ):
        inside = any(a <= match.start() < b for a, b in taken)
        listed = goods.numbered(int(match[0])) is not None
        if listed and not inside and not _OTHER_UNIT.match(comment[match.end() :]):
            found.append((match.start(), int(match[0])))
    return found


def _share(comment: str, product: Product, goods: Listing) -> float:
    """How much of one of a product's names a comment holds: rare words and the noun count more."""
    held, spoken_of, chinese = _said(comment)
    best = 0.0
    for name in product.own_names:
        runs = _name_runs(name)
        weight = {} if runs else _weights(name, goods)
        if not held.isdisjoint(weight):
            share = sum(w for word, w in weight.items() if word in held)
            share /= sum(weight.values()) or 1.0
            pointed_at = share and any(w in spoken_of and v >= 1 for w, v in weight.items())
            best = max(best, share + (POINTED_WORD if pointed_at else 0.0))
        for run in runs if chinese else ():
            piece = longest_common(run, comment)
            if len(piece) >= 2:
                best = max(best, CJK_PIECE * len(piece) / len(run))
    return best


@lru_cache(maxsize=256)
def _said(comment: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """The words of a comment, those it points at, and whether it holds Chinese."""
    pointed_at = frozenset(stem(w) for w in _THE.findall(comment))
    return frozenset(words(comment)), pointed_at, bool(cjk_runs(comment))


@lru_cache(maxsize=4096)
def _name_runs(name: str) -> tuple[str, ...]:
    return tuple(cjk_runs(name))


@lru_cache(maxsize=4096)
def _weights(name: str, goods: Listing) -> dict[str, float]:
    """How much each word of a name says: 1, its last noun 2, adjectives and codes 0.3."""
    head = re.split(r"\b(?:with|for|of|in)\b", name)[0]
    found = {}
    for word in words(name):
        plain = any(c.isdigit() for c in word) or word in _ADJECTIVES
        found[word] = 0.0 if word.isdigit() else (0.3 if plain else 1.0) / _bearers(word, goods)
    nouns = [w for w in words(head) if found.get(w, 0) > 0.3 / max(1, len(goods.products))]
    if nouns:
        found[nouns[-1]] *= 2
    return found


def _bearers(word: str, goods: Listing) -> int:
    return max(1, sum(word in held for held in _held(goods)))


@lru_cache(maxsize=512)
def _held(goods: Listing) -> tuple[frozenset[str], ...]:
    """The words of each product's names."""
    return tuple(frozenset(w for n in p.own_names for w in words(n)) for p in goods.products)


def _place(comment: str, product: Product | None) -> int:
    """Where in a comment a product's name begins."""
    lowered = comment.lower()
    spots = []
    for name in product.own_names if product else ():
        pieces = [longest_common(run, comment) for run in cjk_runs(name)]
        spots += [lowered.find(p) for p in pieces if len(p) >= 2]
        spots += [lowered.find(w) for w in words(name) if lowered.find(w) >= 0]
    return min((s for s in spots if s >= 0), default=len(comment))


def longest_common(a: str, b: str) -> str:
    """The longest string that stands in both."""
    best = ""
    for start in range(len(a)):
        while len(best) < len(a) - start and a[start : start + len(best) + 1] in b:
            best = a[start : start + len(best) + 1]
    return best
