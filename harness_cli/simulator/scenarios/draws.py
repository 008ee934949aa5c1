"""Seeded choices: the same seed gives the same items, on every machine and Python."""

import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def generator(*parts: object) -> random.Random:
    """A generator of its own for one purpose; a text seed is hashed, never `hash()`ed."""
    return random.Random("/".join(str(p) for p in parts))


def shares(weights: Mapping[str, float], total: int) -> dict[str, int]:
    """`total` split by weight with largest remainders; ties go to the earlier name."""
    whole = sum(weights.values())
    exact = {name: total * weight / whole for name, weight in weights.items()}
    counts = {name: int(value) for name, value in exact.items()}
    order = sorted(exact, key=lambda name: (-(exact[name] - counts[name]), list(exact).index(name)))
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def spread(weights: Mapping[str, float], total: int, rng: random.Random) -> list[str]:
    """`total` names in the shares of their weights, shuffled."""
    names = [name for name, count in shares(weights, total).items() for _ in range(count)]
    rng.shuffle(names)
    return names


class NothingFits(ValueError):
    """There is nothing to choose from: a scenario that this room cannot have."""


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """One of `options`. Raises `NothingFits` where there are none."""
    if not options:
        raise NothingFits("nothing to choose from")
    return options[rng.randrange(len(options))]
