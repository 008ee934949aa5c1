"""Hydra overrides of verl 0.9.1 for a plan on a cluster: `key=value` lines, never `+`.

Keys added with `+` are the ones that verl takes without looking, so none is used. What stands here
for a reason that the key does not show:

- a rollout is two rows, so an update over all rollouts of P prompts has 2·P·G rows: the mini-batch
  is 2·P, which verl's validation lets through under `use_dynamic_bsz` alone
- `seq-mean-token-mean`: each segment weighs the same, however long (METHODS §6)
- `clip_ratio_c` out of reach: the token ratio of Algorithm 1 has no second clip
- reverse KL of a distillation is `k1` by policy gradient: `k3` as a loss to be differentiated has
  the gradient of the forward KL, and `forward_kl_topk` says what it is
"""

from collections.abc import Sequence
from typing import Any, Final

from harness_cli.errors import UsageError
from harness_cli.records.cluster import Cluster
from harness_cli.training.scale.key_tree import check_overrides, key_tree
from harness_cli.training.scale.plans import HeadPlan, OpdPlan, RlPlan, SftPlan
from harness_cli.training.scale.verl_parts import engine, lora, optimiser, trainer, word

MODES: Final = {
    "colocated": "sync",
    "colocated_async": "colocate_async",
    "disaggregated": "separate_async",
}
GROUPS: Final = ("model_engine", "engine", "optim", "model@model")
SEGMENTS: Final = 2


