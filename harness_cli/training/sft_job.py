"""`harness train sft`: rows of tokens into a checkpoint, by TRL's SFTTrainer.

The loss is the mean over every trained token of a step, the accumulated batches together (METHODS
§5): TRL divides by the count of the whole step, so accumulating changes nothing. Rows go in as
`input_ids` and `labels`, which TRL leaves as they are; that none was dropped is checked.
"""

import math
import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_cli.errors import HarnessError
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.training_job import SftTraining
from harness_cli.store.project import Project
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.leaks import refuse_leaks
from harness_cli.training.masking import Tools
from harness_cli.training.one_job import Work, run_work
from harness_cli.training.opening import (
    Base,
    check_job,
    open_base,
    open_tools,
    refuse_beyond_context,
    require_extra,
    vocabulary_of,
)
from harness_cli.training.training_rows import TrainingRows, read_rows

if TYPE_CHECKING:
    from harness_cli.models.chat_template import ChatTemplate
    from harness_cli.training.local_trainer import Observe, Watch


@dataclass(frozen=True, slots=True)
class SftPlan:
    """A job that was checked: what it reads and how long it is."""

    job: SftTraining
    base: Base
    template: "ChatTemplate"
    rows: TrainingRows
    steps: int

    def told(self) -> dict[str, Any]:
        """What it reads and how long it is, for `--dry-run`."""
        job, rows = self.job, self.rows
        return {
            "job": job.name,
            "base": f"{self.base.named.name} ({self.base.named.digest[:16]})",
            "trains": "all weights" if job.lora is None else f"adapters of rank {job.lora.r}",
            "rows": len(rows.rows),
            "tokens": rows.tokens,
            "tokens with loss": rows.trained,
            "longest row": rows.longest,
            "steps": self.steps,
            "rows a step": job.batch * job.accumulate,
        }


def plan_sft(project: Project, job: SftTraining) -> SftPlan:
    """Check a job and read its rows; nothing is written and no weight is loaded."""
    require_extra("`harness train sft`")
    check_job(job)
    base = open_base(project, job.base)
    template, tools = open_tools(project, job, base)
    rows = _rows(project, job, base, tools)
    refuse_beyond_context(base, rows.longest)
    refuse_leaks(project, rows, tools, job.measured_by)
    return SftPlan(job, base, template, rows, steps_of(job, len(rows.rows)))


def steps_of(job: SftTraining, rows: int) -> int:
    """Optimiser steps of a job over so many rows: its own number, or its epochs."""
    if job.steps is not None:
        return job.steps
    world = int(os.environ.get("WORLD_SIZE", "1"))
    batches = math.ceil(math.ceil(rows / world) / job.batch)
    return max(1, math.ceil(job.epochs * math.ceil(batches / job.accumulate)))


def run_sft(
    project: Project,
    job: SftTraining,
    *,
    resume: bool = False,
    again: bool = False,
    observe: "Observe | None" = None,
) -> Checkpoint:
    """Train, and register what comes of it; `resume` and `again` as in `run_work`."""
    plan = plan_sft(project, job)
    work = Work(
        verb="sft",
        job=job,
        base=plan.base,
        template=plan.template,
        data=plan.rows.files,
        digest=plan.rows.digest,
        steps=plan.steps,
        trainer=lambda *given: nullcontext(make_trainer(plan, *given)),
    )
    return run_work(project, work, resume=resume, again=again, observe=observe)


def _rows(project: Project, job: SftTraining, base: Base, tools: Tools) -> TrainingRows:
    return read_rows(
        project.root,
        job.data,
        job.students,
        tools,
        max_tokens=job.max_tokens,
        vocabulary=vocabulary_of(base.folder),
    )


def make_trainer(plan: SftPlan, folder: JobFolder, student: Any, watch: "Watch | None") -> Any:
    """TRL's trainer over the rows of a plan. Raises `HarnessError` where it drops one."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    from harness_cli.training.local_trainer import arguments, lora_config

    job = plan.job
    data = Dataset.from_dict(
        {
            "input_ids": [list(row.input_ids) for row in plan.rows.rows],
            "labels": [list(row.labels) for row in plan.rows.rows],
        }
    )
    # TRL's default of 1024 tokens drops a row whose labels lie behind them, without a word.
    config = SFTConfig(**arguments(job, folder, plan.steps), max_length=None, packing=False)
    trainer = SFTTrainer(
        model=student.model,
        args=config,
        train_dataset=data,
        processing_class=student.tokenizer,
        peft_config=lora_config(job),
        callbacks=[watch] if watch is not None else [],
    )
    kept = len(trainer.train_dataset)
    if kept != len(plan.rows.rows):
        raise HarnessError(f"the trainer dropped {len(plan.rows.rows) - kept} rows of the data")
    return trainer
