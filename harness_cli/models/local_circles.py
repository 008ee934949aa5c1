"""When a generation goes round in circles: a small model, decoded greedily, seldom gets out."""

from collections.abc import Sequence
from typing import Final

LENGTHS: Final = range(4, 33)
"""Lengths in tokens of a round that are looked for. Rounds of one to three tokens ("ha ha ha") are
found as one of 4 to 6, so after twelve tokens at the earliest."""
ROUNDS: Final = 3


def circle(tokens: Sequence[int]) -> int:
    """Length of the round of which the last tokens are `ROUNDS` copies, the shortest; or 0."""
    for length in LENGTHS:
        if len(tokens) < ROUNDS * length:
            return 0
        tail = tokens[-ROUNDS * length :]
        if tail[length:] == tail[:-length]:
            return length
    return 0


def said_once(tokens: Sequence[int], length: int) -> Sequence[int]:
    """`tokens` without the copies of its last round, whose `length` `circle` found."""
    return tokens[: len(tokens) - (ROUNDS - 1) * length]
