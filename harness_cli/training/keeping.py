"""The end of a job: what it made is registered, and what was registered before is not lost."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.checkpoints import checkpoints_folder, read_checkpoint, register
from harness_cli.store.project import Project
from harness_cli.training.job_folder import Running, disk_is_full, job_digest, now
from harness_cli.training.opening import Base, versions


def registered(
    project: Project,
    base: Base,
    job: TrainingJob,
    data: Mapping[str, str],
    *,
    resume: bool,
    again: bool,
) -> Checkpoint | None:
    """The checkpoint of this very job on this very data, where it is done already and `resume` is.

    None where there is something to train. Raises `HarnessError` where a checkpoint has the name
    and nobody said `again`: it may be what serves.
    """
    record = read_checkpoint(checkpoints_folder(project.root) / job.name)
    if record is None or again:
        return None
    made_of = (record.job_sha256, record.data, record.base)
    same = made_of == (job_digest(job), dict(data), base.named)
    if same and resume:
        return record
    of = "this job" if same else "another job or other data"
    raise HarnessError(
        f"there is a checkpoint `{job.name}` already, of {of} ({record.digest[:12]})",
        hint="--again trains it anew and replaces it, or give the job another name",
    )


def record_of(
    job: TrainingJob,
    made_by: str,
    base: Base,
    data: Mapping[str, str],
    *,
    steps: int,
    metrics: Mapping[str, float],
    teacher: Base | None = None,
) -> Checkpoint:
    """What a job made, of what: the record but for the digests of its files."""
    return Checkpoint(
        name=job.name,
        made_by=made_by,
        format="adapter" if job.lora is not None and job.lora.save == "adapter" else "full",
        digest="",
        files={},
        base=base.named,
        teacher=None if teacher is None else teacher.named,
        data=dict(data),
        job_sha256=job_digest(job),
        job=msgspec.json.decode(msgspec.json.encode(job)),
        seed=job.seed,
        steps=steps,
        metrics=dict(metrics),
        created=now(),
        served=job.served,
        versions=versions(),
    )


def keep(
    project: Project, running: Running, record: Checkpoint, write: Callable[[Path], None]
) -> Checkpoint:
    """Register a checkpoint and say that the job is done; its states are not needed any more.

    A full disk leaves the checkpoint that had the name before, and the states to go on from.
    """
    try:
        made = register(project.root, record, write)
    except Exception as exc:
        running.ended("failed", error=f"{type(exc).__name__}: {exc}")
        if not disk_is_full(exc):
            raise
        raise HarnessError(
            f"the disk is full: checkpoint `{record.name}` cannot be written",
            hint="make room; --resume goes on from the last state",
        ) from exc
    running.ended("done", checkpoint=made.digest)
    shutil.rmtree(running.folder.steps, ignore_errors=True)
    return made
