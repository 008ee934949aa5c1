"""What `harness train` does with its options, and what it shows."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.commands._training_behind import start_behind, tail
from harness_cli.commands._training_progress import step_progress
from harness_cli.errors import BadFile, HarnessError, UsageError
from harness_cli.records.checkpoint import Checkpoint, ServedAs
from harness_cli.records.mtp import MtpTraining
from harness_cli.records.reader import read_yaml
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.training_job import OpdTraining, SftTraining, TrainingJob, TrainingState
from harness_cli.store.checkpoints import checked_name, checkpoints_folder, read_checkpoint
from harness_cli.store.project import Project
from harness_cli.training.job_folder import (
    job_named,
    jobs,
    live_status,
    main_process,
)

KINDS: Final[dict[str, type[TrainingJob]]] = {
    "sft": SftTraining,
    "opd": OpdTraining,
    "rl": RlTraining,
    "mtp": MtpTraining,
}
STOP_S: Final = 120.0
"""How long a job may take to finish its step."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    verb: str
    file: Path
    resume: bool = False
    again: bool = False
    dry_run: bool = False
    background: bool = False
    gpus: int | None = None
    engine: str = "here"
    cluster: Path | None = None


def read_job(directory: Path, wish: Wish) -> TrainingJob:
    """The job of a file. Raises `BadFile` with its place."""
    job = read_yaml(directory / wish.file, KINDS[wish.verb], name=str(wish.file))
    if job.schema != 1:
        raise BadFile(f"{wish.file}: schema {job.schema} is not known", hint="this is 1")
    return job


def train(directory: Path, wish: Wish, *, as_json: bool, quiet: bool) -> None:
    """Run a job here, behind, or say what it would do."""
    project = Project.find(directory)
    job = read_job(directory, wish)
    if wish.resume and wish.again:
        raise UsageError("--resume goes on and --again forgets: only one can be meant")
    if wish.engine != "here":
        from harness_cli.commands._scaling import scale

        scale(project, directory, job, wish, as_json=as_json)
    elif wish.cluster is not None:
        raise UsageError("--cluster is for --engine verl or roll: this job trains here")
    elif wish.gpus is not None:
        from harness_cli.commands._launching import launch

        _plan(project, job, world=wish.gpus)  # a mistake is told once, not by every process
        launch(project, directory / wish.file, job, wish, as_json=as_json)
    elif wish.background and not wish.dry_run:
        start_behind(project, directory, job, wish, as_json=as_json, quiet=quiet)
    else:
        _here(project, job, wish, as_json=as_json, quiet=quiet)


def _here(project: Project, job: TrainingJob, wish: Wish, *, as_json: bool, quiet: bool) -> None:
    """Train in this process, or say what would be trained."""
    if wish.dry_run:
        _said_plan(project, job, as_json=as_json)
        return
    before = read_checkpoint(checkpoints_folder(project.root) / checked_name(job.name))
    with step_progress(job.name, quiet=quiet) as observe:
        made = _run(project, job, wish, observe)
    if main_process():
        _said(made, before, as_json=as_json, quiet=quiet)


def _run(project: Project, job: TrainingJob, wish: Wish, observe: Any) -> Checkpoint:
    if isinstance(job, SftTraining):
        from harness_cli.training.sft_job import run_sft

        return run_sft(project, job, resume=wish.resume, again=wish.again, observe=observe)
    if isinstance(job, OpdTraining):
        from harness_cli.training.opd_job import run_opd

        return run_opd(project, job, resume=wish.resume, again=wish.again, observe=observe)
    if isinstance(job, MtpTraining):
        from harness_cli.training.mtp_job import run_mtp

        return run_mtp(project, job, resume=wish.resume, again=wish.again, observe=observe)
    if isinstance(job, RlTraining):
        from harness_cli.training.rl_job import run_rl

        return run_rl(project, job, resume=wish.resume, again=wish.again, observe=observe)
    raise UsageError(f"`{wish.verb}` is no training job")


def _said_plan(project: Project, job: TrainingJob, *, as_json: bool) -> None:
    told = _plan(project, job)
    if as_json:
        emit_json({"dry_run": True, **told})
        return
    for name, value in told.items():
        line(f"{name}: {value}")


