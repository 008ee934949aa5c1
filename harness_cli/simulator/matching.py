"""Keyword search over products and FAQ entries: word and character overlap, nothing learned."""

import re
from collections.abc import Iterable
from itertools import pairwise

from harness_cli.records.catalogue import Faq, Product

_LATIN = re.compile(r"[a-z0-9]+")
_HAN = re.compile(r"[\u4e00-\u9fff]+")
_STOP_WORDS = """
a an and any are at be by can do does for from get got have how i if in is it its me my of on one
or please so some something that the there these thing this to under we what when where which with
would you your link room
"""
_STOP = frozenset(_STOP_WORDS.split())
_STOP_HAN = frozenset("的了吗呢啊吧我你他是有没就都也在这那个款主播请问一下能可以什么怎么多少")


def terms(text: str) -> frozenset[str]:
    """Content words: Latin words without a plural s, single and paired Chinese characters."""
    low = text.casefold()
    words = {w[:-1] if len(w) > 3 and w.endswith("s") else w for w in _LATIN.findall(low)}
    found = {w for w in words if w not in _STOP}
    for run in _HAN.findall(low):
        found |= {a + b for a, b in pairwise(run)}
        found |= {c for c in run if c not in _STOP_HAN}
    return frozenset(found)


def product_score(query: str, product: Product) -> float:
    """How well a query fits a product; 0 when nothing does.

    A keyword or the name that occurs whole counts most, then words shared with the name, the
    category and the attribute values.
    """
    low = query.casefold()
    wanted = terms(query)
    whole = [k for k in product.keywords if _occurs(k.casefold(), low)]
    score = 3.0 * max((_length(k) for k in whole), default=0.0) + 0.5 * max(len(whole) - 1, 0)
    named = terms(f"{product.name} {product.zh_name} {' '.join(product.keywords)}")
    kind = terms(f"{product.category} {product.zh_category}")
    values = terms(" ".join(f"{a.value} {a.zh_value}" for a in product.attributes))
    score += (
        2.0 * _share(wanted, named) + 1.0 * _share(wanted, kind) + 0.75 * _share(wanted, values)
    )
    return round(score, 4)


def faq_score(query: str, entry: Faq) -> float:
    """Overlap of a query with an entry's questions, the mean of both directions, in [0, 1]."""
    return max(
        _overlap(terms(query), terms(entry.question)),
        _overlap(terms(query), terms(entry.zh_question)),
    )


def ranked(scored: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Positive scores, best first, ties in the given order."""
    return sorted(((s, i) for s, i in scored if s > 0), key=lambda pair: (-pair[0], pair[1]))


def _occurs(keyword: str, text: str) -> bool:
    if keyword.isascii():
        return re.search(rf"\b{re.escape(keyword)}s?\b", text) is not None
    return keyword in text


def _length(keyword: str) -> float:
    return min(len(keyword), 12) / 12 if keyword.isascii() else min(len(keyword), 4) / 4


def _weight(words: frozenset[str]) -> float:
    """A lone Chinese character says a third of what a word or a pair says."""
    return sum(1 / 3 if len(w) == 1 and not w.isascii() else 1.0 for w in words)


def _share(wanted: frozenset[str], offered: frozenset[str]) -> float:
    return _weight(wanted & offered) / _weight(wanted) if wanted else 0.0


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    if not a or not b:
        return 0.0
    shared = _weight(a & b)
    return round((shared / _weight(a) + shared / _weight(b)) / 2, 4)
