"""`harness train mtp`: a draft head for a frozen policy, and the arms it is compared with.

The policy answers prompts; the head learns these answers by TR Eq. 6; policy weights are the same
bit for bit before and after. What comes of it is registered: the policy's own files with the head
stitched in, its origin beside it. `arms.json` and `loss.svg` in the job's folder compare it with
what was there before (METHODS §7). No torch is loaded here before the job begins.
"""

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.models.mtp_layout import head_tensors, layout_of, policy_tensors
from harness_cli.models.mtp_stitch import read_source
from harness_cli.models.weights import config_of, digest_of, read_weights
from harness_cli.records.canonical import digest
from harness_cli.records.chat import Message
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.mtp import MtpTraining
from harness_cli.store.checkpoints import find_checkpoint
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore
from harness_cli.training.job_folder import (
    JobFolder,
    Running,
)
from harness_cli.training.keeping import Made, in_turn, keep
from harness_cli.training.leaks import refuse_leaking_texts
from harness_cli.training.one_job import saying_how_it_ends
from harness_cli.training.opening import Base, check_job, open_base, open_tools, require_extra
from harness_cli.training.prompts import read_prompts

if TYPE_CHECKING:
    from harness_cli.models.chat_template import ChatTemplate

Observe = Callable[[Running, dict[str, float]], None]
STANDIN: Final = "standin-"
STANDIN_PROMPTS: Final = 400


@dataclass(frozen=True, slots=True)
class MtpPlan:
    """A job that was checked."""

    job: MtpTraining
    base: Base
    template: "ChatTemplate"
    policy_digest: str
    """Of the policy's tensors alone: what a head is trained for."""
    head_from: Path | None
    native: Base | None
    moved: Base | None
    runs: tuple[Path, ...]
    """Folders of recorded runs."""
    learnt: tuple[tuple[Message, ...], ...]
    measured: tuple[tuple[Message, ...], ...]
    data: dict[str, str]
    steps: int

    def told(self) -> dict[str, Any]:
        """What it reads and how long it is, for `--dry-run`."""
        return {
            "job": self.job.name,
            "policy, frozen": f"{self.base.named.name} ({self.base.named.digest[:16]})",
            "head": str(self.head_from) if self.head_from else "random",
            "prompts learnt from": len(self.learnt),
            "prompts measured on": len(self.measured),
            "rollouts": f"of {', '.join(self.job.runs)}" if self.runs else self.job.rollouts,
            "depths": self.job.depths,
            "steps": self.steps,
            "arms": ", ".join(arms_of(self)),
        }


def arms_of(plan: MtpPlan) -> list[str]:
    """The arms that the checkpoints of a job make possible, in METHODS §7's order."""
    wanted = {
        "native": plan.native is not None,
        "transplanted": plan.head_from is not None,
        "trained": True,
        "random": plan.job.random,
        "stale": plan.moved is not None,
        "absent": True,
    }
    return [name for name, is_there in wanted.items() if is_there]


def plan_mtp(project: Project, job: MtpTraining) -> MtpPlan:
    """Check a job and read its prompts; nothing is written and no model is loaded.

    Raises `UnknownName` for stand-in checkpoints that `run_mtp` would make first.
    """
    require_extra("`harness train mtp`")
    check_job(job)
    if job.lora is not None:
        raise UsageError("a draft head is trained whole", hint="leave `lora` out")
    base = open_base(project, job.base)
    template, tools = open_tools(project, job, base)
    if job.prompts:
        found = read_prompts(project.root, job.prompts, template, tools)
        refuse_leaking_texts(project, ((p.id, p.text) for p in found), job.measured_by)
        prompts = [p.messages for p in found]
    elif job.base.startswith(STANDIN):
        prompts = _standin_prompts(job)
    else:
        raise UsageError(f"`{job.name}` names no prompts", hint="prompts: [FILE.jsonl]")
    learnt, measured = _split(prompts, job)
    policy = _policy_digest(base.folder)
    head_from = _head_place(project, job, base)
    head = read_source(head_from, config_of(base.folder)).head if head_from else {}
    native = open_base(project, job.native, what="native") if job.native else None
    moved = open_base(project, job.moved, what="moved") if job.moved else None
    others = {"native": native, "moved": moved}
    runs = [RunStore(project.runs).get(name).path for name in job.runs]
    return MtpPlan(
        job=job,
        base=base,
        template=template,
        policy_digest=policy,
        head_from=head_from,
        native=native,
        moved=moved,
        runs=tuple(runs),
        learnt=tuple(learnt),
        measured=tuple(measured),
        data={
            "policy": policy,
            "prompts": digest([list(m) for m in (*learnt, *measured)]),
            "head": digest_of(head) if head else "random",
            **({"runs": digest([path.name for path in runs])} if runs else {}),
            **{name: b.named.digest for name, b in others.items() if b is not None},
        },
        steps=job.steps
        or max(1, math.ceil(job.epochs * job.rollouts / (job.batch * job.accumulate))),
    )


