"""The harness state of a group of rollouts: drawn once for the group, recorded, never mixed.

All rollouts of a group share (x, h) (METHODS §6): the request and the state. `check_group` refuses
a group in which they do not.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import UsageError
from harness_cli.records.augmentation import AugmentationMap, Recipe
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.simulator.scenarios.draws import generator

KEPT = 32
"""Augmented states that stay compiled."""
GROUPS = 10_000
"""Groups whose request is remembered, the latest ones."""
POOL = 100
"""Distinct augmented states that groups are dealt (**choice**)."""


class Augmented(Protocol):
    """A state made from the base, and how its names follow from the base's."""

    @property
    def state(self) -> HarnessState:
        """The state, loaded and checked."""
        ...

    @property
    def map(self) -> AugmentationMap:
        """Names of the base → names here."""
        ...


Augment = Callable[[int], Augmented]
"""A seed → one augmented state; the same seed gives the same state."""


@dataclass(frozen=True)
class Drawn:
    """The state of one group."""

    state: HarnessState
    map: AugmentationMap | None = None
    """None: the base itself."""
    seed: int | None = None
    _back: list[Renaming] = field(default_factory=list, repr=False)

    @property
    def augmented(self) -> bool:
        """Whether it is another state than the base."""
        return self.map is not None

    def in_base(self, trajectory: Trajectory) -> Trajectory:
        """A trajectory in the base's names: what judges and expectations speak of."""
        if self.map is None:
            return trajectory
        if not self._back:
            self._back.append(Renaming(self.map).to_base())
        return self._back[0].trajectory(trajectory)

    def item(self, item: Item) -> Item:
        """An item as this state is to be held to it."""
        return item if self.map is None else Renaming(self.map).item(item)


class Draws:
    """Deals a state to every group, by the group's name and a seed alone."""

    def __init__(
        self,
        base: HarnessState,
        augment: Augment | None = None,
        *,
        pool: int = POOL,
        seed: int = 0,
    ) -> None:
        self.base = Drawn(base)
        self._augment = augment
        self._pool, self._seed = pool, seed
        self._made: OrderedDict[int, Drawn] = OrderedDict()
        self._groups: OrderedDict[str, str] = OrderedDict()

    def enter(self, group: str, request: str) -> None:
        """Count a rollout into its group. Raises `UsageError` for another request than the group's.

        `request` is the fingerprint of what it is asked; the state follows from the group's name.
        """
        known = self._groups.setdefault(group, request)
        self._groups.move_to_end(group)
        if len(self._groups) > GROUPS:
            self._groups.popitem(last=False)
        if known != request:
            raise UsageError(
                f"a mixed group: `{group}` has another request already",
                hint="all rollouts of a group take one seed and one set of settings",
            )

    def refuse_share(self, share: float) -> None:
        """Raise `UsageError` where a share of groups is wanted that nothing makes states for."""
        if share and self._augment is None:
            raise UsageError(
                "a share of groups is to run under augmented states, and nothing makes them",
                hint="give `Draws` an `augment`, or set `augmented: 0`",
            )

    def of_group(self, group: str, share: float = 0.0) -> Drawn:
        """The state of a group: the same for each of its rollouts, in every process.

        `share` of all groups run under an augmented one (`Settings.augmented`).
        """
        self.refuse_share(share)
        rng = generator(self._seed, "state", group)
        if rng.random() >= share:
            return self.base
        return self.numbered(rng.randrange(self._pool))

    def numbered(self, number: int) -> Drawn:
        """One state of the pool."""
        if number not in self._made:
            if self._augment is None:
                raise UsageError("nothing makes augmented states here")
            made = self._augment(number)
            self._made[number] = Drawn(made.state, made.map, number)
            if len(self._made) > KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(number)
        return self._made[number]


def augmented_by(base: HarnessState, recipe: Recipe | None = None) -> Augment:
    """Augmented states of a base by a recipe (`harness_cli.augmentation`), by number."""
    from harness_cli.augmentation.states import augment

    chosen = recipe or Recipe()
    return lambda number: augment(base, chosen, number)


def check_group(trajectories: Sequence[Trajectory], requests: Sequence[str]) -> None:
    """Raise `UsageError` where the rollouts of a group differ in state, agent or request.

    `requests` are the fingerprints of what each was asked.
    """
    if len(trajectories) != len(requests):
        raise UsageError("a fingerprint of its request belongs to each rollout of a group")
    for what, found in (
        ("harness states", {t.harness_id for t in trajectories}),
        ("kinds of agents", {t.agent for t in trajectories}),
        ("requests", set(requests)),
    ):
        if len(found) > 1:
            shown = ", ".join(f"`{f[:12]}`" for f in sorted(found)[:3])
            raise UsageError(
                f"a mixed group: its rollouts ran under {len(found)} {what} ({shown})",
                hint="all rollouts of a group share request and state: same seed, same group",
            )
