"""Which items a job of reinforcement plays: those of an open split, or of a folder of RL tasks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from harness_cli.errors import BadFile, Stale, UsageError
from harness_cli.evaluation.evalsets import Evalset, load_evalset
from harness_cli.records.reader import parse_json
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.run import EvalsetRef
from harness_cli.records.training import RlTask
from harness_cli.store.project import Project
from harness_cli.training.measured import refuse_measuring

TASKS: Final = "tasks.jsonl"
"""What `harness export rl-tasks` writes into its folder."""


@dataclass(frozen=True, slots=True)
class ItemsOf:
    """The items of a job, and where they come from."""

    evalset: Evalset
    made_of: dict[str, str]
    """What they are made of, with digests."""


def with_tasks(project: Project, job: RlTraining) -> RlTraining:
    """The job with the evalset and split that its tasks are of.

    Raises `BadFile` for a file that holds none, `UsageError` for tasks of another evalset than the
    job names, or of buckets that are empty.
    """
    if job.tasks is None:
        if job.buckets:
            raise UsageError(
                "`buckets` are those of RL tasks, and the job names none",
                hint="tasks: the folder of harness export rl-tasks",
            )
        return job
    first = _chosen(project, job)[0]
    meant = (job.evalset or first.evalset, job.split if job.evalset else first.split)
    if meant != (first.evalset, first.split):
        raise UsageError(
            f"`{job.tasks}` holds tasks of `{first.evalset}` {first.split}, the job names "
            f"`{job.evalset}` {job.split}",
            hint="leave `evalset` and `split` out: the tasks say them",
        )
    if first.split not in ("train", "dev"):
        raise UsageError(f"`{job.tasks}` holds tasks of the split `{first.split}`, which measures")
    split: Literal["train", "dev"] = "train" if first.split == "train" else "dev"
    return msgspec.structs.replace(job, evalset=first.evalset, split=split)


def open_items(project: Project, job: RlTraining, tools: Any = None) -> ItemsOf:
    """The items that a job plays; `job` as `with_tasks` gives it.

    Raises `UsageError` for items that measure or that run under states of their own, `Stale` where
    the tasks are of another version of the evalset.
    """
    refuse_measuring(project, EvalsetRef(name=job.evalset, split=job.split, digest="", n=0))
    evalset = load_evalset(project, job.evalset, split=job.split, tools=tools)
    if evalset.states is not None:
        raise UsageError(
            f"`{job.evalset}` runs under states of its own",
            hint=f"name its items' evalset, `{evalset.header.items_of}`, and `augmented: 1`",
        )
    made_of = {f"evalset {job.evalset} {job.split}": evalset.ref.digest}
    items = evalset.items
    if job.tasks is not None:
        tasks = _chosen(project, job)
        if any(task.evalset_digest != evalset.digest for task in tasks):
            raise Stale(
                f"`{job.evalset}` is not what the tasks of `{job.tasks}` were made of any more",
                hint="harness eval and harness export rl-tasks make them anew",
            )
        items = items.among([task.id for task in tasks])
        made_of["tasks"] = _digest([task.id for task in tasks])
    return ItemsOf(replace(evalset, items=items.first(job.limit)), made_of)


def _chosen(project: Project, job: RlTraining) -> list[RlTask]:
    """The tasks of a job's file that are in its buckets: at least one."""
    path = project.root / str(job.tasks)
    file = path / TASKS if path.is_dir() else path
    tasks = _read(file, str(job.tasks))
    mixed = {(task.evalset, task.split, task.evalset_digest) for task in tasks}
    if len(mixed) > 1:
        raise BadFile(f"{job.tasks}: its tasks are of {len(mixed)} evalsets or versions of one")
    found = [task for task in tasks if not job.buckets or task.bucket in job.buckets]
    if not found:
        there = ", ".join(sorted({task.bucket for task in tasks}))
        raise UsageError(
            f"no task of `{job.tasks}` is {' or '.join(job.buckets)}", hint=f"there are: {there}"
        )
    return found


def _read(file: Path, name: str) -> list[RlTask]:
    if not file.is_file():
        raise BadFile(
            f"there are no RL tasks `{name}`", hint="harness export rl-tasks RUN … -o FOLDER"
        )
    lines = [line for line in file.read_bytes().splitlines() if line.strip()]
    if not lines:
        raise BadFile(f"`{name}` holds no task")
    return [parse_json(line, RlTask, name=f"{name}:{n}") for n, line in enumerate(lines, 1)]


def _digest(ids: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
