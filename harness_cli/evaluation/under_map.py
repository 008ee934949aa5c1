"""Any evalset in one augmented harness: a folder with the map of its names beside it.

harness augment --count 1 --out DIR        writes DIR/<state>/ and DIR/<state>.yaml
harness eval live_stream_qa --harness DIR/<state>
"""

from dataclasses import replace
from pathlib import Path

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import Evalset
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.reader import read_yaml
from harness_cli.records.trajectory import Trajectory


class UnderMap:
    """One state for all items."""

    def __init__(self, state: HarnessState, given: AugmentationMap) -> None:
        self._state, self._given = state, given
        self._there = Renaming(given)
        self._back = self._there.to_base()

    def state(self, name: str) -> HarnessState:  # noqa: ARG002  every item has the same
        """The harness that an item runs in."""
        return self._state

    def given(self, name: str) -> AugmentationMap:  # noqa: ARG002  every item has the same
        """The names of that harness."""
        return self._given

    def mapped(self, item: Item) -> Item:
        """An item with its expectations in the names of the state."""
        return self._there.item(item)

    def in_base(self, item: Item, trajectory: Trajectory) -> tuple[Item, Trajectory]:
        """Both in the base's names: what a judge of the base is to see."""
        return self._back.item(item), self._back.trajectory(trajectory)


def map_beside(folder: Path) -> AugmentationMap | None:
    """The map `<folder>.yaml` beside an augmented harness; None where there is none."""
    path = folder.with_name(f"{folder.name}.yaml")
    if not path.is_file():
        return None
    given = read_yaml(path, AugmentationMap, name=str(path))
    if given.state != folder.name:
        raise BadFile(f"{path}: the state `{given.state}` is not its file's name")
    return given


def under(evalset: Evalset, state: HarnessState, given: AugmentationMap) -> Evalset:
    """The evalset in one augmented harness.

    Items that need a skill which the state does not have are refused: their task is another one.
    """
    if evalset.states is not None:
        raise UsageError(
            f"`{evalset.header.name}` has augmented states of its own",
            hint=f"`harness eval {evalset.header.items_of} --harness {given.state}`",
        )
    states = UnderMap(state, given)
    masked = frozenset(given.masked_skills)

    def mapped(item: Item) -> Item:
        missing = masked & frozenset(item.expect.skills)
        if missing:
            raise UsageError(
                f"`{item.id}` needs the skill `{min(missing)}`, which the state `{given.state}` "
                "does not have",
                hint="draw states without masking: `moves` of `skill_identifiers` in the recipe",
            )
        return states.mapped(item)

    return replace(evalset, items=replace(evalset.items, mapped=mapped), states=states)
