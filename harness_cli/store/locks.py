"""Locks between processes: flock for the truth, pid, boot id and age for the message."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

import msgspec

from harness_cli.errors import Locked

IfLocked = Literal["skip", "wait", "fail"]
WAITING = "wait for it with `--if-locked wait`, or end that process"
LOOK_S = 1.0
"""A holder without a name is about to write it, or only looks who holds the lock: wait it out."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lock. It only speaks: the kernel's flock decides and ends with its process."""

    pid: int
    boot_id: str
    since: float
    """Unix time."""
    what: str = ""

    @property
    def age_s(self) -> float:
        """Seconds for which it has been held."""
        return max(0.0, time.time() - self.since)


def boot_id() -> str:
    """The id of this boot, empty where the kernel tells none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@contextmanager
def locked(
    path: Path,
    *,
    what: str,
    if_locked: IfLocked = "fail",
    timeout_s: float | None = None,
    hint: str = WAITING,
) -> Iterator[int]:
    """Hold the lock file `path` for a while; gives its descriptor.

    A child that inherits the descriptor holds the lock as well, until it ends.

    Raises `Locked` (exit 12) naming the holder when another process has it and `if_locked` is
    `fail` or `skip` (the caller of `skip` takes that for "nothing to do"), or when `wait` took
    longer than `timeout_s`; `hint` says what to do then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _acquire(file, path, hint, if_locked=if_locked, timeout_s=timeout_s)
        holder = Holder(pid=os.getpid(), boot_id=boot_id(), since=time.time(), what=what)
        file.truncate(0)
        file.write(msgspec.json.encode(holder))
        file.flush()
        try:
            yield file.fileno()
        finally:
            file.truncate(0)


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock now; None when it is free."""
    try:
        with path.open("rb") as file:  # looking must work in a folder that is read-only
            if _try(file):
                return None
            return _read(file)
    except FileNotFoundError:
        return None


def _acquire(
    file: IO[bytes], path: Path, hint: str, *, if_locked: IfLocked, timeout_s: float | None
) -> None:
    start = time.monotonic()
    end = None if timeout_s is None else start + timeout_s
    while not _try(file):
        late = end is not None and time.monotonic() >= end
        holder = _read(file)
        if not holder.pid and time.monotonic() < start + LOOK_S:
            time.sleep(0.01)
            continue
        if if_locked != "wait" or late:
            raise _refusal(path, holder, hint)
        time.sleep(0.1)


def _try(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: IO[bytes]) -> Holder:
    file.seek(0)
    try:
        return msgspec.json.decode(file.read(), type=Holder)
    except msgspec.DecodeError:
        # Between taking the lock and writing its name a holder is nameless.
        return Holder(pid=0, boot_id="", since=time.time())


def _refusal(path: Path, holder: Holder, hint: str) -> Locked:
    who = f"process {holder.pid}" if holder.pid else "another process"
    doing = f" ({holder.what})" if holder.what else ""
    other_boot = holder.boot_id and boot_id() and holder.boot_id != boot_id()
    where = " of another machine or boot" if other_boot else ""
    return Locked(
        f"`{path.name}` is held by {who}{where}{doing} for {holder.age_s:.0f} s",
        hint=hint,
    )
