"""Typing errors of viewers, set right where the harness's own texts show which word is meant."""

import re
from collections.abc import Callable
from functools import lru_cache

CHANGED = 6
"""Only in words this long is another letter taken for a slip: `wash` is no misspelt `wish`."""
_WORD = re.compile(r"[A-Za-z]{4,}")


@lru_cache(maxsize=256)
def vocabulary(text: str) -> frozenset[str]:
    """The words of a text, in small letters."""
    return frozenset(w.lower() for w in _WORD.findall(text))


def corrected(comment: str, known: frozenset[str], is_word: Callable[[str], bool]) -> str:
    """A comment whose misspelt words are replaced by a known word one slip away.

    A word is left alone when it is known, when it is a word of English, when two known words are
    as near, or when the first letter differs (the one that people rarely miss).
    """

    def right(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word in known or is_word(word):
            return match[0]
        near = sorted(w for w in known if _one_slip(word, w))
        return near[0] if len(near) == 1 else match[0]

    return _WORD.sub(right, comment)


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter added, dropped, changed or swapped with its neighbour makes a into b."""
    if a[0] != b[0] or abs(len(a) - len(b)) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return len(a) != len(b)
    rest_a, rest_b = a[start:], b[start:]
    swapped = rest_a[1:2] + rest_a[:1] + rest_a[2:]
    return (
        rest_a[1:] == rest_b
        or rest_a == rest_b[1:]
        or rest_a[1:] == rest_b[1:]
        or swapped == rest_b
    )
