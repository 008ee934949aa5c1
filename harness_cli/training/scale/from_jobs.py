"""From a training job and a cluster to an exporter's plan; what an engine cannot do is refused."""

import math
from typing import Any

from harness_cli.errors import UsageError
from harness_cli.records.cluster import Cluster
from harness_cli.records.mtp import MtpTraining
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.training_job import OpdTraining, SftTraining, TrainingJob
from harness_cli.store.project import Project
from harness_cli.training.opd_job import plan_opd
from harness_cli.training.opening import check_job, open_base
from harness_cli.training.rl_plan import plan_rl
from harness_cli.training.scale.plans import HeadPlan, OpdPlan, RlPlan, SftPlan


def rl_plan(project: Project, job: RlTraining, cluster: Cluster) -> RlPlan:
    """Reinforcement, checked as a job that runs here is: tasks, roles, leaks, numbers.

    Raises `UsageError` for what no engine but ours does.
    """
    shape = plan_rl(project, job).shape
    if job.denominator != "sampled":
        raise UsageError(
            "engines divide by the rollouts sampled", hint="denominator: sampled (Eq. 4)"
        )
    return RlPlan(
        **{**_shared(project, job, cluster, per=shape.every), "steps": shape.iterations},
        prompts=job.groups,
        group=job.rollouts,
        updates=job.updates,
        passes=job.passes,
        clip_low=job.epsilon_low,
        clip_high=job.epsilon_high,
        ratio=job.ratio,
        beta=job.kl,
        temperature=job.temperature,
        prompt_tokens=cluster.prompt_tokens,
        response_tokens=cluster.response_tokens,
    )


def opd_plan(project: Project, job: OpdTraining, cluster: Cluster) -> OpdPlan:
    """Distillation, checked as one that runs here: vocabularies, prompts, environment, leaks."""
    steps = plan_opd(project, job).steps
    general = job.kind == "general"
    return OpdPlan(
        **{**_shared(project, job, cluster), "steps": steps},
        teacher=cluster.teacher or str(open_base(project, job.teacher, what="teacher").folder),
        prompts=job.batch * job.accumulate,
        kind=job.kind,
        temperature=job.temperature,
        prompt_tokens=job.prompt_tokens if general else cluster.prompt_tokens,
        response_tokens=job.new_tokens if general else cluster.response_tokens,
    )


def sft_plan(project: Project, job: SftTraining, cluster: Cluster, *, longest: int) -> SftPlan:
    """Supervised rows."""
    shared = _shared(project, job, cluster)
    return SftPlan(**shared, batch=job.batch * job.accumulate, longest=longest)


def head_plan(project: Project, job: MtpTraining, cluster: Cluster) -> HeadPlan:
    """The draft head. Raises `UsageError` for arms and depths that only our own trainer has."""
    if job.depths != 1:
        raise UsageError(
            f"depths: {job.depths}: verl trains the layers that the head has, each for one token "
            "ahead, and applies none again",
            hint="depths: 1, or train the head here",
        )
    arms = [name for name in ("head", "native", "moved", "standin_steps") if getattr(job, name)]
    if arms or job.random:
        raise UsageError(
            f"`{(arms or ['random'])[0]}`: arms are compared where the head is trained here",
            hint="name the checkpoint with its head as `base`",
        )
    if job.top_p != 1 or job.temperature <= 0:
        raise UsageError("rollouts of an engine take the whole distribution", hint="top_p: 1")
    prompts = job.batch * job.accumulate
    shared = _shared(project, job, cluster)
    if shared["steps"] is None:
        shared["steps"] = math.ceil(job.epochs * job.rollouts / prompts)
    # With weight decay the policy would shrink, though nothing pulls at it.
    shared["weight_decay"] = 0.0
    return HeadPlan(
        **shared,
        prompts=prompts,
        temperature=job.temperature,
        prompt_tokens=job.prompt_tokens,
        response_tokens=job.new_tokens,
    )


def _shared(
    project: Project, job: TrainingJob, cluster: Cluster, *, per: int = 1
) -> dict[str, Any]:
    """What all plans take; `per` optimiser steps are one step of the engine."""
    check_job(job)
    if job.template is not None:
        raise UsageError(
            "an engine takes the template that lies in the base",
            hint="`harness train sft` writes a job's template into its checkpoint",
        )
    return {
        "name": job.name,
        "model": cluster.model or str(open_base(project, job.base).folder),
        "seed": job.seed,
        "steps": None if job.steps is None else math.ceil(job.steps / per),
        "epochs": job.epochs,
        "lr": job.lr,
        "schedule": job.schedule,
        "warmup": job.warmup,
        "weight_decay": job.weight_decay,
        "clip": job.clip,
        "lora": job.lora,
        "save_every": max(1, job.save_every // per),
        "keep": job.keep,
    }
