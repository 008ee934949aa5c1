"""Augmented states that provably keep a task: drawn until gold solutions pass under them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness_cli.augmentation.golds import Gold, Grounds, gold_faults
from harness_cli.augmentation.paraphrases import Book
from harness_cli.augmentation.states import Augmented, draws, no_state
from harness_cli.augmentation.validate import Fault
from harness_cli.records.augmentation import Recipe
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.store.tree import Entry


async def augment_preserving(
    files: Mapping[str, Entry],
    base: HarnessState,
    recipe: Recipe,
    seed: int,
    golds: Sequence[Gold],
    grounds: Grounds,
    *,
    name: str | None = None,
    items: Sequence[Item] = (),
    book: Book | None = None,
) -> Augmented:
    """As `augment`, with every gold solution mapped and played under the state.

    `files` and `base` are the same harness. A draw under which a gold solution fails that passes
    under the base is discarded. Raises `NoState`.
    """
    discards: list[Fault] = []
    for made, faults in draws(files, recipe, seed, name=name, items=items, book=book):
        if made is not None:
            faults = await gold_faults(made.state, made.map, base, golds, grounds)
            if not faults:
                return replace(made, discards=tuple(discards))
        discards.append(faults[0])
    raise no_state(name or f"seed {seed}", discards)
