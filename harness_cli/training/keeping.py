"""The end of a job: what it made is registered, and what was registered before is not lost."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.records.canonical import write_atomic, write_json
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.checkpoints import RECORD, checkpoints_folder, read_checkpoint, register
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.training.job_folder import (
    JobFolder,
    Running,
    disk_is_full,
    forget,
    job_digest,
    main_process,
    now,
    refuse_other,
    stopping,
)
from harness_cli.training.opening import Base, versions

REPLACES: Final = "replaces"
"""In a job's folder: the digest of the checkpoint that `--again` was said of, until it is done."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a job is made of: another base or other data is another job."""

    base: Base
    files: Mapping[str, str]
    """File or folder of training data → SHA-256."""
    digest: str


def in_turn(
    project: Project,
    verb: str,
    job: TrainingJob,
    made: Made,
    train: Callable[[JobFolder, int], Checkpoint],
    *,
    resume: bool,
    again: bool,
    also_forget: Callable[[Path], None] = lambda _: None,
) -> Checkpoint:
    """`train(folder, step)` under the job's lock, or the checkpoint of a job that is done already.

    `also_forget` removes what `again` must not leave in the folder beside states and curve.
    """
    folder = JobFolder.of(project.root, job.name)
    with locked(folder.lock, what=f"train {verb} {job.name}", hint=stopping(job.name)):
        if again:
            forget(folder)
            also_forget(folder.path)
            _say_what_goes(project, folder, job)
        done = registered(project, made, job, resume=resume, again=again)
        if done is not None:
            return done
        return train(folder, refuse_other(folder, job, made.digest, resume=resume))


def registered(
    project: Project, made: Made, job: TrainingJob, *, resume: bool, again: bool
) -> Checkpoint | None:
    """The checkpoint of this very job on this very data, where it is done already and `resume` is;
    what the job says of how it is served and measured goes into its record.

    None where there is something to train: also the rest of a try that was to replace the
    checkpoint and was cut short. Raises `HarnessError` where a checkpoint has the name and nobody
    said `again` of it: it may be what serves.
    """
    folder = checkpoints_folder(project.root) / job.name
    record = read_checkpoint(folder)
    if record is None or again:
        return None
    if resume and _goes(JobFolder.of(project.root, job.name), record):
        return None
    made_of = (record.job_sha256, record.data, record.base)
    same = made_of == (job_digest(job), dict(made.files), made.base.named)
    if same and resume:
        return _as_the_job_says(folder, record, job)
    of = "this job" if same else "another job or other data"
    raise HarnessError(
        f"there is a checkpoint `{job.name}` already, of {of} ({record.digest[:12]})",
        hint="--again trains it anew and replaces it, or give the job another name",
    )


def _say_what_goes(project: Project, folder: JobFolder, job: TrainingJob) -> None:
    """Write down of which checkpoint `again` was said, for a `resume` after the try was cut short:
    the word counts for this one and for no other that has come to the name since."""
    record = read_checkpoint(checkpoints_folder(project.root) / job.name)
    if record is None:
        (folder.path / REPLACES).unlink(missing_ok=True)
    else:
        write_atomic(folder.path / REPLACES, record.digest.encode())


def _goes(folder: JobFolder, record: Checkpoint) -> bool:
    """Whether a try that was to replace this checkpoint left states to go on from."""
    said = folder.path / REPLACES
    return bool(folder.saved_steps()) and said.is_file() and said.read_text() == record.digest


def _as_the_job_says(folder: Path, record: Checkpoint, job: TrainingJob) -> Checkpoint:
    """The record with the settings that decide no weight as the job has them now."""
    now_said = msgspec.structs.replace(record, served=job.served, job=_plain(job))
    if now_said != record and main_process():
        write_json(folder / RECORD, now_said)
    return now_said


def _plain(job: TrainingJob) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(job))
    return found


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
        job=_plain(job),
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
    (running.folder.path / REPLACES).unlink(missing_ok=True)
    shutil.rmtree(running.folder.steps, ignore_errors=True)
    return made
