"""Trainers of verl 0.9 (V1) whose advantages are GDPO by segment. Needs verl.

The stock step is taken first: it does KL bookkeeping and the rollout correction of trainers that do
not wait, and writes what it does to the queue; then its advantages are replaced by ours. verl's own
GDPO does not run on V1 (it asks for fields that V1 never fetches), and an advantage function
registered there sees neither segments nor dimensions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
import transfer_queue as tq
from tensordict import TensorDict
from verl.trainer.ppo.v1 import (
    PPOTrainerColocateAsync,
    PPOTrainerSeparateAsync,
    PPOTrainerSync,
    register_trainer,
)
from verl.workers.utils.padding import response_to_nested

from harness_cli.errors import HarnessError, UsageError
from harness_cli.records.reader import read_json
from harness_cli.records.room import RoomCard
from harness_cli.training.scale.grouped import (
    FIELD,
    Placed,
    note_of,
    penalty_of,
    row_advantages,
)

CARD: Final = "room/room.json"
"""In the job's folder, which is the working folder of every process."""
LEAST: Final = 0.5
"""Share of the rollouts asked for below which a batch is not trained: verl pads what failed and
goes on, with nothing if need be."""


class GdpoBySegment:
    """What the three trainers share; `mode` is the trainer of verl that each is at heart."""

    mode = "sync"

    @property
    def trainer_mode(self) -> str:
        """verl asks for its own name in six places, the replay buffer's choice among them: under
        another name a synchronous trainer would be served by the asynchronous buffer."""
        return self.mode

    @trainer_mode.setter
    def trainer_mode(self, _: str) -> None:
        """Not what the configuration calls us."""

    def __init__(self, config: Any, **kwargs: Any) -> None:
        if config.algorithm.use_kl_in_reward:
            raise UsageError(
                "KL inside the reward would not reach GDPO's advantages",
                hint="actor.use_kl_loss=true is KL as METHODS §6 has it",
            )
        self._card = read_json(Path(CARD), RoomCard, name=CARD)
        super().__init__(config=config, **kwargs)  # type: ignore[call-arg]

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Replace the stock advantages of a batch by ours."""
        batch = super()._compute_advantage(batch, metrics)  # type: ignore[misc]
        group = int(self.config.actor_rollout_ref.rollout.n)  # type: ignore[attr-defined]
        rows = placed_rows(batch)
        _refuse_empty(rows, group)
        card = self._card
        values, dropped = row_advantages(
            rows,
            group,
            penalty_of(card),
            final=card.final,
            std=card.std,
            floor=card.spread,
        )
        metrics.update({f"harness/dropped/{name}": share for name, share in dropped.items()})
        metrics["harness/rollouts"] = len({(r.group, r.rollout) for r in rows if r.note})
        return put_advantages(batch, values)


def placed_rows(batch: Any) -> list[Placed]:
    """Every row of a batch with its group, its rollout and its note, in the batch's order."""
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"]
    )
    # A field that is no tensor comes back as a linked list.
    fields = [getattr(f, "data", f) for f in list(data["extra_fields"])]
    found = []
    for key, tag, given in zip(batch.keys, batch.tags, fields, strict=True):
        group, rollout, _ = key.rsplit("_", 2)
        padding = bool(tag.get("is_padding", False))
        found.append(Placed(group, int(rollout), None if padding else note_of(given.get(FIELD))))
    return found


def put_advantages(batch: Any, values: Sequence[float]) -> Any:
    """Write one advantage a row to all tokens that its mask lets through."""
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=["response_mask"]
    )
    nested = data["response_mask"]
    mask = nested.to_padded_tensor(0).float()
    spread = torch.tensor(list(values), dtype=torch.float32)[:, None] * mask
    own = response_to_nested(spread, nested)
    written = TensorDict({"advantages": own, "returns": own.clone()}, batch_size=len(values))
    return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=written)


def _refuse_empty(rows: Sequence[Placed], group: int) -> None:
    real = {(row.group, row.rollout) for row in rows if row.note is not None}
    asked = len({name for name, _ in real}) * group
    if not real or len(real) < LEAST * asked:
        raise HarnessError(
            f"{len(real)} of {asked or 'all'} rollouts of this batch are left",
            hint="the workers' logs say why the others failed",
        )


@register_trainer("harness_sync")
class HarnessSync(GdpoBySegment, PPOTrainerSync):  # type: ignore[misc]
    """Trainer and sampler take turns."""


@register_trainer("harness_colocate_async")
class HarnessColocateAsync(GdpoBySegment, PPOTrainerColocateAsync):  # type: ignore[misc]
    """Trainer and sampler share GPUs; rollouts may span updates."""

    mode = "colocate_async"


@register_trainer("harness_separate_async")
class HarnessSeparateAsync(GdpoBySegment, PPOTrainerSeparateAsync):  # type: ignore[misc]
    """Trainer and sampler on GPUs of their own."""

    mode = "separate_async"
