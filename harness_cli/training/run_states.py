"""The harness each rollout of a run was made in, and the map that leads back to the base's names.

A run of a set with states (`harness_variant_qa` and its like) has one for each item, a run in an
augmented harness (`eval --harness DIR`) one for all; other runs have the base itself. Two runs in
different states are compared in the base's names, where their tasks are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import Stale
from harness_cli.evaluation.evalsets import Evalset, load_evalset, load_header
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.canonical import digest
from harness_cli.records.harness import HarnessState
from harness_cli.records.run import RunConfig
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.project import Project
from harness_cli.training.recorded_runs import revision_of
from harness_cli.training.teaching_plan import ORIGINAL

KEPT = 64
"""Items whose state is held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Under:
    """The harness of one rollout."""

    state: HarnessState
    given: AugmentationMap | None = None
    """None: the base itself."""

    @property
    def name(self) -> str:
        """Of the augmented state, or `original`."""
        return self.given.state if self.given else ORIGINAL

    @property
    def map_sha256(self) -> str:
        """Of the map; empty for the base."""
        return digest(self.given) if self.given else ""

    def in_base(self, trajectory: Trajectory) -> Trajectory:
        """A rollout made here, in the base's names."""
        return Renaming(self.given).to_base().trajectory(trajectory) if self.given else trajectory

    def from_base(self, trajectory: Trajectory) -> Trajectory:
        """A rollout in the base's names as it goes here."""
        return Renaming(self.given).trajectory(trajectory) if self.given else trajectory


@dataclass(frozen=True, slots=True)
class RunStates:
    """The harnesses of a run, and the items it is of."""

    of: Callable[[str], Under]
    """Item → the harness its rollouts were made in."""
    evalset: str
    """The set that holds the items: of a set with states, the one that they are taken from."""
    digest: str
    """Of these items: runs with the same one ask the same."""
    changed: bool
    """Whether states are augmented."""


def run_states(project: Project, config: RunConfig) -> RunStates:
    """What a run was made in. Raises `Stale` where its set is no longer what it was made of,
    `UsageError` where its harness is gone."""
    rev, base = revision_of(project, config)
    ref = config.evalset
    header = load_header(project, ref.name)
    if header.states is None or header.items_of is None:
        one = Under(base, config.augmentation)
        return RunStates(lambda _: one, ref.name, ref.digest, config.augmentation is not None)
    evalset = load_evalset(project, ref.name, split=ref.split, harness=rev)
    if evalset.digest != ref.digest:
        raise Stale(
            f"`{ref.name}` is not what run `{config.id}` was made of any more",
            hint="run it again with this version of the items and states",
        )
    items = load_evalset(project, header.items_of, split=ref.split)
    return RunStates(_each(evalset), header.items_of, items.digest, changed=True)


def _each(evalset: Evalset) -> Callable[[str], Under]:
    states = evalset.states
    assert states is not None

    @lru_cache(maxsize=KEPT)
    def of(item_id: str) -> Under:
        (item,) = evalset.items.among([item_id])
        name = str(item.state)
        return Under(states.state(name), states.given(name))

    return of
