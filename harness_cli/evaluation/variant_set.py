"""`python -m harness_cli.evaluation.variant_set`: draw harness_variant_qa anew.

Each item of the base set gets a state of its own, kept as recipe and seed, and is held against it:
the state is valid, and the item's gold solution passes every hook and rubric under it. The same
harness, items, tables and seed give the same bytes. Items of a sealed split are opened with a
reason, which is logged.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness_cli.augmentation.golds import Grounds
from harness_cli.augmentation.preserving import augment_preserving
from harness_cli.augmentation.recipes import read_recipe
from harness_cli.evaluation.augmenting import golds_of, grounds_of
from harness_cli.evaluation.drawn import row_of
from harness_cli.evaluation.evalsets import load_evalset, load_header
from harness_cli.harness.load import harness_files, state_from_files
from harness_cli.records.augmentation import DrawnState, DrawnStates, Recipe
from harness_cli.records.canonical import digest, write_atomic
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.simulator.oracle import Oracle
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.project import Project
from harness_cli.store.tree import Entry

NAME = "harness_variant_qa"
SEED = 20261130
RECIPE, STATES = "augment.yaml", "states.json"
_encode = msgspec.json.Encoder().encode
Said = Callable[[int, int], None]


@dataclass
class Tally:
    """What drawing a set came to."""

    discards: Counter[str] = field(default_factory=Counter)
    """Kind of reason → draws that were not valid."""
    without_gold: int = 0
    """Items whose state no gold solution was held against: the oracle has none that is right."""


async def draw_rows(
    files: Mapping[str, Entry],
    base: HarnessState,
    recipe: Recipe,
    items: Sequence[Item],
    oracle: Oracle,
    *,
    seed: int,
    prefix: str = "hsa",
    said: Said | None = None,
) -> tuple[list[DrawnState], Tally]:
    """A state for each item, in order; item n has the seed `seed + n`."""
    grounds: Grounds = grounds_of(oracle)
    rows, tally = [], Tally()
    for number, item in enumerate(items):
        golds = await golds_of(oracle, base, [item], grounds)
        tally.without_gold += not golds
        name = f"{prefix}-{number + 1:04d}"
        made = await augment_preserving(
            files, base, recipe, seed + number, golds, grounds, name=name, items=(item,)
        )
        tally.discards.update(fault.kind for fault in made.discards)
        rows.append(row_of(made, item, seed + number))
        if said is not None:
            said(number + 1, len(items))
    return rows, tally


def states_text(base: str, recipe: Recipe, rows: Sequence[DrawnState]) -> bytes:
    """`states.json`: one row a line, so that a changed state is a changed line."""
    head = _encode({"schema": 1, "base": base, "recipe": recipe})[:-1]
    lines = b",\n".join(_encode(row) for row in rows)
    return head + b',"states":[\n' + lines + b"\n]}\n"


def make_set(
    project: Project,
    name: str,
    *,
    reason: str | None,
    seed: int = SEED,
    limit: int | None = None,
    out: Path | None = None,
    said: Said | None = None,
) -> tuple[DrawnStates, Tally]:
    """Draw the states of an evalset by the recipe in its folder, and write them."""
    header = load_header(project, name)
    folder = project.evalsets / name
    recipe = read_recipe(folder / RECIPE, name=f"{name}/{RECIPE}")
    split = next(iter(header.splits))
    base_set = load_evalset(project, str(header.items_of), split=split, reason=reason)
    items = list(base_set.items.first(limit))
    files = harness_files(project)
    base = state_from_files(files)
    oracle = read_oracle(project.evalsets)
    rows, tally = asyncio.run(draw_rows(files, base, recipe, items, oracle, seed=seed, said=said))
    write_atomic((out or folder) / STATES, states_text(base.id, recipe, rows))
    return DrawnStates(base=base.id, recipe=recipe, states=tuple(rows)), tally


def main(argv: list[str] | None = None) -> int:
    """Parse, draw, say what was drawn."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.evaluation.variant_set", description=__doc__
    )
    parser.add_argument("--name", default=NAME, help="the evalset; default: %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="default: of the shipped set")
    parser.add_argument("--limit", type=int, help="only the first items: for a look")
    parser.add_argument("--out", type=Path, help="write states.json elsewhere")
    parser.add_argument("--project", type=Path, default=Path(), help="default: here")
    parser.add_argument("--reason", required=True, help="why the sealed split is opened")
    chosen = parser.parse_args(argv)
    drawn, tally = make_set(
        Project.find(chosen.project),
        chosen.name,
        reason=chosen.reason,
        seed=chosen.seed,
        limit=chosen.limit,
        out=chosen.out,
        said=_said,
    )
    discards = sum(tally.discards.values())
    draws = discards + len(drawn.states)
    sys.stdout.write(
        f"{len(drawn.states)} states of {drawn.base[:12]}, digest {digest(drawn)[:12]}\n"
        f"discarded {discards} of {draws} draws: {dict(tally.discards)}\n"
        f"{tally.without_gold} items without a gold solution\n"
    )
    return 0


def _said(done: int, of: int) -> None:
    if done % 100 == 0 or done == of:
        sys.stderr.write(f"{done}/{of}\n")


if __name__ == "__main__":
    sys.exit(main())