def run_mtp(
    project: Project,
    job: MtpTraining,
    *,
    resume: bool = False,
    again: bool = False,
    observe: Observe | None = None,
) -> Checkpoint:
    """Train, measure every arm, and register the policy with its head; as `run_sft` resumes."""
    require_extra("`harness train mtp`")
    for name in job.prompts:
        if not (project.root / name).is_file():  # before stand-ins are made for nothing
            raise BadFile(
                f"there is no file of prompts `{name}`",
                hint="stand-ins bring their own: leave `prompts` out"
                if job.base.startswith(STANDIN)
                else "a file of JSON lines, each with `messages`",
            )
    if job.standin_steps is not None:
        from harness_cli.training.mtp.standin import make_standins

        files = sorted(p for p in project.harness.rglob("*") if p.suffix in (".md", ".yaml", ".j2"))
        make_standins(
            project.root,
            job.standin_steps,
            lambda *_: None,
            texts=[p.read_text("utf-8", "replace") for p in files],
            seed=job.seed,
        )
    plan = plan_mtp(project, job)
    return in_turn(
        project,
        "mtp",
        job,
        Made(plan.base, plan.data, digest(plan.data)),
        lambda folder, step: _trained(project, plan, folder, step, observe),
        resume=resume,
        again=again,
        also_forget=lambda path: shutil.rmtree(path / "arms", ignore_errors=True),
    )


def _trained(
    project: Project, plan: MtpPlan, folder: JobFolder, step: int, observe: Observe | None
) -> Checkpoint:
    from harness_cli.training.mtp import arms

    running = Running.begin(
        folder, plan.job, "mtp", steps=plan.steps, data_sha256=digest(plan.data)
    )
    with saying_how_it_ends(running):
        made = arms.trained(plan, folder, running, step, observe)
    return keep(project, running, made.record, made.write)


def _split(
    prompts: Sequence[tuple[Message, ...]], job: MtpTraining
) -> tuple[list[tuple[Message, ...]], list[tuple[Message, ...]]]:
    """Prompts to learn from and prompts to measure on: every n-th of the different ones."""
    different = list({digest(list(m)): m for m in prompts}.values())
    if len(different) <= job.measured:
        raise UsageError(
            f"{len(different)} different prompts, of which {job.measured} are held out",
            hint="name more prompts, or fewer with `measured:`",
        )
    every = len(different) / job.measured
    held = {int(n * every) for n in range(job.measured)}
    learnt = [m for n, m in enumerate(different) if n not in held]
    return learnt, [m for n, m in enumerate(different) if n in held]


def _standin_prompts(job: MtpTraining) -> list[tuple[Message, ...]]:
    from itertools import islice

    from harness_cli.training.mtp.standin_text import turns

    asked = islice(turns("task", job.seed + 2), STANDIN_PROMPTS)
    return [({"role": "user", "content": text},) for text, _ in asked]


def _head_place(project: Project, job: MtpTraining, base: Base) -> Path | None:
    """Where the head comes from: what the job names, the base's own, or nowhere."""
    if job.head is not None:
        file = project.root / job.head
        return file if file.is_file() else find_checkpoint(project.root, job.head)
    config, weights = config_of(base.folder), read_weights(base.folder)
    layout = layout_of(config, weights.tensors)
    if layout is None or layout.family != "qwen":
        raise BadFile(f"`{job.base}` is of a kind of model that has no draft head of this kind")
    if head_tensors(weights.tensors, layout, config):
        return base.folder
    if job.random:
        return None
    raise HarnessError(
        f"`{job.base}` has no draft head, and the job names none",
        hint="head: BASE_CHECKPOINT to start from its head, or random: true",
    )


def _policy_digest(folder: Path) -> str:
    config, weights = config_of(folder), read_weights(folder)
    head = head_tensors(weights.tensors, layout_of(config, weights.tensors), config)
    return digest_of(policy_tensors(weights.tensors, head))
