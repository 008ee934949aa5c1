"""Run by verl's own interpreter (`test_engine_contracts.py`): its own gspo and gdpo beside ours."""

import json

import numpy as np
import torch
from omegaconf import OmegaConf
from verl.trainer.ppo.core_algos import compute_gdpo_outcome_advantage, compute_policy_loss_gspo
from verl.workers.config import ActorConfig

from harness_cli.training.advantages import gdpo
from harness_cli.training.losses import Clip, segment_policy_loss

F64 = torch.float64
CONFIG = ActorConfig(
    strategy="fsdp",
    rollout_n=4,
    ppo_micro_batch_size_per_gpu=1,
    clip_ratio=0.2,
    clip_ratio_low=0.2,
    clip_ratio_high=0.2,
)


def gspo():
    """Largest difference in loss and gradient over five batches; how many segments were clipped."""
    made = torch.Generator().manual_seed(0)
    off, clipped = 0.0, 0
    for _ in range(5):
        logp = 0.3 * torch.randn(6, 9, generator=made, dtype=F64) - 1
        old = logp + 0.3 * torch.randn(6, 9, generator=made, dtype=F64)
        segments = torch.randint(0, 3, (6, 9), generator=made)
        segments[:, 0], segments[:, 1] = 1, 2
        advantages = torch.randn(6, 2, generator=made, dtype=F64)
        mine, its = logp.clone().requires_grad_(), logp.clone().requires_grad_()
        found = segment_policy_loss(mine, old, segments, advantages, clip=Clip(0.2, 0.2))
        found.loss.backward()
        clipped += int(found.clipped_BS.sum())
        spread = torch.cat([advantages[:, 0], advantages[:, 1]])[:, None].expand(-1, 9)
        mask = torch.cat([segments == 1, segments == 2]).double()
        rows, before = torch.cat([its, its]), torch.cat([old, old])
        other, _ = compute_policy_loss_gspo(
            before, rows, spread, mask, "seq-mean-token-mean", CONFIG
        )
        other.backward()
        apart = (float((found.loss - other).abs()), float((mine.grad - its.grad).abs().max()))
        off = max(off, *apart)
    return off, clipped


def both_gdpo():
    """verl's and ours of the same rewards, two groups of four, six tokens each."""
    rewards = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [1, 0], [1, 0], [1, 0.1]])
    columns = {"one": rewards[:, 0].numpy(), "two": rewards[:, 1].numpy()}
    theirs, _ = compute_gdpo_outcome_advantage(
        torch.zeros(8, 6),
        torch.ones(8, 6),
        np.array(["a"] * 4 + ["b"] * 4, dtype=object),
        config=OmegaConf.create({"gdpo_reward_keys": list(columns)}),
        non_tensor_batch=columns,
        batch={"prompts": torch.zeros(8, 3), "attention_mask": torch.ones(8, 9, dtype=torch.long)},
    )
    return theirs[:, 0].tolist(), gdpo(rewards, 4).values_N.tolist()


if __name__ == "__main__":
    off, clipped = gspo()
    theirs, ours = ([round(v, 3) for v in values] for values in both_gdpo())
    told = {"gspo_off": off, "clipped": clipped, "gdpo": theirs, "ours": ours}
    print("CHECK " + json.dumps(told), flush=True)
