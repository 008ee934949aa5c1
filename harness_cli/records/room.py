"""`room.json`: what an engine's rollout workers and trainers need to know of a job."""

from typing import Literal

import msgspec

from harness_cli.records.augmentation import Recipe
from harness_cli.records.rl_job import Penalty, Rooms


class RoomCard(msgspec.Struct, frozen=True, kw_only=True):
    """The card of a room."""

    schema: int = 1
    name: str
    harness: str
    """Id of the base state."""
    catalogue: str
    """Digest of the catalogue."""
    rooms: Rooms | None = None
    """Live rooms that tasks come from; items where there are none."""
    seed: int = 0
    augmented: float = 0.0
    """Share of groups that run under an augmented state."""
    pool: int = 100
    recipe: Recipe = Recipe()
    judge: str | None = None
    """Reward judge; the project's role `reward_judge`, else rewards by rule."""
    pipeline: str = "default"
    new_tokens: int = 512
    """Of one answer."""
    context: int = 16_384
    """Tokens of a whole conversation."""
    temperature: float = 1.0
    penalty: Penalty = Penalty()
    final: Literal["group", "batch", "none"] = "group"
    std: Literal["population", "sample"] = "population"
    spread: float = 0.01
    truncated: Literal["keep", "drop"] = "keep"
    rows: Literal["segments", "whole"] = "segments"
    """Two rows a rollout for reinforcement, one for distillation."""
    one_version: bool = True
    """The trainer waits: all of a rollout is sampled under the same weights."""
