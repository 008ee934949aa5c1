"""The command line's side of a serving job: ask the supervisor, and wait for what it says."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec

from harness_cli.errors import HarnessError, UsageError
from harness_cli.harness.findings import Finding
from harness_cli.records.canonical import digest
from harness_cli.records.config import CheckpointRef
from harness_cli.records.counting import counted
from harness_cli.records.reader import read_yaml
from harness_cli.records.serve_job import Desired, Live, ProcessRef, ServeJob
from harness_cli.serving.findings import refuse
from harness_cli.serving.fleet_member import clock
from harness_cli.serving.job_folder import JobFolder, known_job, orphans, runs
from harness_cli.serving.jobs import last_words
from harness_cli.serving.ports import refuse_taken
from harness_cli.serving.preflight import OURS, check_job, resolved
from harness_cli.store.locks import locked
from harness_cli.store.processes import begun_of
from harness_cli.store.project import Project

LOOK_S: Final = 0.1
SLACK_S: Final = 30.0
"""Beside the job's own bounds: a busy machine is slow to start even the supervisor."""
How = Literal["weights", "replicas"]


def read_job(path: Path, project: Project) -> tuple[ServeJob, list[Finding]]:
    """A job file and its warnings. Raises `BadFile` with everything that is wrong with it."""
    job = resolved(read_yaml(path, ServeJob, name=path.name), project.root)
    found = check_job(job, project.config, project.root)
    refuse(path.name, found)
    return job, found


def up(project: Project, job: ServeJob) -> tuple[Live, bool]:
    """Start a job, and whether it had to be started; returns once all its replicas are ready.

    Raises `HarnessError` with the last words of what did not come up; nothing is left running then.
    """
    folder = JobFolder.of(project.root, job.name)
    bound = job.process.ready_s + SLACK_S
    with locked(folder.lock, what=f"serve up {job.name}", if_locked="wait", timeout_s=bound):
        live = folder.live()
        if live is not None and runs(live.supervisor):
            return _same(folder, live, job), False
        clear(folder)
        refuse_taken(job.host, job.port)
        desired = _wanted(job, generation=(live.generation if live else 0) + 1)
        folder.ask(desired)
        process = _supervisor(project.root, folder)
        try:
            return _until(folder, desired.generation, bound, lambda: process.poll() is None), True
        except HarnessError as exc:
            if folder.desired() is None:
                clear(folder)
                raise HarnessError(f"`{job.name}` was taken down while it came up") from exc
            down(project.root, job.name)
            raise


def _same(folder: JobFolder, live: Live, job: ServeJob) -> Live:
    """What runs, where it is what is asked for. Raises `UsageError` where it is not, or no more."""
    desired = folder.desired()
    if desired is None or _without_weights(job) != _without_weights(desired.job):
        raise UsageError(
            f"`{job.name}` is served already, by other settings",
            hint=f"harness serve down {job.name}, then up again",
        )
    if moved := _moved(desired, job):
        weights = f" {job.model}" if job.model != desired.model else ""
        replicas = f" --replicas {job.replicas}" if job.replicas != desired.replicas else ""
        raise UsageError(
            f"`{job.name}` is served already, with {' and '.join(moved)}",
            hint=f"harness serve switch {job.name}{weights}{replicas}",
        )
    return _until(folder, 1, job.process.ready_s + SLACK_S, lambda: runs(live.supervisor))


def _without_weights(job: ServeJob) -> ServeJob:
    """A job without what `switch` moves while it runs."""
    return msgspec.structs.replace(job, model="", checkpoint=None, replicas=1)


def _moved(desired: Desired, job: ServeJob) -> list[str]:
    """What runs by now in place of what a job file asks for, in words."""
    moved = []
    if job.replicas != desired.replicas:
        moved.append(f"{counted(desired.replicas, 'replica')} and not {job.replicas}")
    if job.model != desired.model:
        moved.append(f"the weights `{desired.model}` and not `{job.model}`")
    elif job.checkpoint and job.checkpoint.sha256 != desired.checkpoint_sha256:
        moved.append("weights of another digest")
    return moved


def _wanted(job: ServeJob, *, generation: int) -> Desired:
    return Desired(
        generation=generation,
        job=job,
        digest=digest(msgspec.to_builtins(job)),
        model=job.model,
        checkpoint_sha256=job.checkpoint.sha256 if job.checkpoint else None,
        replicas=job.replicas,
        at=clock(),
    )


def _supervisor(root: Path, folder: JobFolder) -> "subprocess.Popen[bytes]":
    words = [sys.executable, "-m", "harness_cli.serving.supervisor", str(root), folder.name]
    with folder.log("supervisor").open("ab") as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=root,
            start_new_session=True,
        )


