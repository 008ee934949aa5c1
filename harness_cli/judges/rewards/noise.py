"""How noisy a reward is: the same trajectory judged k times.

Every verdict takes fresh calls (a judge opened with `fresh`). Per dimension, over n trajectories
with k scored verdicts each, the one-way layout gives the variance within (of one and the same
trajectory) and between (of trajectories); what is reported is

    deviation   = √within
    reliability = between / (between + within)        ICC(1): 1 is no noise, 0 nothing but noise

For rewards by rule the deviation is 0. GRPO divides by the deviation within a group of rollouts, so
a judge's noise becomes signal wherever rollouts are equally good: a deviation near the gap of
`separation` makes a reward useless.
"""

from collections.abc import Sequence
from math import sqrt

import msgspec

from harness_cli.judges.base import Judge
from harness_cli.judges.rewards.dimension import DIMENSIONS
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.stats.clustered import variance_components


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """One dimension of one judge."""

    dimension: str
    trajectories: int
    """Scored more than once."""
    repeats: int
    deviation: float | None = None
    """Standard deviation within one trajectory; None where none was scored twice."""
    reliability: float | None = None
    """None where it is not identified: all scores are the same, or only one trajectory."""
    unscored: float = 0.0
    """Share of verdicts without this dimension."""


async def measure_noise(
    judge: Judge,
    cases: Sequence[tuple[Item, Trajectory]],
    world: Catalogue,
    *,
    repeats: int,
) -> tuple[Noise, ...]:
    """Judge every case `repeats` times; the noise of each dimension."""
    scores: list[list[dict[str, float | None]]] = []
    for item, trajectory in cases:
        verdicts = [await judge.judge(item, trajectory, world) for _ in range(repeats)]
        scores.append([dict(v.scores) for v in verdicts])
    return tuple(noise_of(name, scores, repeats) for name in DIMENSIONS)


def noise_of(name: str, scores: Sequence[Sequence[dict[str, float | None]]], repeats: int) -> Noise:
    """The noise of one dimension from the scores of every case."""
    groups = [[s for one in case if (s := one.get(name)) is not None] for case in scores]
    total = sum(len(case) for case in scores)
    twice = [g for g in groups if len(g) > 1]
    made = Noise(
        dimension=name,
        trajectories=len(twice),
        repeats=repeats,
        unscored=1 - sum(map(len, groups)) / total if total else 0.0,
    )
    if not twice:
        return made
    within, between = variance_components(twice)
    if within is None:
        return made
    whole = within + max(0.0, between or 0.0)
    known = between is not None and whole > 0
    return msgspec.structs.replace(
        made,
        deviation=sqrt(within),
        reliability=max(0.0, between or 0.0) / whole if known else None,
    )
