"""What `harness bench replay` itself costs and how true its times are, against the C stub.

The stub thinks for a known time; what is measured beyond it is the stub's timer, the machine, and
the client. The bare aiohttp loop is run right before each measurement, so a busy machine shows in
both. CPU is of the whole agent: prompt, hooks, tool, transport and journal, none of it the model.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.process import run
from benchmarks.project import make_project
from benchmarks.stub import Stub, stub
from harness_cli.serving.bench.arm import Arm, run_arm
from harness_cli.stats.percentiles import percentile
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

THINK_MS = 200
CALLS = 2
CONCURRENCY = 8
CASES, WARM_UP = 410, 10
ROUNDS = 3
ROOT = Path(__file__).parents[1]


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    cases = 90 if quick else CASES
    with stub(folder, think_ms=THINK_MS) as endpoint:
        project = Project.find(make_project(folder / "replay", cases, endpoint.url))
        pairs = [_pair(project, endpoint, cases) for _ in range(1 if quick else ROUNDS)]
    cpu = median(ours["cpu_ms"] for ours, _ in pairs)
    bare = median(1000 * b["cpu_s"] / b["calls"] for _, b in pairs)
    how = f"{cases} cases, {len(pairs)} rounds; the bare aiohttp loop beside it {bare:.3f} ms"
    yield result("bench replay: CPU a model call, ms", cpu, "<= 1", cpu <= 1, how)
    wall = median(ours["wall"] for ours, _ in pairs)
    floor = THINK_MS / 1000 * CALLS * cases / CONCURRENCY
    beside = median(b["wall_s"] / floor for _, b in pairs)
    how = (
        f"a request at concurrency {CONCURRENCY}; the bare loop's whole run beside it {beside:.4f}"
    )
    yield result("bench replay: wall / think time", wall, "<= 1.02", wall <= 1.02, how)
    error = median(ours["error_ms"] for ours, _ in pairs)
    how = "|TTFT - think time| of every measured call, the stub's own timer included"
    yield result("bench replay: timing error at P95, ms", error, "<= 2", error <= 2, how)


def _pair(project: Project, endpoint: Stub, cases: int) -> tuple[dict, dict]:
    url = f"{endpoint.url}/chat/completions"
    words = [sys.executable, "-m", "benchmarks.bare", url, cases, CONCURRENCY]
    bare = json.loads(run(words, ROOT).out)
    arm = Arm(policy="stub", evalset="bench", concurrency=CONCURRENCY, warm_up=WARM_UP)
    made = asyncio.run(run_arm(project, arm))
    timing = RunStore(project.runs).get(made.contract.run).report().timing
    if not all(request.success for request in made.requests):
        raise SystemExit("bench replay: requests failed against the stub")
    think = THINK_MS / 1000
    errors = [abs(c.ttft_s - think) for r in made.measured for c in r.calls]
    walls = [request.wall_s for request in made.measured]
    ours = {
        "cpu_ms": 1000 * timing["cpu_s"] / timing["calls"],
        "wall": sum(walls) / len(walls) / (CALLS * think),
        "error_ms": 1000 * percentile(errors, 95),
    }
    return ours, bare


def result(name: str, value: float, goal: str, ok: bool, how: str) -> dict:
    return {"name": name, "value": round(value, 4), "goal": goal, "ok": bool(ok), "how": how}
