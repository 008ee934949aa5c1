"""`harness train opd`: on-policy distillation by TRL's DistillationTrainer (TR Eq. 5, §5.3).

The student samples, the loss is KL(student ‖ teacher) over the whole vocabulary at each token it
sampled (`beta=1`, reverse). *general*: prompts of an instruction set, the teacher is the base.
*agentic*: the student's own rollouts in the simulator through the runtime, policy tokens only, the
teacher is the RL checkpoint of the same environment. Sampling is never cut: top-p 1, no top-k.
"""

import math
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.canonical import digest, file_sha256
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.training_job import OpdTraining
from harness_cli.store.project import Project
from harness_cli.training.environment import Environment, open_environment
from harness_cli.training.job_folder import JobFolder
from harness_cli.training.leaks import refuse_leaking_texts
from harness_cli.training.one_job import Work, run_work
from harness_cli.training.opening import (
    Base,
    check_job,
    open_base,
    open_tools,
    refuse_other_vocabulary,
    refuse_toolless,
    require_extra,
)
from harness_cli.training.prompts import Prompt, read_prompts

if TYPE_CHECKING:
    from harness_cli.models.chat_template import ChatTemplate
    from harness_cli.training.local_trainer import Observe, Student, Watch


@dataclass(frozen=True, slots=True)
class OpdPlan:
    """A distillation that was checked."""

    job: OpdTraining
    base: Base
    teacher: Base
    template: "ChatTemplate"
    prompts: tuple[Prompt, ...]
    files: dict[str, str]
    """What the prompts are made of, with digests."""
    steps: int
    environment: Environment | None = None
    """Where an agentic student is rolled out."""

    def told(self) -> dict[str, Any]:
        """What it reads and how long it is, for `--dry-run`."""
        job = self.job
        return {
            "job": job.name,
            "base": f"{self.base.named.name} ({self.base.named.digest[:16]})",
            "teacher": f"{self.teacher.named.name} ({self.teacher.named.digest[:16]})",
            "kind": job.kind,
            "trains": "all weights" if job.lora is None else f"adapters of rank {job.lora.r}",
            "prompts": len(self.prompts),
            **self._where(),
            "steps": self.steps,
            "prompts a step": job.batch * job.accumulate,
        }

    def _where(self) -> dict[str, Any]:
        if self.environment is None:
            return {"longest prompt": max(p.tokens for p in self.prompts)}
        job = self.environment.job
        return {
            "from": job.evalset or "live rooms",
            "under augmented states": f"{job.augmented:.0%} of rollouts",
        }


def plan_opd(project: Project, job: OpdTraining) -> OpdPlan:
    """Check a job and read its prompts; nothing is written and no weight is loaded."""
    require_extra("`harness train opd`")
    check_job(job)
    base = open_base(project, job.base)
    teacher = open_base(project, job.teacher, what="teacher")
    refuse_other_vocabulary(base, teacher)
    template, tools = open_tools(project, job, base)
    if job.kind == "agentic":
        refuse_toolless(job, template)
        environment = open_environment(project, job, teacher)
        prompts = tuple(Prompt(task, (), 0, "") for task in environment.ground.tasks)
        steps = _steps(job, len(prompts))
        return OpdPlan(
            job, base, teacher, template, prompts, environment.made_of, steps, environment
        )
    if not job.prompts:
        raise UsageError(f"`{job.name}` names no prompts", hint="prompts: [FILE.jsonl]")
    prompts = read_prompts(project.root, job.prompts, template, tools)
    _refuse_long(job, prompts)
    refuse_leaking_texts(project, ((p.id, p.text) for p in prompts), job.measured_by)
    files = {name: _prompts_sha256(project.root / name) for name in job.prompts}
    return OpdPlan(job, base, teacher, template, prompts, files, _steps(job, len(prompts)))


def _refuse_long(job: OpdTraining, prompts: Sequence[Prompt]) -> None:
    long = [p for p in prompts if p.tokens > job.prompt_tokens]
    if long:
        longest = max(long, key=lambda p: p.tokens)
        raise UsageError(
            f"{len(long)} prompts are longer than {job.prompt_tokens} tokens; "
            f"`{longest.id}` has {longest.tokens}",
            hint=f"prompt_tokens: {longest.tokens}, or leave them out",
        )


def run_opd(
    project: Project,
    job: OpdTraining,
    *,
    resume: bool = False,
    again: bool = False,
    observe: "Observe | None" = None,
) -> Checkpoint:
    """Distil, and register what comes of it; `resume` and `again` as in `run_work`."""
    plan = plan_opd(project, job)
    data = {**plan.files, "teacher": plan.teacher.named.digest}
    work = Work(
        verb="opd",
        job=job,
        base=plan.base,
        template=plan.template,
        data=data,
        digest=digest(data),
        steps=plan.steps,
        teacher=plan.teacher,
        trainer=lambda *given: _trainer(plan, *given),
    )
    return run_work(project, work, resume=resume, again=again, observe=observe)


def _trainer(
    plan: OpdPlan, folder: JobFolder, student: "Student", watch: "Watch"
) -> AbstractContextManager[Any]:
    from harness_cli.training.opd_trainer import make_trainer

    return make_trainer(plan, folder, student, watch)


def _steps(job: OpdTraining, prompts: int) -> int:
    """Raises `UsageError` where one step would take a prompt twice."""
    taken = job.batch * job.accumulate * int(os.environ.get("WORLD_SIZE", "1"))
    if prompts < taken:
        raise UsageError(
            f"a step of `{job.name}` takes {taken} prompts and there are {prompts}",
            hint="a smaller batch × accumulate, or more prompts",
        )
    return job.steps or max(1, math.ceil(job.epochs * prompts / taken))


def _prompts_sha256(path: Path) -> str:
    if not path.is_file():
        raise BadFile(f"there is no file of prompts `{path.name}`")
    return file_sha256(path)
