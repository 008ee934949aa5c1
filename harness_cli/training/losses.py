"""Losses over token log-probabilities: pure functions, each with its formula and its source.

Shapes: `_RT` rows × tokens, `_BS` rollouts × segments. A rollout has one row as a rule, and more
where its context was rewritten between turns (`rollouts.py`): `rollout_R` says whose a row is, so a
segment's ratio is taken over all its tokens wherever they stand. Two segments in one row are
exactly two rows. A masked token never enters the sums, whatever stands there: its gradient is 0.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from harness_cli.errors import UsageError
from harness_cli.training.tokens import KINDS

Ratio = Literal["sequence", "token"]
Denominator = Literal["sampled", "kept"]


@dataclass(frozen=True, slots=True)
class Clip:
    """The range 1 - low … 1 + high of the ratio. GSPO's own by default (Zheng et al. 2025)."""

    low: float = 3e-4
    high: float = 4e-4

    def __post_init__(self) -> None:
        """Raise `UsageError` for a range that is none."""
        if not (0 <= self.low < 1 and self.high >= 0):
            raise UsageError(f"clip needs 0 <= low < 1 and high >= 0: {self.low}, {self.high}")


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A policy loss, with what is worth watching."""

    loss: Tensor
    ratio_BS: Tensor
    """Sequence-level ratio of each segment, detached; 1 where it has no token."""
    clipped_BS: Tensor
    """Share of the segment (0 or 1 for `ratio: sequence`) whose gradient the clip took away."""
    live_BS: Tensor
    """Segments that count: with tokens and an advantage other than 0."""
    terms_BS: Tensor
    """What each segment adds to the objective, detached."""


def sums_of(values_RT: Tensor, mask_RT: Tensor, rollout_R: Tensor, rollouts: int) -> Tensor:
    """Sum of the masked values of each rollout, over all its rows: (B,)."""
    rows = torch.where(mask_RT, values_RT, 0.0).sum(-1)
    return torch.zeros(rollouts, dtype=rows.dtype, device=rows.device).index_add(0, rollout_R, rows)


def segment_policy_loss(
    logp_RT: Tensor,
    old_RT: Tensor,
    segment_RT: Tensor,
    advantages_BS: Tensor,
    *,
    rollout_R: Tensor | None = None,
    clip: Clip | None = None,
    ratio: Ratio = "sequence",
    denominator: Denominator = "sampled",
    kept: Tensor | float | None = None,
) -> PolicyLoss:
    """GSPO for each segment (TR Eq. 4), or Algorithm 1's token ratio (`ratio: token`).

        ρ = exp( (1/|y|) Σ_t [log π_θ - log π_old] )      sequence
        L = -1/(|S|·B) Σ_s Σ_i min( ρ A, clip(ρ, 1-low, 1+high) A )

    With `token` the clipped term is taken token by token and averaged over the segment's tokens.
    Every rollout weighs the same, however long it is. `denominator: kept` divides by the segments
    that the zero-advantage filter left; `kept` gives their number where a batch is cut into
    micro-batches or ranks, so that all divide by the same.
    """
    rollouts = advantages_BS.shape[0]
    owner = _owners(rollout_R, logp_RT)
    bounds = clip or Clip()
    terms, ratios, clipped, counts = [], [], [], []
    for place, number in enumerate(KINDS.values()):
        own = segment_RT == number
        count = torch.zeros(rollouts, dtype=logp_RT.dtype, device=logp_RT.device).index_add(
            0, owner, own.sum(-1).to(logp_RT.dtype)
        )
        length = count.clamp(min=1)
        off = torch.where(own, logp_RT - old_RT, 0.0)
        mean = sums_of(off, own, owner, rollouts) / length
        rho = mean.exp()
        advantage = advantages_BS[:, place].to(logp_RT.dtype)
        if ratio == "sequence":
            term, cut = _clipped(rho, advantage, bounds)
        else:
            each, cuts = _clipped(off.exp(), advantage[owner][:, None], bounds)
            term = sums_of(each, own, owner, rollouts) / length
            cut = sums_of(cuts.to(logp_RT.dtype), own, owner, rollouts) / length
        terms.append(term)
        ratios.append(rho.detach())
        clipped.append(cut.to(logp_RT.dtype).detach())
        counts.append(count)
    live = (torch.stack(counts, -1) > 0) & (advantages_BS != 0)
    summed = torch.where(live, torch.stack(terms, -1), 0.0)
    loss = -summed.sum() / _divisor(live, denominator, kept)
    return PolicyLoss(
        loss, torch.stack(ratios, -1), torch.stack(clipped, -1), live, summed.detach()
    )


def _clipped(ratio: Tensor, advantage: Tensor, clip: Clip) -> tuple[Tensor, Tensor]:
    """min(r A, clip(r) A), and where the clip is what counts, so that no gradient flows."""
    free = ratio * advantage
    held = ratio.clamp(1 - clip.low, 1 + clip.high) * advantage
    outside = ((ratio > 1 + clip.high) & (advantage > 0)) | (
        (ratio < 1 - clip.low) & (advantage < 0)
    )
    return torch.min(free, held), outside


def _divisor(live_BS: Tensor, how: Denominator, kept: Tensor | float | None) -> Tensor | float:
    if how == "sampled":
        return float(live_BS.numel())
    if kept is None:
        return live_BS.sum().clamp(min=1)
    return max(float(kept), 1.0)


def _owners(rollout_R: Tensor | None, logp_RT: Tensor) -> Tensor:
    if rollout_R is None:
        return torch.arange(logp_RT.shape[0], device=logp_RT.device)
    return rollout_R


def decoupled_loss(
    logp_RT: Tensor,
    proximal_RT: Tensor,
    behaviour_RT: Tensor,
    mask_RT: Tensor,
    advantages_R: Tensor,
    *,
    low: float = 0.2,
    high: float = 0.2,
    cap: float | None = 5.0,
) -> Tensor:
    """E[ π_prox/π_behav · min(r A, clip(r, 1±ε) A) ], r = π_θ/π_prox; mean over tokens (T2).

    The behaviour weight carries no gradient; a token whose weight is above `cap` is left out
    (weight 0), as one that the behaviour policy hardly ever says.
    """
    on = mask_RT.bool()
    weight = torch.where(on, proximal_RT - behaviour_RT, 0.0).exp().detach()
    if cap is not None:
        weight = torch.where(weight <= cap, weight, 0.0)
    ratio = torch.where(on, logp_RT - proximal_RT, 0.0).exp()
    term, _ = _clipped(ratio, advantages_R[:, None].to(logp_RT.dtype), Clip(low, high))
    return -torch.where(on, weight * term, 0.0).sum() / on.sum().clamp(min=1)


def k3(logp_RT: Tensor, reference_RT: Tensor) -> Tensor:
    """KL(π_θ ‖ π_ref) by token, Schulman's k3 estimator: e^d - d - 1, d = log π_ref - log π_θ.

    Never negative. No ratio before it: TRL's `use_bias_correction_kl` is another quantity.
    """
    off = reference_RT - logp_RT
    return off.exp() - off - 1


def kl_penalty(
    logp_RT: Tensor, reference_RT: Tensor, mask_RT: Tensor, rollout_R: Tensor, rollouts: int
) -> Tensor:
    """Mean over rollouts of the mean k3 of their tokens: weighted as the policy loss is."""
    on = mask_RT.bool()
    each = k3(torch.where(on, logp_RT, 0.0), torch.where(on, reference_RT, 0.0))
    count = sums_of(torch.ones_like(logp_RT), on, rollout_R, rollouts)
    return (sums_of(each, on, rollout_R, rollouts) / count.clamp(min=1)).sum() / rollouts


def reverse_kl(student_NV: Tensor, teacher_NV: Tensor, *, chunk: int = 256) -> Tensor:
    """KL( p_student ‖ p_teacher ) of each token over the whole vocabulary: (N,) (TR Eq. 5, §5.3).

    Logits of the student's own tokens. The work is done `chunk` tokens at a time and again in the
    backward pass, so that beside the logits only a chunk's distributions are held.

    Raises `UsageError` for vocabularies of different sizes.
    """
    if student_NV.shape != teacher_NV.shape:
        raise UsageError(
            f"the teacher has another vocabulary: {teacher_NV.shape[-1]} tokens for "
            f"{student_NV.shape[-1]}",
            hint="teacher and student must share one tokenizer",
        )
    parts = [
        checkpoint(_reverse_kl, s, t.detach(), use_reentrant=False)
        for s, t in zip(student_NV.split(chunk), teacher_NV.split(chunk), strict=True)
    ]
    return torch.cat(parts) if parts else student_NV.sum(-1)


def _reverse_kl(student: Tensor, teacher: Tensor) -> Tensor:
    log_p = torch.log_softmax(student.float(), -1)
    log_q = torch.log_softmax(teacher.float(), -1)
    p = log_p.exp()
    # Chosen before the product: 0 · (-inf) of an impossible token would be NaN in the gradient.
    return (p * torch.where(p > 0, log_p - log_q, 0.0)).sum(-1)


def distillation_loss(
    student_RTV: Tensor, teacher_RTV: Tensor, mask_RT: Tensor, *, chunk: int = 256
) -> Tensor:
    """Mean divergence over the student's own tokens: those in the mask alone are looked at."""
    on = mask_RT.bool()
    each = reverse_kl(student_RTV[on], teacher_RTV[on], chunk=chunk)
    return each.sum() / on.sum().clamp(min=1)


def sft_loss(logp_RT: Tensor, mask_RT: Tensor, *, tokens: Tensor | float | None = None) -> Tensor:
    """-(1/n) Σ log π_θ over the tokens with loss; `tokens` is n of the whole accumulated batch."""
    on = mask_RT.bool()
    total = on.sum() if tokens is None else tokens
    return -torch.where(on, logp_RT, 0.0).sum() / max(float(total), 1.0)
