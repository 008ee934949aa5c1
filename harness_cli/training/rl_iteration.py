"""One iteration of HSA-RL between TRL's hooks: what is held, and what is made of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from harness_cli.records.canonical import digest
from harness_cli.records.rl_job import RlTraining
from harness_cli.training.collecting import Collected, Collector
from harness_cli.training.losses import Clip
from harness_cli.training.rewards import COLUMNS, SEGMENTS, CotPenalty, reward_row

TABLE: Final = "reward_row"
"""The extra field in which TRL hands a rollout's rewards to its reward functions."""
SCORED: Final = COLUMNS[: -len(SEGMENTS)]
"""The columns that a judge scores."""


@dataclass(slots=True)
class Hat:
    """What makes a GRPO trainer ours."""

    job: RlTraining
    collector: Collector
    sampler: Any
    """`CheckpointPolicy`: the weights are swapped in before every iteration."""
    folder: Path
    reference: Any = None
    """The base, where a KL penalty wants it and no adapter can be switched off."""
    drawn: list[Collected] = field(default_factory=list)
    table_NC: Tensor | None = None
    version: str = ""

    @property
    def penalty(self) -> CotPenalty:
        """The job's penalty on reasoning."""
        given = self.job.penalty
        return CotPenalty(int(given.low), int(given.high), given.weight)

    @property
    def clip(self) -> Clip:
        """The job's clip range."""
        return Clip(self.job.epsilon_low, self.job.epsilon_high)

    def unscored(self, one: Collected) -> str:
        """Why a rollout has no rewards, where it has none or may not have them."""
        if self.job.truncated == "drop" and one.rollout.truncated:
            return f"cut off at `new_tokens: {self.job.new_tokens}`"
        return one.unscored

    def rows(self) -> list[list[float]]:
        """The reward table of what was drawn; one that was cut off is unscored where the job says
        to drop it."""
        dropping = self.job.truncated == "drop"
        return [
            reward_row(
                {} if dropping and one.rollout.truncated else one.rewards,
                one.rollout.cot,
                self.penalty,
            )
            for one in self.drawn
        ]

    def measured(self) -> dict[str, Sequence[float]]:
        """What each rollout shows, by name."""
        drawn = self.drawn
        values: dict[str, Sequence[float]] = {
            "forks": [c.rollout.forks for c in drawn],
            "truncated": [c.rollout.truncated for c in drawn],
            "augmented": [c.played.augmented for c in drawn],
            "unscored": [any(c.rewards.get(d) is None for d in SCORED) for c in drawn],
        }
        for segment in SEGMENTS:
            values[f"cot/{segment}"] = [c.rollout.cot[segment] for c in drawn]
            values[f"tokens/{segment}"] = [c.rollout.tokens[segment] for c in drawn]
        return values


def column_of(name: str) -> Callable[..., list[float]]:
    """A reward function of TRL that reads one column of the table."""
    place = COLUMNS.index(name)

    def column(**given: Any) -> list[float]:
        return [row[place] for row in given[TABLE]]

    column.__name__ = name
    return column


def shared_of(made: Collected) -> tuple[str, tuple[str, ...]]:
    """Group, and what all its rollouts have in common."""
    shared = (
        made.played.trajectory.harness_id,
        made.played.request,
        made.rollout.policy_id,
        digest(list(made.rollout.prompt)) if made.rollout.prompt else "",
    )
    return made.place.group, shared


def fingerprint(model: Any) -> str:
    """A digest of the weights that are trained: another one after every update that moved them.

    Sums in float64 stand for the bytes: hashing a model of a billion weights takes longer than what
    it is for.
    """
    sums = [
        [name, float(p.detach().double().sum()), float(p.detach().double().abs().sum())]
        for name, p in model.named_parameters()
        if p.requires_grad
    ]
    return digest(sums)
