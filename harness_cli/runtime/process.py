"""A command of the harness as a bounded process: JSON in, JSON out, nothing left behind.

Bounds: wall clock, CPU seconds, address space, file size, open files, 1 MiB of output. The process
leads a session of its own and its whole group is killed when it ends or its time is up; a
grandchild that makes a session of its own escapes that, which only a container would prevent. It
sees an allow-list of the environment, so no key of ours.
"""

import asyncio
import contextlib
import logging
import math
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("harness.runtime")
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")
OUTPUT_CAP = 1 << 20
ADDRESS_SPACE = 2 << 30
FILE_SIZE = 16 << 20
OPEN_FILES = 64
_SHELL = (
    'ulimit -c 0; ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" && ulimit -n "$4" || exit 126;'
    ' shift 4; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Finished:
    """How a process ended. `problem` is "" when it ran to its end within its bounds."""

    stdout: bytes
    stderr: str
    code: int | None
    problem: str = ""
    timed_out: bool = False


async def run_process(
    argv: Sequence[str],
    stdin: bytes,
    *,
    seconds: float,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run `argv` in `folder` with `stdin`, within all bounds. Never raises for what it does.

    `environment` is added to the allow-list.
    """
    bounds = [math.ceil(seconds) + 1, ADDRESS_SPACE >> 10, FILE_SIZE >> 9, OPEN_FILES]
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _SHELL,
            "harness",
            *(str(b) for b in bounds),
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={**_allowed(folder), **(environment or {})},
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        return Finished(b"", "", None, problem=f"it could not be started: {exc}")
    try:
        done = await _watch(process, stdin, seconds)
        about = {"command": argv, "status": done.code, "problem": done.problem}
        log.log(logging.INFO if done.problem else logging.DEBUG, "command ran", extra=about)
        return done
    finally:
        _kill_group(process.pid)
        # The transport is closed here, since a survivor may hold the pipes open for ever.
        process._transport.close()  # type: ignore[attr-defined]


async def _watch(process: asyncio.subprocess.Process, stdin: bytes, seconds: float) -> Finished:
    """Feed, read and wait, all under one wall clock."""
    out, err = bytearray(), bytearray()
    feeding = asyncio.ensure_future(_feed(process, stdin))
    reading = asyncio.ensure_future(_read(process.stdout, out))
    listening = asyncio.ensure_future(_read(process.stderr, err))
    tasks = (feeding, reading, listening)
    ended = asyncio.ensure_future(_until_dead(process))
    deadline = time.monotonic() + seconds
    try:
        done, _ = await asyncio.wait(
            (ended, reading), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if ended not in done and reading in done and not reading.result():
            # It closed its stdout and lives on.
            left = max(0.0, deadline - time.monotonic())
            done, _ = await asyncio.wait((ended,), timeout=left)
        problem = _problem(ended in done, len(out), seconds)
        _kill_group(process.pid)
        # What a finished process wrote is in the pipe; with its group dead the end is near.
        await asyncio.wait((reading, listening), timeout=0.5)
        problem = problem or _problem(True, len(out), seconds)
        return Finished(
            bytes(out[:OUTPUT_CAP]),
            err[-4_000:].decode(errors="replace"),
            process.returncode,
            problem=problem,
            timed_out="seconds" in problem,
        )
    finally:
        for task in (*tasks, ended):
            task.cancel()
        await asyncio.gather(*tasks, ended, return_exceptions=True)


def _problem(ended: bool, written: int, seconds: float) -> str:
    if written > OUTPUT_CAP:
        return f"it wrote more than {OUTPUT_CAP >> 20} MiB"
    return "" if ended else f"it did not end within {seconds:g} seconds"


async def _until_dead(process: asyncio.subprocess.Process) -> None:
    """Until the process itself ended, whoever still holds its pipes.

    Not `process.wait()`, which waits for the end of its pipes as well.
    """
    pause = 0.001
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.02)


async def _feed(process: asyncio.subprocess.Process, stdin: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError, OSError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader | None, into: bytearray) -> bool:
    """Read to the end, or until the cap is passed (True)."""
    assert stream is not None
    while chunk := await stream.read(65_536):
        into += chunk
        if len(into) > OUTPUT_CAP:
            return True
    return False


def _allowed(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {"PATH": os.defpath, **kept, "HOME": str(folder), "TMPDIR": str(folder)}


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
