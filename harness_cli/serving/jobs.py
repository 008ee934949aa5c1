"""Served policies as jobs: started, watched and ended from outside, known by a state file each.

Under `.harness/serve/` lie `<policy>.json` (written by the process that serves, once it listens),
`<policy>.log` and `<policy>.lock`. A pid alone proves nothing: after a restart, or after enough
processes, it is another's. So boot id and the process's start time stand beside it.
"""

import logging
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from harness_cli.errors import HarnessError, UnknownName, UsageError
from harness_cli.records.canonical import write_json
from harness_cli.records.reader import read_json
from harness_cli.serving.ports import refuse_taken
from harness_cli.store.locks import locked
from harness_cli.store.processes import alive
from harness_cli.store.project import Project

logger = logging.getLogger("harness.serving")
LOOPBACK: Final = "127.0.0.1"
START_S: Final = 120.0
"""How long a policy may take to come up; `local` reads weights before it listens to anyone."""
STOP_S: Final = 15.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SERVABLE: Final = ("builtin", "local", "scripted", "replay")
_LOG_LIMIT: Final = 5 * 1024 * 1024


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """`<policy>.json`: a process that serves."""

    schema: int = 1
    name: str
    policy_id: str
    pid: int
    boot_id: str
    begun: int
    """Start of the process in clock ticks since boot (`/proc/PID/stat`, field 22)."""
    url: str
    """The base URL for OpenAI clients, with `/v1`."""
    started: str
    log: str


@dataclass(frozen=True, slots=True)
class JobPaths:
    """Where the files of one job lie."""

    state: Path
    log: Path
    lock: Path


State = Literal["up", "stale"]


def job_paths(root: Path, name: str) -> JobPaths:
    """The files of the job that serves policy `name`."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"`{name}` cannot be served: its name is no file name")
    folder = root / ".harness" / "serve"
    return JobPaths(folder / f"{name}.json", folder / f"{name}.log", folder / f"{name}.lock")


def start(project: Project, name: str, port: int) -> tuple[Job, bool]:
    """The job that serves `name`, and whether it had to be started.

    Returns once it answers. Raises `HarnessError` with the end of its log when it does not come up.
    """
    name, config = project.policy(name)
    if config.kind not in _SERVABLE:
        raise UsageError(
            f"policy `{name}` is of kind `{config.kind}`: it has an endpoint already",
            hint=f"served are the kinds {', '.join(_SERVABLE)}",
        )
    paths = job_paths(project.root, name)
    with locked(paths.lock, what=f"serve up {name}", if_locked="wait", timeout_s=START_S):
        job = read_job(paths)
        if job is not None and state_of(job) == "up":
            if port and not job.url.endswith(f":{port}/v1"):
                raise UsageError(
                    f"`{name}` is served already, at {job.url}", hint=f"harness serve down {name}"
                )
            return job, False
        refuse_taken(LOOPBACK, port)
        paths.state.unlink(missing_ok=True)
        return _started(project, name, port, paths), True


def _started(project: Project, name: str, port: int, paths: JobPaths) -> Job:
    if paths.log.exists() and paths.log.stat().st_size > _LOG_LIMIT:
        paths.log.replace(paths.log.with_suffix(".log.1"))
    with paths.log.open("ab") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "harness_cli.serving.worker",
                str(project.root),
                name,
                str(port),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=project.root,
            start_new_session=True,
        )
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        job = read_job(paths)
        if job is not None and job.pid == process.pid:
            about = {"policy": name, "url": job.url, "serves": job.pid}
            logger.info("policy is served", extra=about)
            return job
        time.sleep(0.05)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    told = last_words(paths.log)
    raise HarnessError(
        f"`{name}` did not come up: " + (told or "it wrote nothing"),
        hint=f"its log is {paths.log}",
    )


def stop(root: Path, name: str) -> Job | None:
    """End the job that serves `name`: it may finish what is in flight. None when none was up."""
    paths = job_paths(root, name)
    job = read_job(paths)
    if job is None:
        return None
    up = state_of(job) == "up"
    if up:
        _end(job)
    paths.state.unlink(missing_ok=True)
    return job if up else None


def _end(job: Job) -> None:
    for number, patience in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, 5.0)):
        try:
            os.kill(job.pid, number)
        except ProcessLookupError:
            return
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if state_of(job) != "up":
                return
            time.sleep(0.05)
    raise HarnessError(f"process {job.pid} of `{job.name}` does not end")


def jobs(root: Path) -> list[tuple[Job, State]]:
    """Every job with a state file, by name."""
    found = sorted((root / ".harness" / "serve").glob("*.json"))
    read = [read_job(job_paths(root, path.stem)) for path in found]
    return [(job, state_of(job)) for job in read if job is not None]


def job_named(root: Path, name: str) -> Job:
    """The job of that name. Raises `UnknownName`."""
    known = {job.name: job for job, _ in jobs(root)}
    if name not in known:
        raise UnknownName.of("served policy", name, known)
    return known[name]


def state_of(job: Job) -> State:
    """Whether the very process that wrote the state file still runs."""
    return "up" if alive(job.pid, job.boot_id, job.begun) else "stale"


def read_job(paths: JobPaths) -> Job | None:
    """The state file; None when there is none."""
    if not paths.state.is_file():
        return None
    return read_json(paths.state, Job, name=str(paths.state))


def remember(paths: JobPaths, job: Job) -> None:
    """Write the state file: now it is up."""
    write_json(paths.state, job)


def forget(paths: JobPaths, job: Job) -> None:
    """Remove the state file, unless another process has written its own meanwhile."""
    found = read_job(paths)
    if found is not None and found.pid == job.pid:
        paths.state.unlink(missing_ok=True)


def tail(path: Path, count: int) -> list[str]:
    """The last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 64 * 1024))
            return file.read().decode("utf-8", "replace").splitlines()[-count:]
    except FileNotFoundError:
        return []


def last_words(path: Path) -> str:
    """The last line of a log, with the error that a line of advice belongs to; "" for none."""
    told = [line for line in tail(path, 5) if line.strip()]
    if len(told) > 1 and told[-1].startswith("hint: "):
        return f"{told[-2]}; {told[-1]}"
    return told[-1] if told else ""
