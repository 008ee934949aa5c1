"""Overrides that all kinds of verl jobs share: optimiser, engine, adapters, trainer."""

from harness_cli.errors import UsageError
from harness_cli.records.cluster import Cluster
from harness_cli.training.scale.plans import Optimising


def optimiser(at: str, plan: Optimising, cluster: Cluster) -> list[str]:
    """The optimiser at `at`. Raises `UsageError` for a schedule that verl has not."""
    name = "lr_decay_style" if cluster.strategy == "megatron" else "lr_scheduler_type"
    if plan.schedule == "linear" and cluster.strategy != "megatron":
        raise UsageError(
            "verl has no linear schedule under FSDP", hint="schedule: cosine, or constant"
        )
    return [
        f"{at}.lr={plan.lr}",
        f"{at}.{name}={plan.schedule}",
        f"{at}.lr_warmup_steps_ratio={plan.warmup}",
        f"{at}.weight_decay={plan.weight_decay}",
        f"{at}.clip_grad={plan.clip}",
    ]


def engine(at: str, cluster: Cluster) -> list[str]:
    """How the trainer cuts the model up. Raises `UsageError` for what FSDP has not."""
    lines = [f"{at}.param_offload={word(cluster.offload)}",
             f"{at}.optimizer_offload={word(cluster.offload)}"]  # fmt: skip
    if cluster.strategy == "megatron":
        return [
            *lines,
            f"{at}.tensor_model_parallel_size={cluster.tensor}",
            f"{at}.pipeline_model_parallel_size={cluster.pipeline}",
            f"{at}.context_parallel_size={cluster.context}",
            f"{at}.expert_model_parallel_size={cluster.experts}",
            f"{at}.use_mbridge=true",
        ]
    for name in ("tensor", "pipeline"):
        if getattr(cluster, name) > 1:
            raise UsageError(f"`{name}` parallelism of the trainer needs `strategy: megatron`")
    if at == "engine":
        lines += [f"{at}.strategy={cluster.strategy}",
                  f"{at}.ulysses_sequence_parallel_size={cluster.context}"]  # fmt: skip
    return lines


def lora(at: str, plan: Optimising, mega: bool) -> list[str]:
    """Adapters, where the job has some."""
    given = plan.lora
    if given is None:
        return []
    if mega:
        return [f"{at}.lora.rank={given.r}", f"{at}.lora.alpha={given.alpha}",
                f"{at}.lora.dropout={given.dropout}"]  # fmt: skip
    if given.dropout:
        raise UsageError("verl's adapters under FSDP have no dropout", hint="lora.dropout: 0")
    targets = f"[{','.join(given.targets)}]" if given.targets else "all-linear"
    return [f"{at}.lora_rank={given.r}", f"{at}.lora_alpha={given.alpha}",
            f"{at}.target_modules={targets}"]  # fmt: skip


def trainer(plan: Optimising, cluster: Cluster) -> list[str]:
    """How long, where to, how often it is saved."""
    return [
        f"trainer.nnodes={cluster.nodes}",
        f"trainer.n_gpus_per_node={cluster.gpus}",
        f"trainer.total_training_steps={'null' if plan.steps is None else plan.steps}",
        f"trainer.total_epochs={_epochs(plan)}",
        f"trainer.save_freq={plan.save_every}",
        "trainer.test_freq=-1",
        "trainer.project_name=harness",
        f"trainer.experiment_name={plan.name}",
        f"trainer.default_local_dir={cluster.output}/{plan.name}",
        f"trainer.logger=[{','.join(cluster.loggers)}]",
        "trainer.resume_mode=auto",
    ]


def _epochs(plan: Optimising) -> int:
    """Whole epochs; with `steps` as many as may be needed."""
    if plan.steps is not None:
        return 1_000_000
    whole = int(plan.epochs)
    if whole != plan.epochs:
        raise UsageError(f"verl counts whole epochs, not {plan.epochs}", hint="say `steps`")
    return whole


def word(value: bool) -> str:
    """A truth as Hydra writes it."""
    return "true" if value else "false"
