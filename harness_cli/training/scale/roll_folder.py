"""A ROLL job as a folder: `harness.yaml` of its agentic pipeline, a starter, and the room.

ROLL reads its configuration with dacite, which drops keys it does not know without a word, so the
key tree here is the only guard against a misspelt one. What stands in the file for a reason:

- `loss_agg_mode: seq-mean-token-mean`: under `token-mean` the snapshot sums masked tokens as well
- `ratio_type: segment`: one ratio a run of sampled tokens, that is a call or an answer; a tool
  segment of several calls has several ratios where METHODS §6 has one
- no GDPO: the reward of a rollout is one number, R = Σ r - λ Σ q, normalised within its group
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.canonical import write_atomic, write_json
from harness_cli.records.cluster import Cluster
from harness_cli.records.reader import dump_yaml
from harness_cli.records.rl_job import RlTraining
from harness_cli.store.project import Project
from harness_cli.training.opening import open_base
from harness_cli.training.scale.from_jobs import rl_plan
from harness_cli.training.scale.key_tree import check_mapping, key_tree
from harness_cli.training.scale.plans import RlPlan
from harness_cli.training.scale.verl_folder import write_job_room

CONFIG: Final = "harness_rl"
TAG: Final = "Harness"
SNAPSHOT: Final = "8eb27cc2dc34c4d1310b169d9b86d339004d811a"
"""The commit of ROLL that the key tree is of (2026-08-19)."""
PER_GPU: Final = 1
"""Rows that go through the trainer at a time, a GPU."""

STARTER: Final = '''\
"""Start the exported job by ROLL's own steps; the configuration is this folder's."""

import sys
from pathlib import Path

from dacite import from_dict
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from roll.distributed.scheduler.initialize import init
from roll.pipeline.agentic.agentic_config import AgenticConfig
from roll.utils.import_utils import safe_import_class

HERE = Path(__file__).resolve().parent


def main() -> None:
    sys.path.insert(0, str(HERE))
    with initialize_config_dir(str(HERE), job_name="harness", version_base=None):
        cfg = compose(config_name="harness_rl")
    config = from_dict(AgenticConfig, OmegaConf.to_container(cfg, resolve=True))
    init()
    pipeline = safe_import_class("roll.pipeline.agentic.agentic_pipeline.AgenticPipeline")
    pipeline(pipeline_config=config).run()


if __name__ == "__main__":
    main()
'''


def write_roll_job(
    project: Project, job: RlTraining, cluster: Cluster, folder: Path, *, home: Path | None = None
) -> Path:
    """Write the folder; the path of its configuration. `home` is where the folder will lie, if not
    where it is written: ROLL names the room by its whole path.

    Raises `UsageError` for what ROLL cannot do and for a key that it does not know.
    """
    plan = rl_plan(project, job, cluster)
    values = roll_config(plan, job, cluster, home or folder)
    write_job_room(project, job, cluster, folder)
    file = folder / f"{CONFIG}.yaml"
    write_atomic(file, dump_yaml(values).encode())
    write_atomic(folder / "start.py", STARTER.encode())
    write_json(
        folder / "job.json",
        {
            "schema": 1,
            "engine": f"ROLL {SNAPSHOT[:8]}",
            "job": msgspec.to_builtins(job),
            "cluster": msgspec.to_builtins(cluster),
            "base": msgspec.to_builtins(open_base(project, job.base).named),
        },
    )
    return file


def roll_config(plan: RlPlan, job: RlTraining, cluster: Cluster, folder: Path) -> dict[str, Any]:
    """ROLL's agentic configuration of a plan, checked against its key tree."""
    rows = plan.prompts * plan.group
    train = range(cluster.world)
    per_update = max(1, rows // (plan.updates * cluster.world * PER_GPU))
    values: dict[str, Any] = {
        "exp_name": plan.name,
        "seed": plan.seed,
        "logging_dir": "./output/logs",
        "output_dir": "./output",
        "checkpoint_config": {"type": "file_system", "output_dir": f"{cluster.output}/{plan.name}"},
        "track_with": "tensorboard",
        "tracker_kwargs": {"log_dir": "./output/tensorboard"},
        "num_gpus_per_node": cluster.gpus,
        "max_steps": _steps(plan),
        "save_steps": plan.save_every,
        "max_ckpt_to_keep": plan.keep,
        "logging_steps": 1,
        "eval_steps": 0,
        "resume_from_checkpoint": False,
        "rollout_batch_size": rows,
        "val_batch_size": 1,
        "prompt_length": plan.prompt_tokens,
        "sequence_length": plan.prompt_tokens + plan.response_tokens,
        "ppo_epochs": plan.passes,
        "adv_estimator": "grpo",
        "ratio_type": "segment" if plan.ratio == "sequence" else "token",
        "loss_agg_mode": "seq-mean-token-mean",
        "use_pg_clip_range": True,
        "pg_clip_low": plan.clip_low,
        "pg_clip_high": plan.clip_high,
        "dual_clip_loss": False,
        "init_kl_coef": 0.0,
        "use_kl_loss": plan.beta > 0,
        "kl_loss_coef": plan.beta,
        "whiten_advantages": False,
        "entropy_loss_coef": 0.0,
        "max_grad_norm": plan.clip,
        "pretrain": plan.model,
        "actor_train": {
            "worker_cls": "roll.pipeline.agentic.agentic_actor_pg_worker.ActorWorker",
            "pg_variant": "ppo",
            "model_args": _model(plan),
            "training_args": {
                "learning_rate": plan.lr,
                "weight_decay": plan.weight_decay,
                "per_device_train_batch_size": PER_GPU,
                "gradient_accumulation_steps": per_update,
                "warmup_ratio": plan.warmup,
                "lr_scheduler_type": plan.schedule,
            },
            "data_args": {"template": "native"},
            "strategy_args": _training_strategy(cluster),
            "device_mapping": f"list(range(0,{len(train)}))",
            "infer_batch_size": PER_GPU,
        },
        "actor_infer": {
            "model_args": {"dtype": "bf16", "disable_gradient_checkpointing": True},
            "generating_args": {
                "max_new_tokens": job.new_tokens,
                "temperature": plan.temperature,
                "top_p": 1.0,
                "top_k": -1,
                "num_beams": 1,
                "num_return_sequences": 1,
            },
            "data_args": {"template": "native"},
            "strategy_args": _serving_strategy(cluster),
            "device_mapping": f"list(range(0,{len(train)}))",
            "num_gpus_per_worker": cluster.serve_tensor,
        },
        "reference": {
            "model_args": {"dtype": "bf16", "disable_gradient_checkpointing": True},
            "data_args": {"template": "native"},
            "strategy_args": {"strategy_name": "hf_infer", "strategy_config": {}},
            "device_mapping": f"list(range(0,{len(train)}))",
            "infer_batch_size": PER_GPU,
        },
        "reward_normalization": {
            "grouping": "traj_group_id",
            "norm_mean_type": "group",
            "norm_std_type": "group",
        },
        "train_env_manager": {
            "max_env_num_per_worker": max(1, rows // cluster.workers),
            "num_env_groups": plan.prompts,
            "group_size": plan.group,
            "tags": [TAG],
            "num_groups_partition": [plan.prompts],
        },
        "val_env_manager": {
            "max_env_num_per_worker": 1,
            "num_env_groups": 1,
            "group_size": 1,
            "tags": [TAG],
            "num_groups_partition": [1],
        },
        "custom_envs": {
            TAG: {
                "env_type": "harness",
                "env_manager_cls": "roll.pipeline.agentic.env_manager.proxy_env_manager."
                "ProxyEnvManager",
                "agent_runner_cls": "harness_cli.training.scale.roll_runner.HarnessRunner",
                "max_steps": 1,
                "max_tokens_per_step": job.new_tokens,
                "env_config": {
                    "room": str((folder / "room").resolve()),
                    "trajectory_mode": "traj",
                    "reward_granularity": "score",
                },
            }
        },
    }
    check_mapping(values, key_tree("roll-agentic"))
    return values


def _steps(plan: RlPlan) -> int:
    if plan.steps is None:
        raise UsageError("ROLL counts steps, not epochs", hint="say `steps` in the job")
    return plan.steps


def _model(plan: RlPlan) -> dict[str, Any]:
    found: dict[str, Any] = {"dtype": "bf16", "disable_gradient_checkpointing": False}
    if plan.lora is not None:
        found |= {
            "lora_rank": plan.lora.r,
            "lora_alpha": plan.lora.alpha,
            "lora_dropout": plan.lora.dropout,
            "lora_target": ",".join(plan.lora.targets) or "all-linear",
        }
    return found


def _training_strategy(cluster: Cluster) -> dict[str, Any]:
    if cluster.strategy != "megatron":
        return {"strategy_name": "fsdp2_train", "strategy_config": {}}
    return {
        "strategy_name": "megatron_train",
        "strategy_config": {
            "tensor_model_parallel_size": cluster.tensor,
            "pipeline_model_parallel_size": cluster.pipeline,
            "context_parallel_size": cluster.context,
            "expert_model_parallel_size": cluster.experts,
            "use_distributed_optimizer": True,
        },
    }


def _serving_strategy(cluster: Cluster) -> dict[str, Any]:
    tensor = "tp_size" if cluster.rollout == "sglang" else "tensor_parallel_size"
    share = "mem_fraction_static" if cluster.rollout == "sglang" else "gpu_memory_utilization"
    config: dict[str, Any] = {share: cluster.memory, tensor: cluster.serve_tensor}
    return {"strategy_name": cluster.rollout, "strategy_config": config}
