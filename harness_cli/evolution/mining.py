"""Phrases that tell one set of comments from another, English and Chinese.

A phrase counts once a text and is kept when Fisher's exact test (one-sided) finds it more often in
the first set than chance would put it there. What is asked *about* is taken out first: link
numbers, product names and pronouns become the slot `…`, so that "when will link 3 be sent" and
"when will the kettle be sent" are one phrase, and no product is learnt by heart.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

SLOT = "…"
WORDS = 3
"""Longest English phrase, in words; one more where a slot stands between them."""
HAN = 4
"""Longest Chinese phrase, in characters."""
P = 0.05
"""A phrase that chance would put there more often is none."""

_TOKEN = re.compile(r"…|[^\W\d_\u3400-\u9fff]+(?:'[^\W\d_\u3400-\u9fff]+)?|[\u3400-\u9fff]+|\d+|\S")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[^\W\d_\u3400-\u9fff]+")
_SLOTS = re.compile(rf"(?:\b(?:the|a|an|my|your)\s+)?{SLOT}(?:\s*{SLOT})*")
_NUMBERED = re.compile(
    r"(?:#|\b(?:link|number|no|item)\b[ .]*)[ ]*\d+"
    r"|\d+\s*号(?:链接)?|[一二三四五六七八九十]+号(?:链接)?"
)
_POINTED = re.compile(r"\b(?:this|that|the other)(?: one)?\b|\bit\b|[这那](?:个|款|件|双|条)|它")
_STOP_TEXT = """
    a about again all am an and any are as at be been but by can cant could did do does
    doing dont for from get give go going got had has have he hey hi him his host how huh i
    i'd i'll i'm if in into is isn't it it's its just know let like link make many may me
    more much my need no not now number of oh ok on one only or our out please quick
    question really say see she should so some tell than that that's the their them then
    there these they thing this those to too um up us very want was we well were what what's
    when where which who why will with won't would yes you your
"""
_STOP = frozenset(re.findall(r"\S+", _STOP_TEXT))
"""Words that say nothing by themselves about what a comment wants."""
_HAN_STOP = re.compile(
    "怎么|什么|多少|可以|是不是|有没有|还有|哪个|哪|现在|主播|请问|一下|吗|呢|的|了|吧|啊|呀|我|你|们|是|有|在|个|"
    "这|那|想|要|就|都|给|和|不|没|么|请|问"
)


class Phrase(NamedTuple):
    """A phrase and in how many texts of either set it stands."""

    text: str
    support: int
    against: int
    p: float
    """Of Fisher's exact test, one-sided."""

    @property
    def precision(self) -> float:
        """Of the texts that hold the phrase, the share in the first set."""
        return self.support / (self.support + self.against)


def plain(text: str, names: Collection[str] = ()) -> str:
    """A comment in small letters with what it is about as a slot.

    `names` are words of product names and whole Chinese names.
    """
    text = text.casefold().replace("’", "'")
    for name in sorted((n for n in names if _HAN.match(n)), key=len, reverse=True):
        text = text.replace(name, SLOT)
    text = _POINTED.sub(SLOT, _NUMBERED.sub(SLOT, text))
    if names:
        text = _LATIN.sub(lambda m: SLOT if m[0] in names and m[0] not in _STOP else m[0], text)
    return _SLOTS.sub(SLOT, text)


def phrases_of(text: str) -> set[str]:
    """Every telling phrase of a `plain` text: 1–3 words, or 2–4 characters of a Chinese run."""
    return {phrase for phrase in _grams(text) if telling(phrase)}


def telling(phrase: str) -> bool:
    """Some word of the phrase says what is wanted."""
    if _HAN.match(phrase):
        return bool(_HAN_STOP.sub("", phrase))
    return any(len(word) > 2 and word not in _STOP for word in phrase.split() if word != SLOT)


def _grams(text: str) -> Iterator[str]:
    words: list[str] = []
    for token in _TOKEN.findall(text):
        if _HAN.match(token):
            for size in range(2, HAN + 1):
                yield from (token[i : i + size] for i in range(len(token) - size + 1))
        if token == SLOT or (token[0].isalpha() and not _HAN.match(token)):
            words.append(token)
            yield from _endings(words)
        else:  # a phrase never reaches over punctuation, a number or another script
            words.clear()


