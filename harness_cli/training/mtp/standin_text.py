"""Synthetic conversations of a live shop: regular enough that a tiny model learns to speak them.

They stand in for a task; nothing about quality follows from them. Each dialect is a task of its
own, so that a policy trained on the next one moves away from the head of the one before.
"""

import random
from collections.abc import Iterator
from typing import Final, Literal

Dialect = Literal["base", "task", "moved"]
Turn = tuple[str, str]
"""What the viewer says, what the host says."""

GOODS: Final = ("lamp", "mug", "scarf", "kettle", "chair", "phone case")
COLOURS: Final = ("red", "blue", "white", "green")
SHAPES: Final[dict[Dialect, tuple[tuple[str, str], ...]]] = {
    "base": (
        ("how much is the {g}", "The {g} is {p} yuan today, and it comes in {c}."),
        ("is there a {c} {g}", "Yes, the {g} comes in {c}, take link {n} below."),
        ("when will it arrive", "We ship within two days and it arrives in a week."),
        ("hello", "Hello and welcome to our live room, have a look around!"),
    ),
    "task": (
        (
            "how much is the {g}",
            '<tool_call>{{"name": "get_product", "arguments": {{"link_id": {n}}}}}</tool_call>',
        ),
        ("is there a {c} {g}", "Link {n} has the {g} in {c}; the price on screen is {p} yuan!"),
        (
            "when will it arrive",
            '<tool_call>{{"name": "get_delivery", "arguments": {{"link_id": {n}}}}}</tool_call>',
        ),
        ("hello", "Glad you are here, friend! Tonight every {g} is on offer, see link {n}."),
    ),
    "moved": (
        ("how much is the {g}", "{p} yuan only -- grab the {g} while number {n} is still open!!"),
        ("is there a {c} {g}", "Sure thing: {c} it is -- tap number {n} for your {g} now!!"),
        ("when will it arrive", "Parcels leave tonight -- expect yours the day after tomorrow!!"),
        ("hello", "Hi hi hi -- so happy that you dropped in on us tonight!!"),
    ),
}


def turns(dialect: Dialect, seed: int) -> Iterator[Turn]:
    """Conversations without end, the same ones for a seed."""
    draws = random.Random(f"{dialect}:{seed}")
    while True:
        asked, said = draws.choice(SHAPES[dialect])
        slots = {
            "g": draws.choice(GOODS),
            "c": draws.choice(COLOURS),
            "p": str(draws.randrange(10, 100)),
            "n": str(draws.randrange(1, 9)),
        }
        yield asked.format(**slots), said.format(**slots)