def _until(folder: JobFolder, generation: int, bound: float, alive: Callable[[], bool]) -> Live:
    """The live state once it reached a generation. Raises `HarnessError` where it will not."""
    end = time.monotonic() + bound
    while time.monotonic() < end:
        there = alive()
        live = folder.live()
        if live is not None and live.generation >= generation:
            return live
        if live is not None and live.refused >= generation and live.error:
            raise HarnessError(live.error, hint=f"its logs are in {folder.path}")
        if not there:
            told = last_words(folder.log("supervisor"))
            raise HarnessError(
                f"`{folder.name}` did not come up: " + (told or "it wrote nothing"),
                hint=f"its logs are in {folder.path}",
            )
        time.sleep(LOOK_S)
    raise HarnessError(f"`{folder.name}` was not ready within {bound:g} s")


def down(root: Path, name: str) -> bool:
    """Drain and end a job with all its processes; False when none of them ran."""
    folder = known_job(root, name)
    live, desired = folder.live(), folder.desired()
    ran = False
    if live is not None and runs(live.supervisor):
        ran = True
        drain_s = desired.job.process.drain_s if desired else SLACK_S
        # Replicas drain side by side, then the router does.
        _end([live.supervisor], 2 * drain_s + SLACK_S, group=False)
    ran = bool(clear(folder)) or ran
    folder.forget()
    return ran


def clear(folder: JobFolder) -> list[ProcessRef]:
    """End what a supervisor that is gone left behind; gives those processes."""
    live = folder.live()
    left = orphans(live) if live is not None else []
    if left:
        _end(left, 10.0, group=True)
    return left


def _end(processes: list[ProcessRef], patience: float, *, group: bool) -> None:
    """SIGTERM to each, SIGKILL (to its group, where it leads one) to what is left."""
    for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
        for process in processes:
            if runs(process):
                _signal(process.pid, number, group=group and number == signal.SIGKILL)
        end = time.monotonic() + wait
        while any(map(runs, processes)) and time.monotonic() < end:
            time.sleep(0.05)
    if stuck := [p.pid for p in processes if runs(p)]:
        raise HarnessError(f"processes that do not end: {', '.join(map(str, stuck))}")
    for process in processes if group else ():
        _end_rest_of_group(process.pid)


def _end_rest_of_group(leader: int) -> None:
    """End what a leader that is gone left in its group, as schedulers that do not end with it.

    While any of them lives its number is given to no other process; a process that has it now
    leads a group that was never ours.
    """
    if begun_of(leader) > 0:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _signal(pid: int, number: int, *, group: bool) -> None:
    try:
        if group:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return


def switch(
    project: Project,
    name: str,
    *,
    model: str | None = None,
    sha256: str | None = None,
    replicas: int | None = None,
    how: How | None = None,
) -> Live:
    """Move a running job to other weights, or to another number of replicas, without a gap.

    Raises `HarnessError` where it cannot be; then what ran before runs still, and is desired again.
    """
    folder = known_job(project.root, name)
    with locked(folder.lock, what=f"serve switch {name}", if_locked="fail"):
        live, old = folder.live(), folder.desired()
        if live is None or old is None or not runs(live.supervisor):
            raise UsageError(f"`{name}` does not run", hint="harness serve up JOB.yaml")
        new = _changed(old, model=model, sha256=sha256, replicas=replicas, how=how)
        if model is not None:
            new = _checked(project, new, name)
        folder.ask(new)
        bound = old.job.process.ready_s + old.job.process.drain_s + SLACK_S
        try:
            return _until(folder, new.generation, bound, lambda: runs(live.supervisor))
        except HarnessError:
            folder.ask(msgspec.structs.replace(old, generation=new.generation + 1))
            raise


def _changed(
    old: Desired,
    *,
    model: str | None,
    sha256: str | None,
    replicas: int | None,
    how: How | None,
) -> Desired:
    if sha256 is not None and model is None:
        raise UsageError("--sha256 is of weights, and none are named", hint="name the weights")
    if model is None and replicas is None:
        raise UsageError("nothing to switch", hint="name weights, or --replicas")
    if replicas not in (None, 1) and not old.job.router.use:
        raise UsageError(f"{replicas} replicas need a router", hint="router: {use: true}")
    if how is None:
        how = "replicas" if old.job.engine in OURS else "weights"
    return msgspec.structs.replace(
        old,
        generation=old.generation + 1,
        model=old.model if model is None else model,
        checkpoint_sha256=old.checkpoint_sha256 if model is None else sha256,
        replicas=old.replicas if replicas is None else replicas,
        how=how,
        at=clock(),
    )


def _checked(project: Project, new: Desired, name: str) -> Desired:
    """The new weights, named or by folder, are what they shall be before anyone reads them."""
    bound = None
    if new.checkpoint_sha256:
        bound = CheckpointRef(uri=new.model, sha256=new.checkpoint_sha256)
    job = msgspec.structs.replace(new.job, model=new.model, checkpoint=bound)
    job = resolved(job, project.root)
    refuse(name, check_job(job, project.config, project.root))
    sha256 = job.checkpoint.sha256 if job.checkpoint else None
    return msgspec.structs.replace(new, model=job.model, checkpoint_sha256=sha256)
