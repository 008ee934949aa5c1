"""Augmented states written to a folder: each a harness directory, and the map of its names.

    OUT/hsa-0001/       a harness_repo
    OUT/hsa-0001.yaml   AugmentationMap, written last: with it the state is there
    OUT/drawn.jsonl     what was changed and discarded, a line a state

A state that is there is not drawn again, so that a command that was stopped goes on where it was.
"""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness_cli.augmentation.distance import Edits, edits
from harness_cli.augmentation.golds import Gold, Grounds, base_faults
from harness_cli.augmentation.paraphrases import Book
from harness_cli.augmentation.preserving import augment_preserving
from harness_cli.augmentation.states import Augmented, NoState
from harness_cli.errors import RolloutError, Stale, UsageError
from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.augmentation import AugmentationMap, Recipe
from harness_cli.records.canonical import digest, write_atomic
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.reader import dump_yaml, read_yaml
from harness_cli.simulator.oracle import Oracle
from harness_cli.simulator.solutions import solve
from harness_cli.store.appending import append_durably
from harness_cli.store.tree import EXECUTABLE, Entry

LOG = "drawn.jsonl"
_encode = msgspec.json.Encoder(order="sorted").encode


class DrawnLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `drawn.jsonl`."""

    state: str
    seed: int
    tree: str
    edits: dict[str, Edits]
    """Dimension → what it changed."""
    discards: tuple[str, ...] = ()
    """One reason for each draw before it that was not valid."""


@dataclass
class Drawing:
    """What a command draws from: base, recipe, golds."""

    files: Mapping[str, Entry]
    base: HarnessState
    recipe: Recipe
    golds: Sequence[Gold]
    grounds: Grounds
    book: Book = field(default_factory=Book)
    items: Sequence[Item] = ()
    """Where there are any, each state is for the next of them, and holds that item's gold."""
    probed: int = 0
    """Items whose gold solutions were asked for."""


@dataclass
class Drawn:
    """What came of it."""

    lines: list[DrawnLine] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """State → why every draw of it was discarded."""
    lost: list[str] = field(default_factory=list)
    """One reason for each draw of those."""
    kept: int = 0
    """States that were there already."""
    golds: int = 0
    """Gold solutions that states were held against …"""
    probed: int = 0
    """… of so many items that were looked at; others have none that is right under the base."""

    @property
    def discards(self) -> list[str]:
        """One reason for each draw that was not valid, also of states that were given up."""
        return [*(d for line in self.lines for d in line.discards), *self.lost]

    @property
    def discard_rate(self) -> float:
        """Draws that were not valid, of all draws."""
        draws = len(self.discards) + len(self.lines)
        return len(self.discards) / draws if draws else 0.0

    def reasons(self) -> Counter[str]:
        """Kind of reason → discards."""
        return Counter(d.partition(":")[0] for d in self.discards)


async def write_states(
    drawing: Drawing,
    out: Path,
    *,
    count: int,
    seed: int,
    prefix: str = "hsa",
    said: Callable[[int, int], None] | None = None,
) -> Drawn:
    """Draw `count` states into `out`; those that are there stay.

    Raises `Stale` where `out` holds states of another base, recipe or seed.
    """
    out.mkdir(parents=True, exist_ok=True)
    for left in out.glob(".*.part"):
        shutil.rmtree(left, ignore_errors=True)
    known = {line.state: line for line in read_lines(out / LOG)}
    drawn = Drawn(golds=len(drawing.golds), probed=drawing.probed)
    for number in range(count):
        await asyncio.sleep(0)  # nothing else here waits: so ^C is heard between two states
        name = f"{prefix}-{number + 1:04d}"
        if _there(out, name, drawing, seed + number):
            drawn.kept += 1
            if name in known:
                drawn.lines.append(known[name])
        else:
            try:
                made = await _draw(drawing, number, name, seed + number)
            except NoState as exc:
                drawn.failed[name] = str(exc)
                drawn.lost += map(str, exc.discards)
                continue
            line = line_of(made, seed + number)
            append_durably(out / LOG, _encode(line) + b"\n", mend=True)
            write_state(out, made)
            drawn.lines.append(line)
        if said is not None:
            said(number + 1, count)
    return drawn


async def golds_of(
    oracle: Oracle, base: HarnessState, items: Sequence[Item], grounds: Grounds
) -> list[Gold]:
    """The items with a gold solution that is right under the base; others are left out."""
    found = []
    for item in items:
        try:
            gold = Gold(item, await solve(oracle, item))
        except (UsageError, RolloutError, LookupError):  # no answer, or no item of the library
            continue
        if not await base_faults(base, gold, grounds):
            found.append(gold)
    return found


def grounds_of(oracle: Oracle) -> Grounds:
    """The judge without a model, on the oracle's world."""
    return Grounds(oracle.world, GroundedJudge())


def line_of(made: Augmented, seed: int) -> DrawnLine:
    """What is kept of a draw beside its files."""
    return DrawnLine(
        state=made.map.state,
        seed=seed,
        tree=made.state.id,
        edits={c.dimension: edits(c) for c in made.changes},
        discards=tuple(str(f) for f in made.discards),
    )


def write_state(out: Path, made: Augmented) -> None:
    """The harness as a folder, whole or not at all, then its map."""
    name = made.map.state
    part, folder = out / f".{name}.part", out / name
    for path, entry in made.files.items():
        place = part / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(entry.data)
        if entry.mode == EXECUTABLE:
            place.chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(part, folder)  # noqa: PTH105  of a folder
    given = msgspec.structs.replace(made.map, folder=name)
    write_atomic(out / f"{name}.yaml", dump_yaml(given).encode())


def read_lines(path: Path) -> Iterator[DrawnLine]:
    """The lines of `drawn.jsonl`; a torn last one is passed over."""
    if not path.is_file():
        return
    for raw in path.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(raw, type=DrawnLine)
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue


def _there(out: Path, name: str, drawing: Drawing, seed: int) -> bool:
    path = out / f"{name}.yaml"
    if not path.is_file() or not (out / name).is_dir():
        return False
    given = read_yaml(path, AugmentationMap, name=str(path))
    wanted = (drawing.base.id, digest(drawing.recipe)[:12], seed)
    if (given.base, given.recipe, given.seed) != wanted:
        raise Stale(
            f"`{path}` is of another base, recipe or seed",
            hint="write to another folder, or remove this one",
        )
    return True


async def _draw(drawing: Drawing, number: int, name: str, seed: int) -> Augmented:
    golds, items = drawing.golds, drawing.items
    if items:
        item = items[number % len(items)]
        items = (item,)
        golds = [g for g in golds if g.item.id == item.id]
    return await augment_preserving(
        drawing.files,
        drawing.base,
        drawing.recipe,
        seed,
        golds,
        drawing.grounds,
        name=name,
        items=items,
        book=drawing.book,
    )
