"""Evalsets under augmented harness states: the items of another set, expectations renamed.

    live_stream_qa test ──▶ item ──map──▶ expectations in the state's names
                                          rollout in the state ──map back──▶ judge

`evalset.yaml` names `items_of` and `states`, a folder of `<state>.yaml` maps
(`records/augmentation.py`); the set has no items of its own.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import Evalset, ItemStream, choose_split, load_evalset
from harness_cli.evaluation.survey import stated_of
from harness_cli.evaluation.under_map import read_map, refuse_strangers
from harness_cli.harness.load import load_folder, load_state
from harness_cli.records.augmentation import AugmentationMap, DrawnStates
from harness_cli.records.canonical import canonical_json, digest
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.run import EvalsetRef
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.project import Project

if TYPE_CHECKING:
    from harness_cli.evaluation.drawn import Drawn

DRAWN = ".json"
"""What `states` of a header ends in where it names a file of drawn states, no folder of maps."""
KEPT = 64
"""States held in memory at a time."""


class StateSource(Protocol):
    """The augmented states of an evalset, wherever they come from."""

    def state(self, name: str) -> HarnessState:
        """The harness that an item runs in."""
        ...

    def given(self, name: str) -> AugmentationMap:
        """The names of that harness."""
        ...

    def in_base(self, item: Item, trajectory: Trajectory) -> tuple[Item, Trajectory]:
        """Both in the base's names: what a judge of the base is to see."""
        ...


class States:
    """The augmented states of one evalset: loaded when an item needs one, names both ways."""

    def __init__(self, project: Project, folder: Path, maps: Mapping[str, AugmentationMap]) -> None:
        self._project, self._folder = project, folder
        self.maps = dict(maps)
        self._renamings = {name: Renaming(given) for name, given in self.maps.items()}
        self._back = {name: r.to_base() for name, r in self._renamings.items()}
        self._names = sorted(self.maps)
        self._listed = {item: name for name, m in self.maps.items() for item in m.items}
        self._loaded = lru_cache(maxsize=KEPT)(self._load)

    def state(self, name: str) -> HarnessState:
        """The harness that an item runs in."""
        return self._loaded(name)

    def given(self, name: str) -> AugmentationMap:
        """The names of that harness."""
        return self.maps[name]

    def of_item(self, item_id: str) -> str:
        """The state an item runs under: where it is listed, else dealt out by its id."""
        if self._listed:
            return self._listed[item_id]
        place = int.from_bytes(hashlib.sha256(item_id.encode()).digest()[:8], "big")
        return self._names[place % len(self._names)]

    def mapped(self, item: Item) -> Item:
        """An item of the base set, expectations in the names of its state."""
        return self._renamings[self.of_item(item.id)].item(item)

    def in_base(self, item: Item, trajectory: Trajectory) -> tuple[Item, Trajectory]:
        """Both in the base's names: what a judge of the base is to see."""
        back = self._back[str(item.state)]
        return back.item(item), back.trajectory(trajectory)

    def refuse_gaps(self, items: ItemStream) -> None:
        """Raise `BadFile` where the maps list items and miss one, or list one that is none.

        Ids are no content: reading them opens no seal.
        """
        if not self._listed:
            return
        ids = {item.id for item in replace(items, sealed=None)}
        for what, found in (
            ("is listed by no map", sorted(ids - self._listed.keys())),
            ("is no item of the set", sorted(self._listed.keys() - ids)),
        ):
            if found:
                raise BadFile(f"{self._folder.name}: `{found[0]}` {what} ({len(found)} in all)")

    def _load(self, name: str) -> HarnessState:
        given = self.maps[name]
        if given.tree is not None:
            state = load_state(self._project, given.tree)
        else:
            state = load_folder(self._folder / str(given.folder))
        refuse_strangers(state, given)
        return state


