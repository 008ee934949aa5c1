"""A live room as an environment: `reset` gives a prompt, `step` takes the policy's next message.

    env = Environment(shop, Draws(state))
    seen = await env.reset(seed=1, group="g-1", rollout=0)
    while not env.done:
        stepped = await env.step(policy(seen.messages, seen.tools))
        seen = stepped.observation or seen

Whoever steps is the policy: the runtime's loop runs inside and asks for its answers, so everything
between two actions (tools, hooks, retries, the stop gate, the next request) is the production code.
One environment is one room; thousands live in one process, for an idle one only waits.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from harness_cli.errors import UsageError
from harness_cli.judges.base import Judge
from harness_cli.models.base import Deadline
from harness_cli.records.chat import ChatReply, ChatRequest, Message
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.config import Limits
from harness_cli.records.episode import EpisodeRecord
from harness_cli.records.item import Item
from harness_cli.simulator.actions import reply_of
from harness_cli.simulator.live.episode import LIMITS, Episode, Finished, Start
from harness_cli.simulator.live.settings import Settings, checked
from harness_cli.simulator.live.shop import Shop
from harness_cli.simulator.live.states import Draws
from harness_cli.simulator.live.stream import fingerprint
from harness_cli.simulator.live.viewers import Viewer

PATIENCE_S = 86_400.0
"""The loop's own bound on one answer of an outside policy: whoever waits sets a shorter one."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What the policy is asked next."""

    request: str
    """Id of the request of the room it belongs to."""
    call: int
    """Model calls of this request so far."""
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    max_tokens: int = 0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was answered."""

    request: str
    reply: str
    stop: str
    route: str
    harness_id: str
    augmented: bool
    trajectory_sha256: str
    scores: dict[str, float | None] = {}
    """Of the reward judge; a dimension that is None is unscored, which is not 0."""
    unscored: str | None = None


class Stepped(msgspec.Struct, frozen=True, kw_only=True):
    """What an action led to."""

    observation: Observation | None
    """None when the episode is over."""
    finished: tuple[Outcome, ...] = ()
    """Requests that this action ended."""
    done: bool = False


class Outside:
    """A policy whose answers come from outside: the loop waits until `answer` is called."""

    def __init__(self, policy_id: str) -> None:
        self.name = policy_id.partition("@")[0]
        self.id = policy_id
        self.asked: asyncio.Queue[ChatRequest | None] = asyncio.Queue()
        self._answer: asyncio.Future[ChatReply] | None = None

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:  # noqa: ARG002
        """The next action."""
        self._answer = asyncio.get_running_loop().create_future()
        self.asked.put_nowait(request)
        return await self._answer

    def answer(self, reply: ChatReply) -> None:
        """Let the loop go on with an answer. Raises `UsageError` when it has not asked."""
        if self._answer is None or self._answer.done():
            raise UsageError("nothing was asked: `reset` begins an episode")
        self._answer.set_result(reply)

    async def close(self) -> None:
        """Nothing is held."""


class Environment:
    """One room at a time, stepped from outside."""

    def __init__(
        self,
        shop: Shop,
        draws: Draws,
        settings: Settings | None = None,
        *,
        rewards: Judge | None = None,
        viewer: Callable[[], Viewer] | None = None,
        policy_id: str = "outside",
        limits: Limits = LIMITS,
    ) -> None:
        self.shop, self.draws = shop, draws
        self.settings = checked(settings or Settings())
        draws.refuse_share(self.settings.augmented)
        self._rewards, self._viewer = rewards, viewer
        self._policy_id = policy_id
        self._limits = msgspec.structs.replace(
            limits, first_call_s=None, later_call_s=None, call_ceiling_s=PATIENCE_S
        )
        self.episode: Episode | None = None
        self.finished: list[Finished] = []
        self.actions: list[ChatReply] = []
        self._told = 0
        self._calls: dict[str, int] = {}
        self._outside: Outside | None = None
        self._task: asyncio.Task[Any] | None = None

    @property
    def done(self) -> bool:
        """No episode is going on."""
        return self._task is None or self._task.done()

    async def reset(self, seed: int, *, group: str | None = None, rollout: int = 0) -> Observation:
        """Begin an episode; one that was going on is given up.

        Rollouts of one `group` (the seed's own by default) share request and harness state; the
        number of the rollout draws what may differ between them: the failures of tools. Raises
        `UsageError` for a rollout that would make its group a mixed one.
        """
        await self.close()
        start = Start(seed, group if group is not None else f"seed-{seed}", rollout)
        self.episode = Episode(
            self.shop,
            self.draws.of_group(start.group, self.settings.augmented),
            self.settings,
            start,
            viewer=self._viewer() if self._viewer else None,
            rewards=self._rewards,
            limits=self._limits,
        )
        self.finished, self.actions, self._told, self._calls = [], [], 0, {}
        self._outside = Outside(self._policy_id)
        self._task = asyncio.ensure_future(self._play(self.episode, self._outside))
        observation = await self._asked()
        if observation is None:
            raise UsageError(
                f"the room of seed {seed} has no request",
                hint="raise `arrivals.base` or `session_s`",
            )
        if group is not None and self.episode.asked is not None:
            self.draws.enter(group, fingerprint(self.episode.asked))
        return observation

    async def step(self, action: Mapping[str, Any] | ChatReply | str) -> Stepped:
        """Give the policy's next answer; what it led to, and what is asked next."""
        if self._outside is None or self.done:
            raise UsageError("the episode is over", hint="`reset` begins another one")
        reply = reply_of(action, self._outside.name)
        self._outside.answer(reply)
        self.actions.append(reply)
        observation = await self._asked()
        fresh, self._told = self.finished[self._told :], len(self.finished)
        return Stepped(
            observation=observation,
            finished=tuple(self._outcome(f) for f in fresh),
            done=observation is None,
        )

    async def close(self) -> None:
        """Give the room up."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def record(self) -> EpisodeRecord:
        """The episode so far, to be played again by `replay`. Raises `UsageError` before one."""
        if self.episode is None:
            raise UsageError("there is no episode yet")
        start, drawn = self.episode.start, self.episode.drawn
        return EpisodeRecord(
            settings=changed(self.settings),
            seed=start.seed,
            group=start.group,
            rollout=start.rollout,
            harness_id=drawn.state.id,
            base_id=self.draws.base.state.id,
            state_seed=drawn.seed,
            catalogue=self.shop.world.digest,
            policy_id=self._policy_id,
            actions=tuple(self.actions),
            lines=tuple(self.episode.viewer.lines),
            trajectories=tuple(trajectory_digest(f.trajectory) for f in self.finished),
        )

    async def _play(self, episode: Episode, outside: Outside) -> None:
        try:
            await episode.play(outside, self.finished.append)
        finally:
            outside.asked.put_nowait(None)

    async def _asked(self) -> Observation | None:
        """The loop's next question; None when the episode ended. Raises what broke it."""
        assert self._outside is not None
        request = await self._outside.asked.get()
        if request is None:
            if self._task is not None:
                await self._task
            return None
        item = self.item.id if self.item else ""
        number = self._calls.get(item, 0)
        self._calls[item] = number + 1
        return Observation(
            request=item,
            call=number,
            messages=request.messages,
            tools=request.tools,
            max_tokens=request.max_tokens,
        )

    @property
    def item(self) -> Item | None:
        """The request at hand, with what is expected of it: for whoever trains, not the policy."""
        asked = self.episode.asked if self.episode else None
        return asked.item if asked else None

    def _outcome(self, finished: Finished) -> Outcome:
        verdict, trajectory = finished.verdict, finished.trajectory
        return Outcome(
            request=finished.asked.item.id,
            reply=trajectory.reply,
            stop=trajectory.stop.value,
            route=trajectory.route.value,
            harness_id=trajectory.harness_id,
            augmented=self.episode.drawn.augmented if self.episode else False,
            trajectory_sha256=trajectory_digest(trajectory),
            scores=dict(verdict.scores) if verdict else {},
            unscored=verdict.unscored_reason if verdict else None,
        )


def changed(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, as plain values."""
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    usual = msgspec.to_builtins(Settings())
    return {name: value for name, value in plain.items() if value != usual[name]}
