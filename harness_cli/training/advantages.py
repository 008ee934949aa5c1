"""Advantages of rollouts within their group: GRPO, leave-one-out, GDPO (METHODS §6, TR Eq. 3).

Rollouts of one group stand together: row i belongs to group i // G. A reward that is NaN is *not
applicable* to its rollout: it counts in no mean and no deviation and contributes nothing. A rollout
to which nothing applies is invalid; it gets 0 and is left out of the second normalisation too. The
arithmetic is done in float64, whatever the rewards' type.

Every σ is the population deviation over the group (1/G, T2); `std: sample` (1/(G-1)) and `eps`
exist for equality with TRL. A spread below the floor counts as none: what is divided by a tiny
deviation, or by an epsilon beside it, turns rounding or a judge's noise into a signal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor

from harness_cli.errors import UsageError

FinalStep = Literal["group", "batch", "none"]
Std = Literal["population", "sample"]
FLOOR: Final = 0.01
"""Smallest spread of a reward within a group that counts: a hundredth of its range (**choice**)."""
SUM_FLOOR: Final = 1e-6
"""Smallest spread of a sum of normalised rewards: below it dimensions have cancelled out."""
ROUNDING: Final = 1e-9
"""Deviations from a mean, in σ, up to which a value is the mean: what is left is rounding."""


@dataclass(frozen=True, slots=True)
class Advantages:
    """One advantage a rollout."""

    values_N: Tensor
    """0 where the rollout is invalid."""
    valid_N: Tensor
    """False where no reward applied."""

    @property
    def live_N(self) -> Tensor:
        """The rollouts that are left by the zero-advantage filter (TR §3.3, DAPO).

        Decided on *final* advantages. A filter on summed rewards would drop groups whose dimensions
        differ while their sums do not.
        """
        return self.valid_N & (self.values_N != 0)

    @property
    def dropped(self) -> float:
        """Share of the valid rollouts whose advantage is 0; 0 where none is valid."""
        valid = int(self.valid_N.sum())
        return 1 - int(self.live_N.sum()) / valid if valid else 0.0


@dataclass(frozen=True, slots=True)
class _Moments:
    mean: Tensor
    spread: Tensor
    count: Tensor


def grpo(
    rewards_N: Tensor,
    group: int,
    *,
    std: Std = "population",
    floor: float = FLOOR,
    eps: float = 0.0,
) -> Advantages:
    """A_i = (R_i - mean) / σ over the group. Source: GRPO, as METHODS §6 has it.

    Raises `UsageError` where rewards are no whole number of groups.
    """
    grouped = _grouped(rewards_N[:, None], group)
    valid = ~torch.isnan(grouped)
    values = _normalised(grouped, valid, dim=1, std=std, floor=floor, eps=eps)
    return _result(values.squeeze(-1), valid.squeeze(-1), rewards_N)


def leave_one_out(rewards_N: Tensor, group: int) -> Advantages:
    """A_i = R_i - mean of the others of the group. Source: T2, RLOO.

    A rollout whose group has no other valid one has nothing to be compared with: 0.
    """
    grouped = _grouped(rewards_N[:, None], group).squeeze(-1)
    valid = ~torch.isnan(grouped)
    filled = torch.where(valid, grouped, 0.0)
    others = valid.sum(1, keepdim=True) - 1
    mean = (filled.sum(1, keepdim=True) - filled) / others.clamp(min=1)
    return _result(torch.where(valid & (others > 0), filled - mean, 0.0), valid, rewards_N)


def gdpo(
    rewards_NK: Tensor,
    group: int,
    *,
    weights: Sequence[float] | None = None,
    final: FinalStep = "group",
    std: Std = "population",
    floor: float = FLOOR,
    eps: float = 0.0,
) -> Advantages:
    """Each dimension normalised within its group, summed by weight, normalised again (TR Eq. 3).

    `weights` apply after the first normalisation (λ = -0.1 of the CoT score). `final: group` is the
    report's; `batch`, over all valid rollouts, is TRL's, verl's and the GDPO paper's (Eq. 6).

    Where one dimension alone differs in a group, `final: group` gives it unit scale whatever its
    weight: the report's own formula, and a reason to look at `batch`.

    Raises `UsageError` where rewards are no whole number of groups, or weights no one for each.
    """
    grouped = _grouped(rewards_NK, group)
    dimensions = rewards_NK.shape[1]
    if weights is not None and len(weights) != dimensions:
        raise UsageError(f"{len(weights)} weights for {dimensions} reward dimensions")
    applies = ~torch.isnan(grouped)
    each = _normalised(grouped, applies, dim=1, std=std, floor=floor, eps=eps)
    if weights is not None:
        each = each * torch.tensor(weights, dtype=each.dtype, device=each.device)
    summed, valid = each.sum(-1), applies.any(-1)
    if final == "group":
        summed = _normalised(summed, valid, dim=1, std=std, floor=SUM_FLOOR, eps=eps)
    elif final == "batch":
        flat, ok = summed.reshape(1, -1), valid.reshape(1, -1)
        summed = _normalised(flat, ok, dim=1, std=std, floor=SUM_FLOOR, eps=eps)
    return _result(torch.where(valid.reshape(summed.shape), summed, 0.0), valid, rewards_NK)


def _grouped(rewards_NK: Tensor, group: int) -> Tensor:
    """(groups, G, K) in float64."""
    n, dimensions = rewards_NK.shape
    if group < 1 or n % group:
        raise UsageError(
            f"{n} rollouts are no whole number of groups of {group}",
            hint="a rollout that failed keeps its place in its group, with NaN rewards",
        )
    return rewards_NK.detach().to(torch.float64).reshape(-1, group, dimensions)


def _moments(values: Tensor, valid: Tensor, dim: int, std: Std) -> _Moments:
    """Mean, deviation and number of the valid values along a dimension."""
    count = valid.sum(dim, keepdim=True)
    mean = torch.where(valid, values, 0.0).sum(dim, keepdim=True) / count.clamp(min=1)
    off = torch.where(valid, values - mean, 0.0)
    degrees = count - 1 if std == "sample" else count
    spread = (off.square().sum(dim, keepdim=True) / degrees.clamp(min=1)).sqrt()
    return _Moments(mean, spread, count)


def _normalised(
    values: Tensor, valid: Tensor, *, dim: int, std: Std, floor: float, eps: float
) -> Tensor:
    """(value - mean) / (σ + eps); 0 where it does not apply or σ is not above the floor.

    A value at the mean is exactly 0: the zero-advantage filter must not depend on rounding.
    """
    found = _moments(values, valid, dim, std)
    wide = found.spread > floor
    scale = torch.where(wide, found.spread + eps, 1.0)
    made = (values - found.mean) / scale
    return torch.where(valid & wide & (made.abs() > ROUNDING), made, 0.0)


def _result(values: Tensor, valid: Tensor, like: Tensor) -> Advantages:
    return Advantages(values.reshape(-1).to(like.dtype), valid.reshape(-1))
