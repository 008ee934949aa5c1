"""From verdicts and tokens to the rewards of a segment, and from those to its advantages (TR §3.3).

    D_tool  = tool rationality, skill selection      D_reply = accuracy, effectiveness
    CoT     = q(L) of the segment's reasoning, weight -λ after normalisation (TR Eq. 2 and 3)

Columns of a reward table: the four dimensions, then q of the tool and of the reply segment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from harness_cli.errors import UsageError
from harness_cli.judges.rewards.dimension import REPLY, TOOL
from harness_cli.training.advantages import FLOOR, FinalStep, Std, gdpo
from harness_cli.training.tokens import KINDS

SEGMENTS: Final = tuple(KINDS)
"""tool, reply; segment ids of tokens are 1 and 2, in this order (`tokens.KINDS`)."""
DIMENSIONS: Final = {"tool": TOOL, "reply": REPLY}
COLUMNS: Final = (*TOOL, *REPLY, "cot_tool", "cot_reply")
"""Columns of a reward table, in order."""
LOW: Final = 100
"""No penalty up to so many tokens of reasoning (TR §3.3)."""
HIGH: Final = 200
"""All of it from so many on."""
WEIGHT: Final = 0.1
"""λ, after normalisation."""


@dataclass(frozen=True, slots=True)
class CotPenalty:
    """The penalty on long reasoning. `weight` 0 switches it off."""

    low: int = LOW
    high: int = HIGH
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        """Raise `UsageError` for bounds that are none."""
        if not 0 <= self.low < self.high:
            raise UsageError(f"the CoT penalty needs 0 <= low < high, not {self.low}, {self.high}")


def cot_score(lengths: Tensor, penalty: CotPenalty | None = None) -> Tensor:
    """q(L) in [0, 1] of lengths in tokens (TR Eq. 2)."""
    bounds = penalty or CotPenalty()
    over = lengths.to(torch.float64) - bounds.low
    return (over / (bounds.high - bounds.low)).clamp(0.0, 1.0)


def reward_row(
    scores: Mapping[str, float | None], cot: Mapping[str, int], penalty: CotPenalty
) -> list[float]:
    """One rollout's line of the table; NaN where a dimension is unscored, which is not 0.

    `cot` are tokens of reasoning by segment, each measured by itself, so that one does not use up
    the other's allowance. A segment that a rollout lacks keeps its rewards, L = 0: that no tool was
    called is what its group's other rollouts are compared with.
    """
    names = (*DIMENSIONS["tool"], *DIMENSIONS["reply"])
    found = [scores.get(name) for name in names]
    row = [float("nan") if score is None else float(score) for score in found]
    lengths = torch.tensor([cot.get(segment, 0) for segment in SEGMENTS])
    return [*row, *cot_score(lengths, penalty).tolist()]


@dataclass(frozen=True, slots=True)
class SegmentAdvantages:
    """Advantages of every rollout, by segment: (N, S)."""

    values_NS: Tensor
    valid_NS: Tensor

    @property
    def live_NS(self) -> Tensor:
        """Left by the zero-advantage filter, segment by segment."""
        return self.valid_NS & (self.values_NS != 0)

    def dropped(self) -> dict[str, float]:
        """Share of valid rollouts with advantage 0, by segment; 0 where none is valid."""
        valid, live = self.valid_NS.sum(0).tolist(), self.live_NS.sum(0).tolist()
        pairs = zip(SEGMENTS, valid, live, strict=True)
        return {segment: 1 - alive / n if n else 0.0 for segment, n, alive in pairs}


def segment_advantages(
    table_NC: Tensor,
    group: int,
    penalty: CotPenalty,
    *,
    final: FinalStep = "group",
    std: Std = "population",
    floor: float = FLOOR,
) -> SegmentAdvantages:
    """GDPO for each segment over a table of `COLUMNS` (TR Alg. 1, lines 13 to 18).

    A rollout of which a segment has no scored dimension is invalid there: a CoT score alone says
    nothing about what was done.
    """
    values, valid = [], []
    for segment in SEGMENTS:
        scored = [COLUMNS.index(name) for name in DIMENSIONS[segment]]
        cot = COLUMNS.index(f"cot_{segment}")
        rewards = table_NC[:, [*scored, cot]].clone()
        unscored = torch.isnan(rewards[:, :-1]).all(-1)
        rewards[unscored] = torch.nan
        found = gdpo(
            rewards,
            group,
            weights=[*([1.0] * len(scored)), -penalty.weight],
            final=final,
            std=std,
            floor=floor,
        )
        values.append(found.values_N)
        valid.append(found.valid_N)
    return SegmentAdvantages(torch.stack(values, -1), torch.stack(valid, -1))
