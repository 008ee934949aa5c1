"""New names for what a harness holds: from the curated table, else neutral ones."""

from collections.abc import Collection, Iterable, Mapping
from random import Random

from harness_cli.augmentation.tables import Named

_FIRST = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade")
_SECOND = ("guide", "desk", "sheet", "page", "notes", "path", "board", "book")


def renamed(
    names: Iterable[str],
    table: Mapping[str, Named],
    taken: Collection[str],
    draw: Random,
    chance: float,
    *,
    joint: str,
) -> dict[str, str]:
    """Some of the names → new ones, which are no name of the harness and no two alike.

    A name that the table does not know gets a neutral one: two words and `joint` between them.
    """
    found: dict[str, str] = {}
    used = set(taken)
    for name in names:
        if draw.random() >= chance:
            continue
        known = [n for n in table[name].names if n not in used] if name in table else []
        new = draw.choice(known) if known else neutral(draw, used, joint)
        found[name] = new
        used.add(new)
    return found


def neutral(draw: Random, used: Collection[str], joint: str) -> str:
    """A name that says nothing about what it names."""
    while True:
        made = f"{draw.choice(_FIRST)}{joint}{draw.choice(_SECOND)}"
        if made not in used:
            return made
        made = f"{made}{joint}{draw.randrange(2, 100)}"
        if made not in used:
            return made
