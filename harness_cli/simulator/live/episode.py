"""One episode: an isolated room, its requests in turn, each answered by the loop of the runtime.

Nothing here knows how to act: `runtime.loop.rollout` runs as in production, with every hook and
checkpoint. The same seed, state and answers of the policy give the same bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from harness_cli.judges.base import Judge
from harness_cli.models.base import Policy
from harness_cli.records.chat import Generation
from harness_cli.records.clocks import without_clocks
from harness_cli.records.config import Limits
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Verdict
from harness_cli.runtime.agent import Agent, Executor
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.live.faults import faulty
from harness_cli.simulator.live.replicas import replicas
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.shop import Shop
from harness_cli.simulator.live.states import Drawn
from harness_cli.simulator.live.stream import Asked
from harness_cli.simulator.live.viewers import ScriptedViewer, Viewer

LIMITS = Limits(fallback_s=Limits().call_ceiling_s)
"""As the profile `offline`: what a policy earns must not depend on how busy the machine is."""
_sorted = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class Finished:
    """One request that was answered."""

    asked: Asked
    trajectory: Trajectory
    """In the names of the state it ran under."""
    judged: Trajectory
    """The same in the base's names, in which `asked.item` is written."""
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Which episode: everything it follows from beside shop, state and settings."""

    seed: int
    group: str
    rollout: int = 0


class Episode:
    """One room that is played through once."""

    def __init__(
        self,
        shop: Shop,
        drawn: Drawn,
        settings: Settings,
        start: Start,
        *,
        viewer: Viewer | None = None,
        rewards: Judge | None = None,
        limits: Limits = LIMITS,
        generation: Generation | None = None,
    ) -> None:
        self.drawn, self.settings, self.start = drawn, settings, start
        self.viewer: Viewer = viewer or ScriptedViewer()
        self.stream = shop.stream(settings, start.seed, f"room-{start.seed}")
        self.asked: Asked | None = None
        """The request at hand."""
        self.executors: dict[str, Executor] = {}
        """What runs its tools, failures included."""
        self._rewards = rewards
        self._shop = shop
        self._limits = limits
        self._generation = generation or Generation()
        if settings.rounds is not None:
            self._limits = msgspec.structs.replace(limits, rounds=settings.rounds)

    async def play(
        self, policy: Policy, finished: Callable[[Finished], None] | None = None
    ) -> tuple[Finished, ...]:
        """Answer the requests of the episode; each is told to `finished` when it is done."""
        agent = self._agent(policy)
        done: list[Finished] = []
        for _ in range(self.settings.requests):
            asked = self.stream.next()
            if asked is None:
                break
            await self._dialogue(agent, asked, done, finished)
        return tuple(done)

    async def _dialogue(
        self,
        agent: Agent,
        asked: Asked,
        done: list[Finished],
        finished: Callable[[Finished], None] | None,
    ) -> None:
        """One viewer's turns."""
        following: Asked | None = await self.viewer.opening(asked)
        turns = self.settings.turns
        while following is not None:
            made = await self._answer(agent, following, len(done))
            done.append(made)
            if finished is not None:
                finished(made)
            if following.turn + 1 >= turns:
                return
            following = await self.viewer.next(following, made.trajectory, self.stream)

    async def _answer(self, agent: Agent, asked: Asked, number: int) -> Finished:
        start, self.asked = self.start, asked
        seed = f"{start.seed}/{start.group}/{start.rollout}/{number}"
        self.executors = faulty(
            replicas(agent.state, asked.world),
            self.settings.faults,
            seed,
            tool_s=self._limits.tool_s,
        )
        acting = replace(agent, executors=self.executors)
        acting.__dict__["prepared"] = agent.prepared  # depends on the state alone
        trajectory = await rollout(
            asked.item.request,
            acting,
            request_id=f"{asked.item.id}:{start.group}:{start.rollout}",
            item_id=asked.item.id,
            repeat=start.rollout,
        )
        self._happened(asked, trajectory)
        judged = self.drawn.in_base(trajectory)
        verdict = None
        if self._rewards is not None:
            verdict = await self._rewards.judge(asked.item, judged, asked.world)
        return Finished(asked, trajectory, judged, verdict)

    def _happened(self, asked: Asked, trajectory: Trajectory) -> None:
        """What the rollout did to the room."""
        state = self.stream.state
        for action in trajectory.actions:
            link = action.get("link_id")
            if action.get("type") == "move_product" and isinstance(link, int):
                state.moved(link, str(action.get("position", "now")))
        state.replied(asked.item.request, trajectory.reply, asked.link)

    def _agent(self, policy: Policy) -> Agent:
        """The agent of this episode; prompts tell products and rooms, never prices or stock."""
        agent = Agent(
            state=self.drawn.state,
            policy=policy,
            executors={},
            world=self._shop.world,
            limits=self._limits,
            generation=self._generation,
            profile="simulator",
        )
        agent.__dict__["prepared"] = self._shop.prepared(self.drawn.state)
        return agent


def clockless(trajectory: Trajectory) -> bytes:
    """A trajectory's bytes without its clocks: equal for two rollouts that did the same."""
    return _sorted(without_clocks(msgspec.to_builtins(trajectory)))
