"""What viewers do to spelling: typos, emoji, pinyin, stretched letters, openers, shouting.

Digits stay as they are, and a word of three letters or less is left alone: a comment stays one that
a person understands, and whose language is plain.
"""

import random
import re
from collections.abc import Callable

from harness_cli.simulator.scenarios.draws import pick
from harness_cli.simulator.scenarios.library import Noise

_WORD = re.compile(r"[A-Za-z]{5,}")
_VOWEL = re.compile(r"([aeouy])(?=[a-z]*\b)", re.IGNORECASE)
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LAST_HAN = re.compile(r"([\u4e00-\u9fff])([?？!！]*)$")


def noisy(text: str, language: str, noise: Noise, rng: random.Random) -> str:
    """`text` with one or two kinds of noise; never the same text."""
    kinds = _CHINESE if language == "zh" else _ENGLISH
    for name in rng.sample(sorted(kinds), 2 if rng.random() < 0.35 else 1):
        text = kinds[name](text, noise, rng)
    return text


def _typo(text: str, noise: Noise, rng: random.Random) -> str:
    words = list(_WORD.finditer(text))
    if not words:
        return _emoji(text, noise, rng)
    word = pick(rng, words)
    at = word.start() + rng.randrange(1, len(word[0]) - 1)
    how = rng.randrange(3)
    if how == 0:
        return text[:at] + text[at + 1 :]
    if how == 1:
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _emoji(text: str, noise: Noise, rng: random.Random) -> str:
    return text + " " + pick(rng, noise.emoji) * rng.randrange(1, 3)


def _stretch(text: str, noise: Noise, rng: random.Random) -> str:
    found = list(_VOWEL.finditer(text))
    if not found:
        return _emoji(text, noise, rng)
    at = found[-1].start()
    return text[:at] + text[at] * rng.randrange(3, 6) + text[at + 1 :]


def _opener(text: str, noise: Noise, rng: random.Random) -> str:
    return pick(rng, noise.openers_en) + text


def _shout(text: str, noise: Noise, rng: random.Random) -> str:  # noqa: ARG001  one signature
    return text.upper() + "!" * rng.randrange(1, 4)


def _marks(text: str, noise: Noise, rng: random.Random) -> str:  # noqa: ARG001
    return text.rstrip("?") + "?" * rng.randrange(2, 4)


def _pinyin(text: str, noise: Noise, rng: random.Random) -> str:
    known = [w for w in noise.pinyin if w in text and len(_HAN.findall(text.replace(w, "", 1))) > 3]
    if not known:
        return _stretch_zh(text, noise, rng)
    word = pick(rng, known)
    return text.replace(word, f" {noise.pinyin[word]} ", 1).strip()


def _stretch_zh(text: str, noise: Noise, rng: random.Random) -> str:
    found = _LAST_HAN.search(text)
    if not found or found[1] not in "吗呢呀啊吧啦少货发":
        return _emoji(text, noise, rng)
    return text[: found.start()] + found[1] * rng.randrange(2, 5) + found[2]


def _opener_zh(text: str, noise: Noise, rng: random.Random) -> str:
    return pick(rng, noise.openers_zh) + text


def _marks_zh(text: str, noise: Noise, rng: random.Random) -> str:  # noqa: ARG001
    return text + "？" * rng.randrange(2, 4)


_ENGLISH: dict[str, Callable[[str, Noise, random.Random], str]] = {
    "emoji": _emoji,
    "marks": _marks,
    "opener": _opener,
    "shout": _shout,
    "stretch": _stretch,
    "typo": _typo,
}
_CHINESE: dict[str, Callable[[str, Noise, random.Random], str]] = {
    "emoji": _emoji,
    "marks": _marks_zh,
    "opener": _opener_zh,
    "pinyin": _pinyin,
    "stretch": _stretch_zh,
}
