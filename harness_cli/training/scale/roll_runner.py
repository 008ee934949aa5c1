"""The agent runner of ROLL's proxy: an episode is a rollout of our runtime in a room.

ROLL's proxy speaks the OpenAI protocol and records what was read and sampled by itself; which
environment asks it reads from the authorization header. Needs ROLL.
"""

import asyncio
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from roll.pipeline.agentic.agent_runner.base import AgentRunner, EpisodeResult

from harness_cli.models.open import open_policy
from harness_cli.records.config import PolicyConfig
from harness_cli.training.playing import Place
from harness_cli.training.rewards import DIMENSIONS, SEGMENTS
from harness_cli.training.scale.room import Room


@lru_cache(maxsize=4)
def _room(path: str) -> Room:
    return Room.open(Path(path))


class HarnessRunner(AgentRunner):  # type: ignore[misc]
    """One environment. Seeds are equal within a group and differ between groups and episodes."""

    def setup(self) -> None:
        """Read the room."""
        _room(str(self.env_params["room"]))

    def run_job(self, seed: int) -> EpisodeResult:
        """One rollout of the task and state that the seed stands for."""
        room = _room(str(self.env_params["room"]))
        tasks = room.ground.tasks
        place = Place(tasks[seed % len(tasks)], str(seed), int(self.env_id))
        return asyncio.run(self._episode(room, place))

    async def _episode(self, room: Room, place: Place) -> EpisodeResult:
        variable = f"HARNESS_ROLL_ENV_{self.env_id}"
        os.environ[variable] = str(self.env_id)  # the proxy tells environments apart by this
        config = PolicyConfig(
            kind="openai",
            model="policy",
            base_url=f"{self.base_url}/v1",
            api_key_env=variable,
            stream=False,
            attempt_timeout_s=3600.0,
            total_timeout_s=3600.0,
            max_attempts=1,
        )
        policy = open_policy("trained", config, root=Path.cwd())
        try:
            played = await room.play(place, policy)
        finally:
            await policy.close()
        scores = await room.scores(played)
        score = reward_of(scores)
        if score is None:
            return EpisodeResult("Unscored", 0.0, metrics={"unscored": 1.0})
        return EpisodeResult("Done", score, metrics={k: float(v) for k, v in _shown(scores)})


def reward_of(scores: Any) -> float | None:
    """Mean of the dimensions of both segments; None where one is unscored: no 0 stands for that."""
    names = [name for segment in SEGMENTS for name in DIMENSIONS[segment]]
    found = [scores.get(name) for name in names]
    if any(score is None for score in found):
        return None
    return float(sum(found)) / len(found)


def _shown(scores: Any) -> list[tuple[str, float]]:
    return [(name, score) for name, score in scores.items() if score is not None]
