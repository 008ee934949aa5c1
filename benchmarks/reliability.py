"""kill -9 at random moments, and every fault kind at 5 %: nothing lost, nothing silently wrong."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.floor import result
from benchmarks.process import harness
from benchmarks.project import make_project
from benchmarks.stub import Stub, stub

C = 8
FAULTS = ("f429", "f500", "trunc", "half", "eof", "hang")


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    yield from kills(folder, times=3 if quick else 20)
    yield from faults(folder, items=100 if quick else 500, seeds=1 if quick else 3)


def kills(folder: Path, *, times: int) -> Iterator[dict]:
    """Kill, resume, compare with the run that nobody interrupted."""
    items, lost, repeated, differing = 200, 0, [], 0
    with stub(folder, think_ms=20) as endpoint:
        project = make_project(folder / "kills", items, endpoint.url)
        harness(project, "eval", "bench", "--concurrency", C, "--quiet")
        whole = (_newest(project) / "report.canonical.json").read_bytes()
        for seed in range(times):
            run, recorded = _killed(project, endpoint, random.Random(seed), items)
            before = _total(endpoint)
            words = ("--resume", run.name, "--concurrency", C, "--quiet")
            harness(project, "eval", *words)
            differing += (run / "report.canonical.json").read_bytes() != whole
            # Every record of a call must save its call: what is asked again was not recorded.
            asked_again = _total(endpoint) - before
            lost += max(0, asked_again - (2 * items - recorded))
            repeated.append(_total(endpoint) - 2 * items)
    how = f"{times} kills of a run of {items} items, concurrency {C}"
    yield result("acknowledged calls lost by kill -9", lost, "0", lost == 0, how)
    worst = max(repeated)
    yield result("calls repeated after a kill, worst", worst, f"<= {C}", worst <= C, how)
    yield result("canonical reports that differ", differing, "0", differing == 0, how)


def _killed(project: Path, endpoint: Stub, rng: random.Random, items: int) -> tuple[Path, int]:
    endpoint.ask("__reset")
    words = ["eval", "bench", "--concurrency", C, "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "harness_cli.main", *map(str, words)],
        cwd=project,
        stdout=subprocess.DEVNULL,
    )
    wanted = rng.randrange(1, 2 * items - 2 * C)
    while endpoint.ask("__stats")["requests"] < wanted and process.poll() is None:
        time.sleep(0.002)
    time.sleep(rng.uniform(0, 0.03))
    process.kill()
    process.wait()
    run = _newest(project)
    lines = (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    return run, sum(b'"record":{"kind":"model"' in line[:60] for line in lines)


def faults(folder: Path, *, items: int, seeds: int) -> Iterator[dict]:
    """Each kind of fault at 5 %, each seed of the stub: N of N with a verdict, all right."""
    for kind in FAULTS:
        counts, injected = [], 0
        for seed in range(1, seeds + 1):
            with stub(folder, think_ms=5, seed=seed) as endpoint:
                place = folder / f"{kind}-{seed}"
                project = make_project(place, items, endpoint.url, stall_timeout_s=2)
                endpoint.ask(f"__cfg?{kind}=5&retry_after=50")
                words = ("eval", "bench", "--concurrency", 32, "--json", "--quiet")
                counts.append(json.loads(harness(project, *words).out)["counts"])
                injected += endpoint.ask("__stats")[kind]
        good = min(count["passed"] for count in counts)
        yield result(
            f"items passed under 5 % {kind}, worst seed",
            good,
            f"{items} of {items}",
            good == items and injected > 0,
            f"{seeds} seeds, {injected} faults injected, stall limit 2 s",
        )


def _total(endpoint: Stub) -> int:
    return sum(sum(turns) for turns in endpoint.counts().values())


def _newest(project: Path) -> Path:
    return max((project / ".harness" / "runs").iterdir(), key=lambda run: run.stat().st_ctime_ns)
