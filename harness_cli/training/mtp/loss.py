"""The multi-token loss of a draft head (TR Eq. 6), on rows exactly as a server drafts them.

    L(φ) = −1/Z Σ_{k<K} Σ_{t=1}^{T−1−k} log p_φ^(k)(y_{t+1+k} | y_≤t),   Z = Σ_{k<K} (T − 1 − k)

y_1 … y_T is what the policy sampled behind its prompt. A row starts from the policy's hidden state
of the token before y_t and from y_t; depth k has been through the head k + 1 times, with the real
tokens y_{t+1} … y_{t+k} in place of drafts.

A server keeps keys and values of the rows whose hidden state is the policy's, and of the draft that
is under way. So a row of depth k attends to rows of depth 0 up to its own start, and to itself at
the depths between: not to other drafts. `depth_mask` says so.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from harness_cli.models.checkpoint_head import DraftHead


@dataclass(frozen=True, slots=True)
class Batch:
    """Rollouts side by side, padded on the right. ids (B, L); first, lengths (B,)."""

    ids: Tensor
    first: Tensor
    """Index of y_1 in each row: the length of its prompt, at least 1."""
    lengths: Tensor
    """Prompt and answer together."""


@dataclass(frozen=True, slots=True)
class MtpLoss:
    """Eq. 6 of a batch: `total` carries the gradient, the rest is for the curve."""

    total: Tensor
    by_depth: tuple[float, ...]
    """Mean cross-entropy of each depth; NaN where a batch has no term of it."""
    hits: tuple[float, ...]
    """Share of terms whose likeliest token is the sampled one."""
    terms: int
    """Z, summed over the batch."""


def mtp_loss(head: DraftHead, policy: Any, hidden: Tensor, batch: Batch, depths: int) -> MtpLoss:
    """Eq. 6 over a batch: one sum over all rollouts, divided by the sum of their Z.

    `hidden` (B, L, H): the policy's states after its final norm, without gradient. The policy's
    embedding and lm_head are used and not changed. Raises `ValueError` without a single term.
    """
    embedded = policy.get_input_embeddings()(batch.ids).to(hidden.dtype)
    sums, by_depth, hits, terms = hidden.new_zeros(()), [], [], 0
    for depth, state in enumerate(unrolled(head, embedded, hidden, depths)):
        kept = terms_of(batch, depth)
        count = int(kept.sum())
        if not count:
            by_depth.append(float("nan"))
            hits.append(float("nan"))
            continue
        logits = policy.lm_head(state[:, : kept.shape[1]][kept]).float()
        wanted = batch.ids[:, depth + 2 :][kept]
        loss = cross_entropy(logits, wanted, reduction="sum")
        sums = sums + loss
        terms += count
        by_depth.append(float(loss.detach()) / count)
        hits.append(float((logits.argmax(-1) == wanted).float().mean()))
    if not terms:
        raise ValueError("no rollout is long enough for one term")
    return MtpLoss(sums / terms, tuple(by_depth), tuple(hits), terms)


def unrolled(head: DraftHead, embedded: Tensor, hidden: Tensor, depths: int) -> list[Tensor]:
    """States of every depth: (B, L − 1 − k, H) for k < `depths`, row i started from token i."""
    length, device = hidden.shape[1], hidden.device
    cache, states, state = head.new_cache(), [], hidden
    for depth in range(min(depths, length - 1)):
        rows = length - 1 - depth
        positions = torch.arange(depth, depth + rows, device=device)[None]
        seen = depth_mask(length, depth).to(device)
        state = head(
            embedded[:, 1 + depth :],
            state[:, :rows],
            positions.expand(hidden.shape[0], rows),
            cache=cache,
            seen=seen,
        )
        states.append(state)
    return states


def depth_mask(length: int, depth: int) -> Tensor:
    """Who sees whom at a depth, (L − 1 − depth, Σ_{d ≤ depth} (L − 1 − d)) of booleans.

    Rows of depth 0 are seen up to the row's own start; of the depths since, its own row alone.
    """
    rows = length - 1 - depth
    real = torch.ones(rows, length - 1, dtype=torch.bool).tril()
    own = [torch.eye(rows, length - 1 - d, dtype=torch.bool) for d in range(1, depth + 1)]
    return torch.cat([real, *own], 1)


def terms_of(batch: Batch, depth: int) -> Tensor:
    """Which rows are terms of Eq. 6 at a depth, (B, L − 2 − depth) of booleans.

    Row i predicts token i + 2 + depth; t = 1 is row first − 1, and the last target the last token.
    """
    width = max(0, batch.ids.shape[1] - 2 - depth)
    row = torch.arange(width, device=batch.ids.device)[None]
    begun = row >= batch.first[:, None] - 1
    within = row + 2 + depth < batch.lengths[:, None]
    return begun & within
