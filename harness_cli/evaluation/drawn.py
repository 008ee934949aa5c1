"""Augmented states that are kept as base, recipe and seed, and made when an item needs one.

`states.json` of an evalset holds one row an item. On the base it was drawn from a state must come
to the tree that the row names; on another base, a harness that has evolved since, the same recipe
and seed are drawn anew, and examined.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from harness_cli.augmentation.renaming import Renaming
from harness_cli.augmentation.states import Augmented, augment, rebuilt
from harness_cli.errors import BadFile
from harness_cli.evaluation.evalsets import ItemStream
from harness_cli.harness.load import harness_files
from harness_cli.harness.parts import content
from harness_cli.records.augmentation import AugmentationMap, DrawnState, DrawnStates
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.reader import read_json
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.project import Project
from harness_cli.store.tree import Entry, tree_id

KEPT = 128
"""States held in memory at a time; items are handed out far fewer at once."""
MAKE = "`python -m harness_cli.evaluation.variant_set` draws them anew"


class Drawn:
    """The states of one evalset, each made from the harness at hand when its item comes."""

    def __init__(self, project: Project, drawn: DrawnStates, *, harness: str | None) -> None:
        self._project, self._harness, self.drawn = project, harness, drawn
        self._rows = {row.item: row for row in drawn.states}
        self._by_state = {row.state: row for row in drawn.states}
        self._items: dict[str, Item] = {}
        self._base: tuple[Mapping[str, Entry], str] | None = None
        self.made = lru_cache(maxsize=KEPT)(self._make)

    def state(self, name: str) -> HarnessState:
        """The harness that an item runs in."""
        return self.made(name).state

    def given(self, name: str) -> AugmentationMap:
        """The names of that harness."""
        return self.made(name).map

    def mapped(self, item: Item) -> Item:
        """An item of the base set, expectations in the names of its state."""
        row = self._rows[item.id]
        self._items[row.state] = item
        return Renaming(self.made(row.state).map).item(item)

    def in_base(self, item: Item, trajectory: Trajectory) -> tuple[Item, Trajectory]:
        """Both in the base's names: what a judge of the base is to see."""
        back = Renaming(self.made(str(item.state)).map).to_base()
        return back.item(item), back.trajectory(trajectory)

    def refuse_gaps(self, items: ItemStream) -> None:
        """Raise `BadFile` where an item has no state, or a state no item.

        Ids are no content: reading them opens no seal.
        """
        ids = {item.id for item in replace(items, sealed=None)}
        for what, found in (
            ("has no state", sorted(ids - self._rows.keys())),
            ("has a state and is no item", sorted(self._rows.keys() - ids)),
        ):
            if found:
                raise BadFile(f"`{found[0]}` {what} ({len(found)} in all)", hint=MAKE)

    def _make(self, name: str) -> Augmented:
        row, item = self._by_state[name], self._items[self._by_state[name].state]
        files, base = self._files()
        recipe = self.drawn.recipe
        if base != self.drawn.base:
            return augment(files, recipe, row.seed, name=name, items=(item,))
        made = rebuilt(files, recipe, row.seed, row.discards, name=name, items=(item,))
        if made.state.id != row.tree:
            raise BadFile(
                f"state `{name}` comes to `{made.state.id[:12]}`, its row says `{row.tree[:12]}`",
                hint=f"the tables of augmentation have changed: {MAKE}",
            )
        return made

    def _files(self) -> tuple[Mapping[str, Entry], str]:
        """The files of the harness at hand, and its id; read once."""
        if self._base is None:
            files = harness_files(self._project, self._harness)
            self._base = files, tree_id(content(files))
        return self._base


def read_drawn(path: Path, *, name: str) -> DrawnStates:
    """`states.json`. Raises `BadFile` for states or items that stand twice."""
    found = read_json(path, DrawnStates, name=name)
    if found.schema != 1:
        raise BadFile(f"{name}: schema {found.schema} is not known", hint="this is 1")
    for what in ("state", "item"):
        seen: set[str] = set()
        for row in found.states:
            value = getattr(row, what)
            if value in seen:
                raise BadFile(f"{name}: the {what} `{value}` stands twice", hint=MAKE)
            seen.add(value)
    return found


def row_of(made: Augmented, item: Item, seed: int) -> DrawnState:
    """What is kept of a state that was drawn for an item."""
    return DrawnState(
        state=made.map.state,
        item=item.id,
        seed=seed,
        tree=made.state.id,
        discards=len(made.discards),
        dimensions=made.map.dimensions,
    )