def _endings(words: Sequence[str]) -> Iterator[str]:
    """The phrases that end with the last word and neither begin nor end with a slot."""
    if words[-1] == SLOT:
        return
    for start in range(len(words) - 1, max(len(words) - WORDS - 3, -1), -1):
        part = words[start:]
        slots = part.count(SLOT)
        if part[0] != SLOT and slots < 2 and len(part) - slots <= WORDS + slots:
            yield " ".join(part)


def contrast(
    positive: Iterable[str],
    negative: Iterable[str],
    *,
    min_support: int = 3,
    min_precision: float = 0.0,
    limit: int = 12,
) -> tuple[Phrase, ...]:
    """The phrases that mark the first texts against the second, best first.

    A phrase that stands in `min_support` texts is kept when chance would rarely put it there and
    its precision is high enough; one that only repeats a better phrase is dropped.
    """
    here, n_here = count(positive)
    there, n_there = count(negative)
    return contrast_counts(
        here,
        n_here,
        there,
        n_there,
        min_support=min_support,
        min_precision=min_precision,
        limit=limit,
    )


def contrast_counts(
    here: Counter[str],
    n_here: int,
    there: Counter[str],
    n_there: int,
    *,
    min_support: int = 3,
    min_precision: float = 0.0,
    limit: int = 12,
) -> tuple[Phrase, ...]:
    """`contrast` of counts (phrase → texts that hold it) and numbers of texts."""
    found = []
    for phrase, support in here.items():
        against = there[phrase]
        if support >= min_support and support / (support + against) >= min_precision:
            p = fisher(support, n_here, against, n_there)
            if p <= P:
                found.append(Phrase(phrase, support, against, p))
    found.sort(key=lambda f: (round(math.log10(f.p + 1e-300), 6), -len(f.text), f.text))
    return tuple(_distinct(found))[:limit]


def cover(texts: Sequence[str], phrases: Sequence[Phrase], *, limit: int) -> tuple[Phrase, ...]:
    """Few phrases that together stand in most texts: greedy, each must add a text or more."""
    holds = [phrases_of(t) for t in texts]
    left, chosen = set(range(len(texts))), list[Phrase]()
    pool = list(phrases)
    while pool and len(chosen) < limit:
        gains = [(sum(p.text in holds[i] for i in left), -pool.index(p), p) for p in pool]
        gain, _, best = max(gains, key=lambda g: g[:2])
        if gain == 0:
            break
        chosen.append(best)
        pool.remove(best)
        left -= {i for i in left if best.text in holds[i]}
    return tuple(chosen)


def count(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """Phrase → number of texts that hold it, and the number of texts."""
    counts: Counter[str] = Counter()
    total = 0
    for text in texts:
        total += 1
        counts.update(phrases_of(text))
    return counts, total


def fisher(here: int, n_here: int, there: int, n_there: int) -> float:
    """P(at least `here` of the `here + there` texts fall in the first set), hypergeometric.

    Source: Fisher's exact test, one-sided.
    """
    drawn, total = here + there, n_here + n_there
    most = min(drawn, n_here)
    whole = _log_choose(total, drawn)
    tail = (
        math.exp(_log_choose(n_here, k) + _log_choose(n_there, drawn - k) - whole)
        for k in range(here, most + 1)
        if drawn - k <= n_there
    )
    return min(1.0, sum(tail))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _distinct(found: Iterable[Phrase]) -> Iterator[Phrase]:
    kept: list[Phrase] = []
    for phrase in found:
        if not any(_repeats(phrase, k) for k in kept):
            kept.append(phrase)
            yield phrase


def _repeats(phrase: Phrase, better: Phrase) -> bool:
    wider = _within(better.text, phrase.text) and better.support >= phrase.support
    return wider or _within(phrase.text, better.text)


def _within(part: str, whole: str) -> bool:
    if _HAN.match(part):
        return part in whole
    return f" {part} " in f" {whole} "


def pattern_of(phrase: str) -> str:
    """A regular expression that finds the phrase as words of a comment; a slot is a few words."""
    if _HAN.match(phrase):
        return re.escape(phrase)
    parts = [re.escape(part.strip()).replace("\\ ", r"\s+") for part in phrase.split(SLOT)]
    return r"\b" + r"\s+\S.{0,40}?\s+".join(parts).replace("'", "['’]") + r"\b"


def matches(phrases: Iterable[str], text: str) -> bool:
    """Some phrase stands in the text."""
    return any(re.search(pattern_of(p), text, re.IGNORECASE) for p in phrases)
