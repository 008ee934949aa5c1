"""The stratified draw, and who stands under A: the first by a seed, the second by a secret."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness_cli.errors import UsageError
from harness_cli.records.blind import System

REPEAT_GAP = 4
"""A repeated pair comes at least a REPEAT_GAP-th of the sheet after its first showing."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place of the sheet."""

    pair: str
    item_id: str
    stratum: str
    a: System
    repeats: str | None = None


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """n places over strata in proportion to their sizes, by largest remainder (Hamilton).

    Equal remainders go to the larger stratum, then by name. Raises `UsageError` for more places
    than there are items.
    """
    total = sum(sizes.values())
    if n > total:
        raise UsageError(f"{n} pairs are asked for, {total} are there", hint=f"--pairs {total}")
    quotas = {name: n * size / total for name, size in sizes.items()}
    places = {name: int(quota) for name, quota in quotas.items()}
    left = n - sum(places.values())
    order = sorted(sizes, key=lambda s: (-(quotas[s] - places[s]), -sizes[s], s))
    for name in order[:left]:
        places[name] += 1
    return places


def draw(strata: Mapping[str, Sequence[str]], n: int, seed: int) -> dict[str, str]:
    """n items, item id → stratum: the same for the same seed and items, in whatever order given."""
    rng = random.Random(f"draw {seed}")
    places = allocate({name: len(ids) for name, ids in strata.items()}, n)
    drawn = {}
    for name in sorted(strata):
        for item in rng.sample(sorted(strata[name]), places[name]):
            drawn[item] = name
    return drawn


def lay_out(
    drawn: Mapping[str, str], secret: str, *, review: float, repeatable: set[str]
) -> list[Place]:
    """The order of the sheet and who is A, by the secret.

    Within each stratum the sides are even to within one, so that a liking for the left is nobody's
    gain; a share `review` of the `repeatable` items comes a second time with sides swapped.
    """
    rng = random.Random(f"sides {secret}")
    sides = _sides(drawn, rng)
    order = sorted(drawn)
    rng.shuffle(order)
    again = [item for item in order if item in repeatable]
    wanted = rng.sample(again, min(len(again), round(review * len(drawn))))
    sequence: list[tuple[str, bool]] = [(item, False) for item in order]
    gap = max(1, len(order) // REPEAT_GAP)
    for item in wanted:
        first = sequence.index((item, False))
        earliest = min(first + gap, len(sequence))
        sequence.insert(rng.randint(earliest, len(sequence)), (item, True))
    return _named(sequence, drawn, sides, secret)


def _sides(drawn: Mapping[str, str], rng: random.Random) -> dict[str, System]:
    sides: dict[str, System] = {}
    both: tuple[System, System] = ("baseline", "candidate")
    start = rng.randrange(2)
    for stratum in sorted(set(drawn.values())):
        members = sorted(item for item, name in drawn.items() if name == stratum)
        rng.shuffle(members)
        for item in members:
            sides[item] = both[start]
            start = 1 - start
    return sides


def _named(
    sequence: Sequence[tuple[str, bool]],
    drawn: Mapping[str, str],
    sides: Mapping[str, System],
    secret: str,
) -> list[Place]:
    """Every place under a name that belongs to this sheet alone."""
    names = {
        entry: f"p{n:03d}-{hashlib.sha256(f'{secret} {n}'.encode()).hexdigest()[:6]}"
        for n, entry in enumerate(sequence, 1)
    }
    swapped: dict[System, System] = {"baseline": "candidate", "candidate": "baseline"}
    return [
        Place(
            pair=names[item, again],
            item_id=item,
            stratum=drawn[item],
            a=swapped[sides[item]] if again else sides[item],
            repeats=names[item, False] if again else None,
        )
        for item, again in sequence
    ]
