"""One process of an engine: in a group of its own, with its output in a log that is rotated."""

import asyncio
import contextlib
import os
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness_cli.errors import HarnessError
from harness_cli.records.serve_job import ProcessRef
from harness_cli.store.locks import boot_id
from harness_cli.store.processes import begun_of

KILL_S: Final = 10.0
"""How long the kernel may take to end what was killed."""


class Child:
    """A started process. Its output goes straight to the file: it outlives whoever started it."""

    def __init__(self, process: Process, log: Path) -> None:
        self.process, self.log = process, log
        pid = process.pid
        self.ref = ProcessRef(pid=pid, begun=begun_of(pid), boot_id=boot_id())

    @classmethod
    async def start(
        cls, words: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
    ) -> "Child":
        """Start it. Raises `HarnessError` where there is no such program."""
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with log.open("ab") as file:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    env=dict(env),
                    cwd=cwd,
                    start_new_session=True,
                )
        except OSError as exc:
            raise HarnessError(
                f"`{words[0]}` cannot be started: {exc.strerror}",
                hint="name the Python of the engine's environment with `launcher` in the job",
            ) from exc
        return cls(process, log)

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self.process.returncode is None

    async def stop(self, drain_s: float) -> bool:
        """SIGTERM to the process, SIGKILL to its group after `drain_s`; True when it drained.

        The first goes to the leader alone: an engine drains its requests and then ends its own
        schedulers, which a signal of their own would tear away under it.
        """
        drained = True
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), drain_s)
            except TimeoutError:
                drained = False
        self.kill_group()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), KILL_S)
        return drained

    def kill_group(self) -> None:
        """End whatever is left of its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def rotate(log: Path, *, limit: int, keep: int) -> bool:
    """Copy a log that grew beyond `limit` bytes away and begin it anew; True where it was done.

    The writer has the file open for appending and goes on at its new end. What it writes between
    the last read and the cut, a few microseconds, is lost.
    """
    try:
        if log.stat().st_size <= limit:
            return False
        for number in range(keep - 1, 0, -1):
            older = log.with_name(f"{log.name}.{number}")
            if older.exists():
                older.replace(log.with_name(f"{log.name}.{number + 1}"))
        with log.open("rb") as source, log.with_name(f"{log.name}.1").open("wb") as target:
            shutil.copyfileobj(source, target)
            while rest := source.read():
                target.write(rest)
            os.truncate(log, 0)
    except FileNotFoundError:
        return False
    return True
