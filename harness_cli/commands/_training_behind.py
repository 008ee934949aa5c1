"""`harness train … --background`: the job as a process of its own that outlives the command."""

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness_cli.commands._show import emit_json, line, note
from harness_cli.errors import HarnessError, UsageError
from harness_cli.records.training_job import TrainingJob, TrainingState
from harness_cli.store.project import Project
from harness_cli.training.job_folder import JobFolder, live_status

if TYPE_CHECKING:
    from harness_cli.commands._training import Wish

START_S: Final = 60.0
"""How long the command waits for the job to say that it runs."""


def start_behind(
    project: Project, directory: Path, job: TrainingJob, wish: "Wish", *, as_json: bool, quiet: bool
) -> None:
    """Start the job as a process of its own that outlives this one."""
    folder = JobFolder.of(project.root, job.name)
    folder.path.mkdir(parents=True, exist_ok=True)
    known = folder.state()
    if known is not None and live_status(known) == "running":
        raise UsageError(f"`{job.name}` is running", hint=f"harness train stop {job.name}")
    words = [sys.executable, "-m", "harness_cli.main", "train", wish.verb]
    words += [str((directory / wish.file).resolve()), "-C", str(project.root)]
    words += [f for f, given in (("--resume", wish.resume), ("--again", wish.again)) if given]
    with folder.log.open("ab") as log:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=project.root,
            start_new_session=True,
        )
    _wait_until_it_runs(folder, process)
    if as_json:
        emit_json({"job": job.name, "pid": process.pid, "log": str(folder.log)})
        return
    line(job.name)
    if not quiet:
        note(f"process {process.pid}; harness train status · train logs {job.name} · train stop")


def _wait_until_it_runs(folder: JobFolder, process: "subprocess.Popen[bytes]") -> None:
    """Return once its state says so. Where it ended in an error instead, raise `HarnessError` with
    the end of its log and the exit code it ended with: 2 for a job that cannot be meant."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        code = process.poll()
        state = folder.state()
        if code == 0 or (code is None and _runs(state, process.pid)):
            return
        if code is not None:
            told = " ".join(tail(folder.log, 3))
            failed = HarnessError(f"`{folder.path.name}` did not start: {told}")
            failed.exit_code = code if code > 0 else HarnessError.exit_code
            raise failed
        time.sleep(0.1)


def _runs(state: TrainingState | None, pid: int) -> bool:
    return state is not None and state.pid == pid and state.status != "failed"


def tail(path: Path, count: int) -> list[str]:
    """The last lines of a file; none where there is no file."""
    if not path.is_file():
        return []
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
