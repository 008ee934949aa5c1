"""A child process with its wall clock, CPU seconds and peak memory."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    wall_s: float
    cpu_s: float
    peak_kib: int


def run(words: list[object], folder: Path | None = None) -> Finished:
    """Run a command to its end; its errors go through to ours."""
    began = time.perf_counter()
    process = subprocess.Popen([str(w) for w in words], cwd=folder, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Finished(
        process.returncode,
        out.decode(),
        time.perf_counter() - began,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss,
    )


def harness(folder: Path, *words: object) -> Finished:
    """`harness …` in a project; anything but exit 0 ends the benchmark."""
    done = run([sys.executable, "-m", "harness_cli.main", *words], folder)
    if done.code != 0:
        raise SystemExit(f"harness {' '.join(map(str, words))}: exit {done.code}")
    return done