def load_variant_set(
    project: Project,
    header: EvalsetHeader,
    *,
    split: str | None,
    reason: str | None,
    harness: str | None = None,
) -> Evalset:
    """The items of `items_of` under the states of a set.

    `harness` is the revision from which drawn states are made. Raises `UsageError` while there are
    no states, `BadFile` for maps and counts that do not fit.
    """
    split = choose_split(header, split)
    states, bound_states = _source(project, header, harness)
    if header.items_of is None:
        raise BadFile(f"{header.name}: `states` needs `items_of`", hint="the evalset of the items")
    base = load_evalset(project, header.items_of, split=split, reason=reason)
    if split is not None and header.splits[split] != len(base.items):
        raise BadFile(
            f"{header.name}: split `{split}` has {len(base.items)} items in `{header.items_of}`, "
            f"evalset.yaml says {header.splits[split]}"
        )
    states.refuse_gaps(base.items)
    bound = {
        "header": stated_of(header),
        "items": base.digest,
        "states": bound_states,
    }
    bound_digest = hashlib.sha256(canonical_json(bound)).hexdigest()
    return Evalset(
        header=header,
        items=replace(base.items, mapped=states.mapped),
        digest=bound_digest,
        world=base.world,
        ref=EvalsetRef(
            name=header.name,
            split=split,
            digest=bound_digest,
            n=len(base.items),
            catalogue_digest=base.world.digest,
        ),
        folder=project.evalsets / header.name,
        states=states,
    )


def check_states(project: Project, header: EvalsetHeader) -> None:
    """Raise `BadFile` for states of a set that cannot be read."""
    if str(header.states).endswith(DRAWN):
        _drawn(project, header, None)
    else:
        read_maps(project, header)


def drawn_states(project: Project, header: EvalsetHeader) -> DrawnStates | None:
    """The rows of a set whose states are drawn; None for one with a folder of maps."""
    if not str(header.states).endswith(DRAWN):
        return None
    return _drawn(project, header, None).drawn


def _source(
    project: Project, header: EvalsetHeader, harness: str | None
) -> "tuple[States | Drawn, Any]":
    """The states of a set, and what a run binds of them."""
    if str(header.states).endswith(DRAWN):
        drawn = _drawn(project, header, harness)
        return drawn, digest(drawn.drawn)
    maps = read_maps(project, header)
    if not maps:
        raise UsageError(
            f"`{header.name}` has no augmented states yet: no map in "
            f"`{_folder(project, header).relative_to(project.root)}`",
            hint="each state is a harness and its map of names: evalsets/README.md, "
            "`harness_variant_qa`",
        )
    states = States(project, _folder(project, header), maps)
    return states, {name: digest(given) for name, given in sorted(maps.items())}


def _drawn(project: Project, header: EvalsetHeader, harness: str | None) -> "Drawn":
    from harness_cli.evaluation.drawn import Drawn, read_drawn

    path = _folder(project, header)
    if not path.is_file():
        shown = path.relative_to(project.root)
        raise BadFile(f"no file `{shown}`", hint="docs/augmentation.md says how it is made")
    drawn = read_drawn(path, name=str(path.relative_to(project.root)))
    return Drawn(project, drawn, harness=harness)


def read_maps(project: Project, header: EvalsetHeader) -> dict[str, AugmentationMap]:
    """Every map of a set by its state; empty while there are none. Raises `BadFile`."""
    folder = _folder(project, header)
    found: dict[str, AugmentationMap] = {}
    taken: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        shown = str(path.relative_to(project.root))
        given = read_map(path, name=shown)
        if (given.folder is None) == (given.tree is None):
            raise BadFile(f"{shown}: a state is a `folder` or a `tree`, one of the two")
        if given.folder is not None and not (folder / given.folder).is_dir():
            raise BadFile(f"{shown}: there is no folder `{given.folder}`")
        Renaming(given)
        for item in given.items:
            if item in taken:
                raise BadFile(f"{shown}: `{item}` is an item of `{taken[item]}` already")
            taken[item] = given.state
        found[given.state] = given
    return found


def _folder(project: Project, header: EvalsetHeader) -> Path:
    return project.evalsets / header.name / str(header.states)
