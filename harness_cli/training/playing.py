"""Where rollouts for reinforcement learning are made: live rooms, or items of an open split.

Both run `runtime.loop.rollout`, under the original harness or one augmented state that follows from
the group's name alone: every rollout of a group, in whatever process, shares request and state.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from harness_cli.augmentation.states import Augmented, augment
from harness_cli.errors import UsageError
from harness_cli.evaluation.agents import for_item, open_executors
from harness_cli.models.base import Policy
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.augmentation import Recipe
from harness_cli.records.canonical import sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import Generation
from harness_cli.records.config import Limits
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.live.episode import LIMITS, Episode, Start
from harness_cli.simulator.live.settings import Settings, checked
from harness_cli.simulator.live.shop import Shop
from harness_cli.simulator.live.states import POOL, Drawn, Draws
from harness_cli.simulator.live.stream import fingerprint

PATIENCE_S = 86_400.0
"""The loop's own bound on one answer: a batch on a slow machine is no stalled server."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which rollout: the task, its group, its number within the group."""

    task: str
    group: str
    number: int


@dataclass(frozen=True, slots=True)
class Played:
    """One rollout, and what a reward judge needs of it."""

    trajectory: Trajectory
    """In the names of the state it ran under."""
    judged: Trajectory
    """The same in the base's names, in which the item is written."""
    item: Item
    world: Catalogue
    request: str
    """Fingerprint of the request."""
    augmented: bool


class Playground(Protocol):
    """A source of tasks."""

    @property
    def tasks(self) -> Sequence[str]:
        """Their names."""
        ...

    def prepare(self, place: Place) -> None:
        """Make the state of a group, so that no rollout waits for it."""
        ...

    async def play(self, place: Place, policy: Policy, generation: Generation) -> Played:
        """One rollout."""
        ...

    async def settle(self) -> None:
        """Let go of what one iteration needed."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


class RoomsGround:
    """One request of a live room a task."""

    def __init__(
        self, shop: Shop, draws: Draws, settings: Settings, seeds: Sequence[int], share: float
    ) -> None:
        """Raise `UsageError` for settings under which a group's rollouts would differ."""
        checked(settings)
        if settings.requests > 1 or settings.turns > 1:
            raise UsageError(
                "a group's rollouts share one request: `requests` and `turns` of the rooms stay 1",
                hint="what follows a first answer differs from rollout to rollout",
            )
        draws.refuse_share(share)
        self._shop, self._draws, self._settings, self._share = shop, draws, settings, share
        self._seeds: dict[str, int] = {}
        self._asked: dict[str, Request] = {}
        for seed in seeds:
            room = f"room-{seed}"
            if (arrival := shop.stream(settings, seed, room).next()) is not None:
                self._seeds[room], self._asked[room] = seed, arrival.item.request
        if not self._seeds:
            raise UsageError("no room has a request", hint="raise `arrivals.base` or `session_s`")

    @property
    def tasks(self) -> Sequence[str]:
        """Rooms that have a request."""
        return list(self._seeds)

    @property
    def requests(self) -> Mapping[str, Request]:
        """What each of them asks."""
        return self._asked

    def prepare(self, place: Place) -> None:
        """Draw and compile the group's state."""
        self._shop.prepared(self._draws.of_group(place.group, self._share).state)

    async def play(self, place: Place, policy: Policy, generation: Generation) -> Played:
        """The first request of the room, under the group's state."""
        drawn = self._draws.of_group(place.group, self._share)
        episode = Episode(
            self._shop,
            drawn,
            self._settings,
            Start(self._seeds[place.task], place.group, place.number),
            limits=patient(LIMITS),
            generation=generation,
        )
        (made,) = await episode.play(policy)
        return Played(
            trajectory=made.trajectory,
            judged=made.judged,
            item=made.asked.item,
            world=made.asked.world,
            request=fingerprint(made.asked),
            augmented=drawn.augmented,
        )

    async def settle(self) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What the items of a project are played on."""

    base: HarnessState
    world: Catalogue
    recipe: Recipe
    limits: Limits
    catalogue: Path
    pipeline: str = "default"
    pool: int = POOL
    seed: int = 0


class ItemsGround:
    """One item of an open split a task; an augmented state masks nothing that its item needs."""

    def __init__(self, ground: Ground, items: Mapping[str, Item], share: float) -> None:
        self._ground, self._items, self._share = ground, items, share
        self._limits = patient(ground.limits)
        self._drawn: dict[tuple[str, str], Drawn] = {}
        self._agents: dict[str, Agent] = {}

    @property
    def tasks(self) -> Sequence[str]:
        """Ids of the items."""
        return list(self._items)

    def prepare(self, place: Place) -> None:
        """Draw and compile the group's state."""
        _ = self._agent(self._state(place)).prepared

    async def play(self, place: Place, policy: Policy, generation: Generation) -> Played:
        """The item, its expectations in the names of the group's state."""
        drawn, item = self._state(place), self._items[place.task]
        # The agent is the state's already: an item names one only for evalsets that bring states.
        asked = msgspec.structs.replace(drawn.item(item), state=None)
        shared = self._agent(drawn)
        agent = replace(shared, policy=policy, generation=generation)
        agent.__dict__["prepared"] = shared.prepared
        trajectory = await rollout(
            asked.request,
            for_item(agent, asked),
            request_id=f"{item.id}:{place.group}:{place.number}",
            item_id=item.id,
            repeat=place.number,
        )
        return Played(
            trajectory=trajectory,
            judged=drawn.in_base(trajectory),
            item=item,
            world=self._ground.world,
            request=sha256(msgspec.json.encode(item)),
            augmented=drawn.augmented,
        )

    async def settle(self) -> None:
        """Let go of the states of an iteration and of what runs their tools."""
        agents, self._agents = self._agents, {}
        self._drawn.clear()
        closing = [e.close() for agent in agents.values() for e in agent.executors.values()]
        await asyncio.gather(*closing)

    async def close(self) -> None:
        """As after an iteration."""
        await self.settle()

    def _state(self, place: Place) -> Drawn:
        key = (place.task, place.group)
        if key not in self._drawn:
            ground, item = self._ground, self._items[place.task]

            def made(number: int) -> Augmented:
                return augment(ground.base, ground.recipe, number, items=(item,))

            draws = Draws(ground.base, made, pool=ground.pool, seed=ground.seed)
            self._drawn[key] = draws.of_group(place.group, self._share)
        return self._drawn[key]

    def _agent(self, drawn: Drawn) -> Agent:
        """The agent of a state; whoever plays takes its own policy."""
        ground, state = self._ground, drawn.state
        if state.id not in self._agents:
            self._agents[state.id] = Agent(
                state=state,
                policy=ScriptedPolicy(()),
                executors=open_executors(state, ground.world, catalogue=ground.catalogue),
                world=ground.world,
                limits=self._limits,
                pipeline=ground.pipeline,
            )
        return self._agents[state.id]


def patient(limits: Limits) -> Limits:
    """Limits without a clock on the policy: what it earns must not depend on the machine."""
    return msgspec.structs.replace(
        limits, first_call_s=None, later_call_s=None, call_ceiling_s=PATIENCE_S
    )
