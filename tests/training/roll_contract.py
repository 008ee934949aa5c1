"""Run by an interpreter that has ROLL's dependencies, its checkout on the path: one line a check.

python roll_contract.py FOLDER…     compose, build `AgenticConfig`, the loss that it chooses
"""

import json
import sys
from pathlib import Path


def say(**told):
    print("CHECK " + json.dumps(told, ensure_ascii=False), flush=True)


def config_of(folder):
    from dacite import from_dict
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf
    from roll.pipeline.agentic.agentic_config import AgenticConfig

    with initialize_config_dir(str(Path(folder).resolve()), version_base=None):
        cfg = compose(config_name="harness_rl")
    return from_dict(AgenticConfig, OmegaConf.to_container(cfg, resolve=True))


def main():
    import torch
    from roll.utils.functionals import agg_loss

    for folder in sys.argv[1:]:
        made = config_of(folder)
        generating = made.actor_infer.generating_args
        loss = torch.tensor([[1.0, 1.0, 50.0, 50.0]], requires_grad=True)
        mask = torch.tensor([[1, 1, 0, 0]])
        tokens, samples = torch.tensor(2.0), torch.tensor(1.0)
        found = agg_loss(loss, mask, made.loss_agg_mode, batch_num_tokens=tokens,
                         global_valid_samples=samples)  # fmt: skip
        found.backward()
        say(
            folder=Path(folder).name,
            kind=type(made).__name__,
            ratio=made.ratio_type,
            loss=made.loss_agg_mode,
            clip=[made.use_pg_clip_range, made.pg_clip_low, made.pg_clip_high],
            batch=made.rollout_batch_size,
            group=made.train_env_manager.group_size,
            traj_per_env=made.train_env_manager.max_traj_per_env,
            sampling=[generating.top_p, generating.top_k],
            reference=made.enable_reference,
            envs=sum(len(v) for v in made.train_env_manager.env_configs.values()),
            masked_gradient=loss.grad[0, 2:].abs().max().item(),
            value=round(found.item(), 4),
        )


if __name__ == "__main__":
    main()
