"""`harness train rl`: HSA-RL of a checkpoint (TR §3.3, Algorithm 1), one node, by TRL.

tasks ──▶ (x, h) a group ──▶ G rollouts by the runtime ──▶ four rewards, q(L)
                                                          │ GDPO by segment
next weights ◀── GSPO by segment over the rows of tokens ◀┘
"""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.models.checkpoint import CheckpointPolicy
from harness_cli.records.canonical import digest, write_atomic
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.config import PolicyConfig
from harness_cli.records.rl_job import RlTraining
from harness_cli.store.project import Project
from harness_cli.training.collecting import Collector, cut_lines
from harness_cli.training.job_folder import JobFolder, main_process
from harness_cli.training.one_job import Work, run_work
from harness_cli.training.rl_figures import FIGURES, figures
from harness_cli.training.rl_plan import RlPlan, plan_rl

if TYPE_CHECKING:
    from harness_cli.training.local_trainer import Observe, Student, Watch
    from harness_cli.training.rl_trainer import HatTrainer


def run_rl(
    project: Project,
    job: RlTraining,
    *,
    resume: bool = False,
    again: bool = False,
    observe: "Observe | None" = None,
) -> Checkpoint:
    """Train, and register what comes of it; `resume` and `again` as in `run_work`.

    Not to be called from a running event loop: rollouts have one of their own.
    """
    plan = plan_rl(project, job)
    work = Work(
        verb="rl",
        job=plan.job,
        base=plan.base,
        template=plan.template,
        data=plan.data,
        digest=digest(plan.data),
        steps=plan.shape.steps,
        trainer=lambda *given: _opened(plan, *given),
        rewound=cut_lines,
    )
    return run_work(project, work, resume=resume, again=again, observe=observe)


@contextmanager
def _opened(
    plan: RlPlan, folder: JobFolder, student: "Student", watch: "Watch"
) -> "Iterator[HatTrainer]":
    """The trainer; at the end its rollouts' holdings are given back and the figures are drawn."""
    trainer = make_trainer(plan, folder, student, watch)
    try:
        yield trainer
    finally:
        trainer.hat.collector.close()
        if main_process():
            with suppress(OSError):  # a full disk has been told of by then
                drawn = figures(plan.job.name, folder.curve(), plan.job.penalty)
                write_atomic(folder.path / FIGURES, drawn.encode())


def make_trainer(plan: RlPlan, folder: JobFolder, student: Any, watch: "Watch | None") -> Any:
    """The trainer of a plan over a loaded student: `HatTrainer`, ready to `train()`."""
    from datasets import Dataset
    from trl import GRPOConfig

    from harness_cli.models.checkpoint_model import CheckpointModel
    from harness_cli.training.local_trainer import arguments, lora_config
    from harness_cli.training.rl_iteration import Hat
    from harness_cli.training.rl_trainer import HatTrainer

    job, shape = plan.job, plan.shape
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    sampler = CheckpointPolicy(
        job.name,
        PolicyConfig(kind="checkpoint", concurrency=job.at_once),
        lambda: CheckpointModel(student.model, student.tokenizer, student.template),
        digest=plan.base.named.digest,
    )
    collector = Collector(
        ground=plan.ground,
        policy=sampler,
        judge=plan.judge,
        job=job,
        decode=lambda ids: str(student.tokenizer.decode(list(ids), skip_special_tokens=False)),
        by_rule=plan.by_rule,
    )
    hat = Hat(job=job, collector=collector, sampler=sampler, folder=_made(folder.path))
    if job.kl and job.lora is None:
        hat.reference = _frozen(student.model)
    given = arguments(job, folder, shape.steps)
    given |= {
        "per_device_train_batch_size": shape.batch,
        "gradient_accumulation_steps": shape.accumulate,
        "save_steps": min(math.ceil(job.save_every / shape.every) * shape.every, shape.steps),
    }
    config = GRPOConfig(
        **given,
        num_generations=job.rollouts,
        generation_batch_size=job.groups * job.rollouts,
        num_iterations=job.passes,
        max_completion_length=job.new_tokens,
        temperature=job.temperature,
        top_p=1.0,
        top_k=0,
        beta=0.0,
        loss_type="grpo",
        importance_sampling_level="sequence",
        remove_unused_columns=False,
        disable_dropout=True,
    )
    return HatTrainer(
        hat,
        model=student.model,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": list(plan.ground.tasks)}),
        processing_class=student.tokenizer,
        peft_config=lora_config(job),
        callbacks=[watch] if watch is not None else [],
    )


def _frozen(model: Any) -> Any:
    """A copy of the base whose weights stay: what a KL penalty is to."""
    from copy import deepcopy

    from trl.trainer.utils import add_fused_lm_head

    copied = deepcopy(model).eval().requires_grad_(False)
    add_fused_lm_head(copied)
    return copied


def _made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