def _plan(project: Project, job: TrainingJob, world: int | None = None) -> dict[str, Any]:
    """What a job reads and how long it is, everything checked, for so many processes."""
    if isinstance(job, OpdTraining):
        from harness_cli.training.opd_job import plan_opd

        return plan_opd(project, job).told()
    if isinstance(job, MtpTraining):
        from harness_cli.training.mtp_job import plan_mtp

        return plan_mtp(project, job).told()
    if isinstance(job, SftTraining):
        from harness_cli.training.sft_job import plan_sft

        return plan_sft(project, job).told()
    if isinstance(job, RlTraining):
        from harness_cli.training.rl_plan import plan_rl

        return plan_rl(project, job, world).told()
    raise UsageError(f"`{job.name}` is no training job")


def _said(made: Checkpoint, before: Checkpoint | None, *, as_json: bool, quiet: bool) -> None:
    """What was made; `before` had its name when the command began."""
    trained = before is None or before.created != made.created or before.digest != made.digest
    if as_json:
        emit_json({"checkpoint": made, "trained": trained})
        return
    line(f"checkpoint:{made.name}")
    if quiet:
        return
    if before is not None and not trained:
        note("it was done already: nothing was trained")
        for text in _otherwise_served(before.served, made.served):
            note(text)
    loss = made.metrics.get("loss")
    measured = "" if loss is None else f", last loss {loss:.4g}"
    note(f"{made.steps} steps{measured}; digest {made.digest[:16]}")
    note(f"next: harness eval EVALSET --policy checkpoint:{made.name}")


def _otherwise_served(before: ServedAs, now: ServedAs) -> Iterator[str]:
    for name in now.__struct_fields__:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"it is served with {name} {new} from now on (was {old})"


def show_status(directory: Path, *, as_json: bool, quiet: bool) -> None:
    """Every job of the project."""
    root = Project.find(directory).root
    found = jobs(root)
    if as_json:
        emit_json({"jobs": [{**msgspec.to_builtins(s), "status": live_status(s)} for s in found]})
        return
    if not found:
        note("no training job has begun · harness train sft JOB.yaml")
        return
    if quiet:
        for state in found:
            line(f"{state.name} {live_status(state)} {state.step}/{state.steps}")
        return
    table(
        ("job", "kind", "status", "step", "loss", "saved", "began", "checkpoint"),
        [
            (
                state.name,
                state.verb,
                live_status(state),
                f"{state.step}/{state.steps}",
                state.loss,
                state.saved,
                state.started,
                state.error.partition("\n")[0][:60] or state.checkpoint[:12],
            )
            for state in found
        ],
    )


def show_logs(directory: Path, name: str | None, lines: int, *, as_json: bool, quiet: bool) -> None:
    """The end of a job's curve and of its log."""
    folder, state = job_named(Project.find(directory).root, name)
    curve = folder.curve()[-lines:]
    said = tail(folder.log, lines)
    if as_json:
        emit_json({"job": state.name, "metrics": curve, "log": said})
        return
    for measured in curve:
        line(step_line(measured))
    for text in () if quiet else said:
        note(text)


def step_line(measured: dict[str, Any]) -> str:
    """One step as a line of text."""
    rest = ", ".join(f"{k} {v:.4g}" for k, v in measured.items() if k not in ("step", "loss"))
    return f"step {measured['step']}: loss {measured.get('loss', float('nan')):.4f} ({rest})"


def stop_job(directory: Path, name: str | None, *, as_json: bool, quiet: bool) -> None:
    """Ask the process of a job to end after its step, and wait for it."""
    _, state = job_named(Project.find(directory).root, name)
    running = live_status(state) == "running"
    if running:
        _end(state)
    if as_json:
        emit_json({"job": state.name, "stopped": running})
    elif not quiet:
        note(f"`{state.name}` " + ("stopped; --resume goes on" if running else "was not running"))


def _end(state: TrainingState) -> None:
    for number, patience in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, 5.0)):
        try:
            os.kill(state.pid, number)
        except ProcessLookupError:
            return
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if live_status(state) != "running":
                return
            time.sleep(0.1)
    raise HarnessError(f"process {state.pid} of `{state.name}` does not end")