def rl_overrides(plan: RlPlan, cluster: Cluster) -> list[str]:
    """Reinforcement: V1 trainer of ours, GSPO by segment, our agent loop."""
    lines = [*_ppo(plan, cluster), *_sampler(plan, cluster, plan.group)]
    mini = SEGMENTS * max(1, plan.prompts // plan.updates)
    if cluster.trainer == "disaggregated":
        # verl demands train_batch_size = sync_every * mini-batch here, so two optimiser steps fall
        # on the rows of one local batch (docs/scale_out.md).
        mini = plan.prompts // cluster.sync_every
        if mini * cluster.sync_every != plan.prompts:
            raise UsageError(
                f"{plan.prompts} prompts a step do not divide into {cluster.sync_every} transfers",
                hint="`sync_every` in the cluster file",
            )
    lines += [
        "algorithm.adv_estimator=grpo",
        "algorithm.use_kl_in_reward=false",
        "actor_rollout_ref.actor.policy_loss.loss_mode="
        + ("gspo" if plan.ratio == "sequence" else "vanilla"),
        "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",
        f"actor_rollout_ref.actor.clip_ratio_low={plan.clip_low}",
        f"actor_rollout_ref.actor.clip_ratio_high={plan.clip_high}",
        "actor_rollout_ref.actor.clip_ratio_c=1000000.0",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={mini}",
        f"actor_rollout_ref.actor.use_kl_loss={word(plan.beta > 0)}",
        f"actor_rollout_ref.actor.kl_loss_coef={plan.beta}",
        "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
        f"trainer.v1.trainer_mode=harness_{MODES[cluster.trainer]}",
        *_correction(cluster),
        *_apart(cluster),
    ]
    return _checked(lines, _tree(cluster))


def opd_overrides(plan: OpdPlan, cluster: Cluster) -> list[str]:
    """Distillation: verl's own trainer, a teacher on nodes of its own."""
    teacher_gpus = cluster.teacher_gpus or cluster.gpus
    lines = [*_ppo(plan, cluster), *_sampler(plan, cluster, 1)]
    lines += [
        "algorithm.adv_estimator=grpo",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={plan.prompts}",
        "actor_rollout_ref.actor.loss_agg_mode=token-mean",
        "actor_rollout_ref.actor.use_kl_loss=false",
        "trainer.v1.trainer_mode=sync",
        "distillation.enabled=true",
        "distillation.distillation_loss.loss_mode=k1",
        "distillation.distillation_loss.use_policy_gradient=true",
        "distillation.distillation_loss.use_task_rewards=false",
        f"distillation.nnodes={cluster.teacher_nodes}",
        f"distillation.n_gpus_per_node={teacher_gpus}",
        f"distillation.teacher_models.teacher_model.model_path={plan.teacher}",
        f"distillation.teacher_models.teacher_model.inference.name={cluster.rollout}",
        "distillation.teacher_models.teacher_model.inference.tensor_model_parallel_size="
        f"{cluster.serve_tensor}",
    ]
    return _checked(lines, _tree(cluster))


def head_overrides(plan: HeadPlan, cluster: Cluster) -> list[str]:
    """The draft head alone.

    Every reward is 0, so the policy's own loss has no gradient; `detach_encoder` cuts the head's
    loss off hidden states, embeddings and the output layer; there is no weight decay. What moves is
    the head (`harness mtp check` compares the policy's digests afterwards).
    """
    if cluster.strategy != "megatron":
        raise UsageError(
            f"verl trains draft heads under Megatron alone, not under {cluster.strategy}",
            hint="strategy: megatron in the cluster file",
        )
    mtp = "actor_rollout_ref.model.mtp"
    lines = [
        *_ppo(plan, cluster),
        *_sampler(plan, cluster, 1),
        "algorithm.adv_estimator=grpo",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={plan.prompts}",
        "actor_rollout_ref.actor.loss_agg_mode=token-mean",
        "actor_rollout_ref.actor.use_kl_loss=false",
        "trainer.v1.trainer_mode=sync",
        f"{mtp}.enable=true",
        f"{mtp}.enable_train=true",
        f"{mtp}.detach_encoder=true",
        f"{mtp}.mtp_loss_scaling_factor=1.0",
    ]
    return _checked(lines, _tree(cluster))


def sft_overrides(plan: SftPlan, cluster: Cluster) -> list[str]:
    """Supervised rows through verl's trainer; our dataset brings tokens and masks."""
    if plan.longest > cluster.tokens_per_gpu:
        raise UsageError(
            f"the longest row has {plan.longest} tokens, a GPU takes {cluster.tokens_per_gpu}",
            hint="`tokens_per_gpu` in the cluster file",
        )
    mega = cluster.strategy == "megatron"
    lines = [
        *(["engine=megatron", "optim=megatron"] if mega else []),
        f"model.path={plan.model}",
        "data.train_files=data/train.parquet",
        "data.custom_cls.path=pkg://harness_cli.training.scale.verl_rows",
        "data.custom_cls.name=MaskedRows",
        "data.pad_mode=no_padding",
        "data.truncation=error",
        f"data.max_length={plan.longest}",
        f"data.train_batch_size={plan.batch}",
        "data.use_dynamic_bsz=true",
        f"data.max_token_len_per_gpu={cluster.tokens_per_gpu}",
        *optimiser("optim", plan, cluster),
        *engine("engine", cluster),
        *trainer(plan, cluster),
        f"trainer.seed={plan.seed}",
        f"trainer.max_ckpt_to_keep={plan.keep}",
    ]
    if plan.lora is not None:
        lines += lora("model", plan, mega)
    return _checked(lines, key_tree("verl-sft-megatron" if mega else "verl-sft-fsdp"))


def _ppo(plan: RlPlan | OpdPlan | HeadPlan, cluster: Cluster) -> list[str]:
    """What both kinds of V1 jobs have: data, model, actor, trainer."""
    longest = plan.prompt_tokens + plan.response_tokens
    if longest > cluster.tokens_per_gpu * cluster.context:
        raise UsageError(
            f"a row may have {longest} tokens, a GPU takes {cluster.tokens_per_gpu}",
            hint="`tokens_per_gpu` or `context` in the cluster file",
        )
    mega = cluster.strategy == "megatron"
    actor = "actor_rollout_ref.actor"
    lines = [
        *(["model_engine=megatron"] if mega else [f"{actor}.strategy={cluster.strategy}"]),
        "data.train_files=data/train.parquet",
        "data.val_files=data/val.parquet",
        f"data.train_batch_size={plan.prompts}",
        f"data.max_prompt_length={plan.prompt_tokens}",
        f"data.max_response_length={plan.response_tokens}",
        "data.return_raw_chat=true",
        "data.filter_overlong_prompts=false",
        "data.truncation=error",
        f"data.seed={plan.seed}",
        "data.dataloader_num_workers=0",
        f"actor_rollout_ref.model.path={plan.model}",
        f"{actor}.use_dynamic_bsz=true",
        f"{actor}.ppo_max_token_len_per_gpu={cluster.tokens_per_gpu}",
        f"{actor}.ppo_epochs={getattr(plan, 'passes', 1)}",
        f"{actor}.data_loader_seed={plan.seed}",
        f"{actor}.entropy_coeff=0",
        *optimiser(f"{actor}.optim", plan, cluster),
        *engine(f"{actor}.{'megatron' if mega else 'fsdp_config'}", cluster),
        *([] if mega else [f"{actor}.grad_clip={plan.clip}",
                           f"{actor}.ulysses_sequence_parallel_size={cluster.context}"]),
        *trainer(plan, cluster),
        f"trainer.max_actor_ckpt_to_keep={plan.keep}",
        "trainer.val_before_train=false",
        "trainer.use_v1=true",
    ]  # fmt: skip
    if plan.lora is not None:
        lines += lora("actor_rollout_ref.model", plan, mega)
    if cluster.replay_routing:
        if not mega:
            raise UsageError("`replay_routing` needs `strategy: megatron`")
        lines += [
            f"{actor}.megatron.router_replay.mode=R3",
            "actor_rollout_ref.rollout.enable_rollout_routing_replay=true",
        ]
    return lines


def _sampler(plan: RlPlan | OpdPlan | HeadPlan, cluster: Cluster, rollouts: int) -> list[str]:
    """The rollout half: the whole distribution at the trainer's temperature, or ratios lie."""
    rollout = "actor_rollout_ref.rollout"
    longest = plan.prompt_tokens + plan.response_tokens
    return [
        f"{rollout}.name={cluster.rollout}",
        f"{rollout}.n={rollouts}",
        f"{rollout}.temperature={plan.temperature}",
        f"{rollout}.top_p=1.0",
        f"{rollout}.top_k=-1",
        f"{rollout}.calculate_log_probs=true",
        f"{rollout}.seed={plan.seed}",
        f"{rollout}.max_model_len={longest}",
        f"{rollout}.gpu_memory_utilization={cluster.memory}",
        f"{rollout}.tensor_model_parallel_size={cluster.serve_tensor}",
        # verl wants the sampler's experts over all of its tensor-parallel ranks, or whole.
        f"{rollout}.expert_parallel_size={cluster.serve_tensor if cluster.experts > 1 else 1}",
        f"{rollout}.multi_turn.enable=true",
        f"{rollout}.agent.num_workers={cluster.workers}",
        f"{rollout}.agent.default_agent_loop=harness",
        f"{rollout}.agent.agent_loop_config_path=agent_loop.yaml",
    ]


def _correction(cluster: Cluster) -> list[str]:
    """π_prox / π_behav, where the trainer does not wait for its rollouts (T2)."""
    if cluster.trainer == "colocated":
        return []
    return [
        "algorithm.rollout_correction.bypass_mode=false",
        "algorithm.rollout_correction.rollout_is=token",
        f"algorithm.rollout_correction.rollout_is_threshold={cluster.weight_cap}",
        f"trainer.v1.sampler.max_off_policy_threshold={cluster.behind}",
        "trainer.v1.sampler.max_off_policy_strategy=drop",
    ]


def _apart(cluster: Cluster) -> list[str]:
    if cluster.trainer != "disaggregated":
        return []
    rollout = "actor_rollout_ref.rollout"
    return [
        "actor_rollout_ref.hybrid_engine=false",
        f"{rollout}.nnodes={cluster.rollout_nodes}",
        f"{rollout}.n_gpus_per_node={cluster.gpus}",
        f"{rollout}.checkpoint_engine.backend=nccl",
        f"trainer.v1.separate_async.parameter_sync_step={cluster.sync_every}",
    ]


def _tree(cluster: Cluster) -> dict[str, Any]:
    return key_tree("verl-ppo-megatron" if cluster.strategy == "megatron" else "verl-ppo-dp")


def _checked(lines: Sequence[str], tree: dict[str, Any]) -> list[str]:
    check_overrides(lines, tree, groups=GROUPS)
    return list(lines)
