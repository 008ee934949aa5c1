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
    return read_map(path, name=str(path)) if path.is_file() else None


def read_map(path: Path, *, name: str) -> AugmentationMap:
    """The map of a file. Raises `BadFile` for one of another schema, or of another state."""
    given = read_yaml(path, AugmentationMap, name=name)
    if given.schema != 1:
        raise BadFile(f"{name}: schema {given.schema} is not known", hint="this is 1")
    if given.state != path.stem:
        raise BadFile(f"{name}: the state `{given.state}` is not its file's name")
    return given


def refuse_strangers(state: HarnessState, given: AugmentationMap) -> None:
    """Raise `BadFile` for a map of another harness: by names that are not there every rollout
    would be scored as one that did nothing right."""
    tools = {tool.name: tool for tool in state.all_tools()}
    skills, hooks = {s.name for s in state.skills}, {h.name for h in state.hooks}
    for kind, names, there in (
        ("tool", given.tools, tools.keys()),
        ("skill", given.skills, skills),
        ("hook", given.hooks, hooks),
    ):
        for base, here in names.items():
            if here not in there:
                raise _stranger(given.state, f"{kind} `{base}`", here)
    for base, parameters in given.parameters.items():
        tool = tools.get(given.tools.get(base, base))
        known = tool.input_schema.get("properties", {}) if tool else {}
        for old, new in parameters.items():
            if new not in known:
                raise _stranger(given.state, f"parameter `{old}` of the tool `{base}`", new)


def _stranger(state: str, what: str, here: str) -> BadFile:
    return BadFile(
        f"the map of state `{state}` calls the {what} `{here}`, and its harness has none of that "
        "name",
        hint="folder and map are written together: draw the state again with `harness augment`",
    )


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
    refuse_strangers(state, given)
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
