"""A live room in the form of Gymnasium: `reset` → (observation, info), `step` → five values.

    env = RoomEnv(shop, draws)
    text, info = env.reset(seed=1, options={"group": "g", "rollout": 0})
    text, reward, terminated, truncated, info = env.step("Hello!")

Observations and actions are texts: the JSON of `{"messages": …, "tools": …}`, and an assistant
message as JSON (an answer that is no JSON object is taken for its text). Gymnasium is no
dependency: where it is installed, `RoomEnv` is a `gymnasium.Env` with `Text` spaces; where it is
not, a class with the same methods. Synchronous, with an event loop of its own.

The reward of a step is the sum of the rewards of the requests that ended in it (`judge.total`), 0
where none did. Where one of them is unscored it is `nan`, never 0, and `info["unscored"]` says why.
"""

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.errors import UsageError
from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.judge import RuleRewards, total
from harness_cli.simulator.environment import Environment, Observation, Outcome
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.shop import Shop
from harness_cli.simulator.live.states import Draws

LONGEST = 1 << 20
"""Characters of an observation or action."""
SEEDS = 1 << 31


def _base() -> Any:
    """`gymnasium.Env` where it is installed."""
    try:
        import gymnasium
    except ModuleNotFoundError:
        return object
    return gymnasium.Env


def _spaces() -> tuple[Any, Any]:
    """Text spaces for observations and actions; none without Gymnasium."""
    try:
        from gymnasium.spaces import Text
    except ModuleNotFoundError:
        return None, None
    return any_text(Text, LONGEST), any_text(Text, LONGEST)


def any_text(base: Any, longest: int) -> Any:
    """A `Text` space of any characters: chats are not of a fixed alphabet."""

    class _AnyText(base):  # type: ignore[misc]
        def contains(self, x: Any) -> bool:
            """Any text that is not too long."""
            return isinstance(x, str) and len(x) <= longest

        def sample(self, mask: Any = None, probability: Any = None) -> str:  # noqa: ARG002
            """A short text, which the loop takes for an answer."""
            return str(super().sample())

    return _AnyText(max_length=32)


class RoomEnv(_base()):  # type: ignore[misc]
    """One room. `seed` of `reset` names the episode; `options` may hold `group` and `rollout`."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}
    render_mode: str | None = None

    def __init__(
        self,
        shop: Shop,
        draws: Draws,
        settings: Settings | None = None,
        *,
        rewards: Judge | None = None,
        weights: Mapping[str, float] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._weights = weights
        self._room = Environment(shop, draws, settings, rewards=rewards or RuleRewards())
        self._seen: Observation | None = None
        self._last: tuple[Outcome, ...] = ()
        self.render_mode = render_mode
        observations, actions = _spaces()
        if observations is not None:
            self.observation_space, self.action_space = observations, actions

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; without a seed one is drawn from the environment's own generator."""
        if _base() is not object:
            super().reset(seed=seed)
            chosen = int(self.np_random.integers(SEEDS)) if seed is None else seed
        else:
            chosen = 0 if seed is None else seed
        given = dict(options or {})
        unknown = sorted(given.keys() - {"group", "rollout"})
        if unknown:
            raise UsageError(f"`options` has no `{unknown[0]}`", hint="known: group, rollout")
        work = self._room.reset(chosen, **given)
        self._seen, self._last = self._loop.run_until_complete(work), ()
        return shown(self._seen), {"seed": chosen, "request": self._seen.request}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One answer of the policy: observation, reward, terminated, truncated, info."""
        stepped = self._loop.run_until_complete(self._room.step(answer_of(action)))
        self._last = stepped.finished
        reward, unscored = 0.0, []
        for outcome in stepped.finished:
            one = total(outcome.scores, self._weights)
            reward += math.nan if one is None else one
            unscored += [outcome.unscored or "no score"] if one is None else []
        info: dict[str, Any] = {"outcomes": [msgspec.to_builtins(o) for o in stepped.finished]}
        if unscored:
            info["unscored"] = unscored
        if stepped.observation is not None:
            self._seen = stepped.observation
            info["request"] = stepped.observation.request
        text = "" if stepped.observation is None else shown(stepped.observation)
        return text, reward, stepped.done, False, info

    def render(self) -> str | None:
        """The conversation as text, in the mode `ansi`."""
        if self.render_mode != "ansi" or self._seen is None:
            return None
        said = [f"{m['role']}: {m.get('content') or ''}" for m in self._seen.messages[1:]]
        return "\n".join([*said, *(f"host: {o.reply}" for o in self._last)])

    def close(self) -> None:
        """Give room and event loop up."""
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._room.close())
            self._loop.close()


def shown(observation: Observation) -> str:
    """An observation as text."""
    plain = {"messages": list(observation.messages), "tools": list(observation.tools)}
    return json.dumps(plain, ensure_ascii=False)


def answer_of(action: str) -> dict[str, Any] | str:
    """An assistant message from its JSON; other text is an answer in words."""
    try:
        message = json.loads(action)
    except ValueError:
        return action
    return message if isinstance(message, dict) else action
