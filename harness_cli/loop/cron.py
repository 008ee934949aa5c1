"""A verb as cron runs it: one at a time, not for ever, with no terminal, its success on record.

The verb runs as a child in a session of its own, so nothing can ask a person for anything. The
child inherits the lock: while it lives the lock is held, even if this process is killed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Literal

import msgspec

from harness_cli.errors import BudgetReached, HarnessError, Locked, Stale, UsageError
from harness_cli.records.canonical import write_atomic
from harness_cli.store.locks import IfLocked, locked
from harness_cli.store.redact import redact

GRACE_S = 30.0
"""What a verb gets after TERM to end what is in flight; it is killed then, and resumes later."""
AHEAD = timedelta(minutes=5)
"""A last success that lies further in the future than this is no proof of anything."""
State = Literal["done", "failed", "skipped", "max_runtime"]


@dataclass(frozen=True, slots=True)
class Job:
    """What to run and within which bounds."""

    words: tuple[str, ...]
    """The verb and its arguments."""
    folder: Path
    lock: Path
    if_locked: IfLocked = "fail"
    max_s: float | None = None
    last_success: Path | None = None
    quiet_stdout: bool = False
    """The verb's stdout goes to stderr: this program's own is a JSON document."""
    grace_s: float = GRACE_S


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How it went."""

    command: str
    state: State
    exit_code: int
    seconds: float
    last_success: str | None = None
    """The file, where it was written now."""


def run_job(job: Job) -> Ended:
    """Run a verb; its exit code is this one's, but 13 where its time ran out.

    Raises `Locked` where the same job is still running and that is to be a failure.
    """
    folder = job.last_success.parent if job.last_success is not None else job.folder
    own = job.lock.parent.parent  # `.harness`, which the lock makes in a clone that has none yet
    if not folder.is_dir() and folder.resolve() != own.resolve():
        raise UsageError(f"no folder `{folder}` for the last-success file")
    told, begun = redact(" ".join(("harness", *job.words))), time.monotonic()
    try:
        with locked(job.lock, what=told, if_locked=job.if_locked, timeout_s=job.max_s) as lock:
            code, late = _child(job, lock, begun)
            if code == 0 and not late and job.last_success is not None:
                write_success(job.last_success, told)
    except Locked:
        if job.if_locked != "skip":
            raise
        return Ended(command=told, state="skipped", exit_code=0, seconds=_since(begun))
    good = code == 0 and not late
    state: State = "max_runtime" if late else "done" if good else "failed"
    return Ended(
        command=told,
        state=state,
        exit_code=BudgetReached.exit_code if late else code,
        seconds=_since(begun),
        last_success=str(job.last_success) if good and job.last_success else None,
    )


def _child(job: Job, lock: int, begun: float) -> tuple[int, bool]:
    """(exit code, whether its time ran out) of the verb."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness_cli.main", *job.words],
        cwd=job.folder,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno() if job.quiet_stdout else None,
        pass_fds=(lock,),
        start_new_session=True,
    )
    with _passed_on(process):
        left = None if job.max_s is None else max(0.0, job.max_s - (time.monotonic() - begun))
        try:
            return _exit_code(process.wait(left)), False
        except subprocess.TimeoutExpired:
            process.terminate()
        try:
            process.wait(job.grace_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _exit_code(process.returncode), True


@contextmanager
def _passed_on(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Signals that are to end this process end the verb, which is waited for."""

    def passed(number: int, _: FrameType | None) -> None:
        if process.poll() is None:
            process.send_signal(number)

    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, passed) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit_code(status: int) -> int:
    """A child's status as shells tell it: 128 and the signal where it was killed."""
    return status if status >= 0 else 128 - status


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)


def write_success(path: Path, told: str) -> None:
    """One line, whole or not at all: when it ended well, and what it was."""
    line = f"{datetime.now(UTC).strftime('%Y-%m-%dT%H:%M:%SZ')} {told}\n"
    try:
        write_atomic(path, line.encode())
    except OSError as exc:
        raise HarnessError(
            f"`{path}` was not written: {exc.strerror}", hint="the verb itself has succeeded"
        ) from exc


def check_success(path: Path, max_s: float, now: datetime) -> timedelta:
    """The age of a last success. Raises `Stale` where it is too old, to come, or not there."""
    try:
        told = path.read_text("utf-8", "replace").partition(" ")[0]
        when = datetime.fromisoformat(told.strip())
        age = now - when
    except OSError:
        raise Stale(f"`{path}`: there was no success yet") from None
    except (ValueError, TypeError):
        raise Stale(f"`{path}` names no time: it is no last-success file") from None
    if age > timedelta(seconds=max_s):
        raise Stale(f"the last success was {words_of(age)} ago, at {told.strip()}")
    if -age > AHEAD:
        raise Stale(f"the last success is of a time to come, {told.strip()}: set the clock right")
    return age


def words_of(age: timedelta) -> str:
    """`26 h`, `3 d`."""
    minutes = round(age.total_seconds() / 60)
    for size, name in ((1440 * 2, "d"), (120, "h"), (1, "min")):
        if minutes >= size or size == 1:
            return f"{minutes // {'d': 1440, 'h': 60, 'min': 1}[name]} {name}"
    return ""


def lock_path(root: Path, name: str) -> Path:
    """The lock of a job of that name."""
    if not name or not all(c.isalnum() or c in "-_." for c in name) or name.startswith("."):
        raise UsageError(f"`{name}` is no name for a lock", hint="letters, digits, hyphens")
    return root / ".harness" / "locks" / f"cron-{name}"


def refuse_words(words: Sequence[str]) -> None:
    """Raise `UsageError` where there is nothing to run, or this itself."""
    if not words:
        raise UsageError("no verb to run", hint="harness cron --max-runtime 3h -- eval EVALSET")
    if words[0] == "cron":
        raise UsageError("a job runs another verb")
