"""Rollouts as tensors: (B, R, W), rollouts × rows × tokens, padded on the right.

The first dimension is rollouts, so that TRL's shuffling and its cutting into micro-batches keep a
rollout's rows together; a micro-batch is then laid flat, without empty rows and padding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness_cli.training.rollouts import Rollout

Batch = dict[str, Tensor]


def padded(rollouts: Sequence[Rollout], pad: int) -> Batch:
    """The rows of rollouts. One that has none gets a row of padding, without any loss."""
    count = max((len(r.rows) for r in rollouts), default=0) or 1
    width = max((len(row.input_ids) for r in rollouts for row in r.rows), default=0)
    width = max(width, 2)
    shape = (len(rollouts), count, width)
    made = {
        "row_ids": torch.full(shape, pad, dtype=torch.long),
        "row_mask": torch.zeros(shape, dtype=torch.long),
        "row_segments": torch.zeros(shape, dtype=torch.long),
        "row_behaviour": torch.zeros(shape),
    }
    for i, rollout in enumerate(rollouts):
        for j, row in enumerate(rollout.rows):
            length = len(row.input_ids)
            made["row_ids"][i, j, :length] = torch.tensor(row.input_ids)
            made["row_mask"][i, j, :length] = 1
            made["row_segments"][i, j, :length] = torch.tensor(row.segment_ids)
            made["row_behaviour"][i, j, :length] = torch.tensor(row.logprobs)
        if not rollout.rows:
            made["row_mask"][i, 0, :2] = 1
    return made


@dataclass(frozen=True, slots=True)
class Flat:
    """The rows of some rollouts, one below the other: (N, W)."""

    ids: Tensor
    mask: Tensor
    segments: Tensor
    owner_N: Tensor
    """Which rollout a row belongs to."""
    places: Tensor
    """Where the rows stood: positions in (B·R)."""
    keep: int
    """How many of the last tokens are needed: from the first sampled one on."""

    def cut(self, values_BRW: Tensor) -> Tensor:
        """What stands at the kept tokens of these rows: (N, keep)."""
        flat = values_BRW.reshape(-1, values_BRW.shape[-1])[self.places, : self.mask.shape[1]]
        return flat[:, -self.keep :]

    @property
    def kept(self) -> Tensor:
        """Segments of the kept tokens: (N, keep)."""
        return self.segments[:, -self.keep :]


def flat(batch: Mapping[str, Tensor]) -> Flat:
    """The rows of a micro-batch without those that are empty, as narrow as the longest."""
    mask_BRW = batch["row_mask"]
    rollouts, rows, width = mask_BRW.shape
    lengths = mask_BRW.sum(-1).reshape(-1)
    places = lengths.nonzero().squeeze(-1)
    longest = int(lengths.max())

    def taken(name: str) -> Tensor:
        return batch[name].reshape(-1, width)[places, :longest]

    segments = taken("row_segments")
    sampled = (segments > 0).any(0).nonzero()
    first = int(sampled[0]) if len(sampled) else longest - 1
    owner = torch.arange(rollouts, device=mask_BRW.device).repeat_interleave(rows)[places]
    return Flat(
        ids=taken("row_ids"),
        mask=taken("row_mask"),
        segments=segments,
        owner_N=owner,
        places=places,
        keep=longest - first,
    )


def unflat(values_NK: Tensor, rows: Flat, like_BRW: Tensor) -> Tensor:
    """Values of kept tokens back in their places: (B, R, W), 0 elsewhere."""
    made = torch.zeros(like_BRW.shape, dtype=values_NK.dtype, device=values_NK.device)
    view = made.reshape(-1, like_BRW.shape[-1])
    width = rows.mask.shape[1]
    filled = torch.zeros(len(rows.places), width, dtype=values_NK.dtype, device=values_NK.device)
    filled[:, -rows.keep :] = values_NK
    view[rows.places, :width] = filled
    return made
