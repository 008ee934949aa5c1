"""Eval wall over its physical floor, CPU per call over a bare loop, memory over items.

The floor is think time x calls / concurrency. Every measurement of ours stands beside one of the
bare loop made right before it, so a busy machine shows in both.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.process import harness, run
from benchmarks.project import make_project
from benchmarks.stub import Stub, stub

THINK_MS = 20
CALLS = 2
ROUNDS = 5
ROOT = Path(__file__).parents[1]


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal."""
    rounds = 1 if quick else ROUNDS
    with stub(folder, think_ms=THINK_MS) as endpoint:
        for concurrency, goal in ((8, 1.15), (64, 1.6)):
            project = make_project(folder / f"c{concurrency}", 1000, endpoint.url)
            pairs = [_pair(project, endpoint, 1000, concurrency) for _ in range(rounds)]
            yield from _floor_and_cpu(pairs, 1000, concurrency, goal)
        yield whole_process(folder, endpoint, rounds)
    yield memory(folder, quick=quick)


def _pair(project: Path, endpoint: Stub, items: int, concurrency: int) -> tuple[dict, dict]:
    url = f"{endpoint.url}/chat/completions"
    words = [sys.executable, "-m", "benchmarks.bare", url, items, concurrency]
    bare = json.loads(run(words, ROOT).out)
    words = ["eval", "bench", "--concurrency", concurrency, "--json", "--quiet"]
    report = json.loads(harness(project, *words).out)
    if report["counts"]["passed"] != items:
        raise SystemExit(f"eval: {report['counts']}")
    return report["timing"], bare


def _floor_and_cpu(
    pairs: list[tuple[dict, dict]], items: int, concurrency: int, goal: float
) -> Iterator[dict]:
    floor = THINK_MS / 1000 * CALLS * items / concurrency
    ours = median(eval_["wall_s"] for eval_, _ in pairs) / floor
    bare = median(b["wall_s"] for _, b in pairs) / floor
    against = median(eval_["wall_s"] / b["wall_s"] for eval_, b in pairs)
    yield result(
        f"eval wall / floor at concurrency {concurrency}",
        ours,
        f"<= {goal}",
        ours <= goal,
        f"{items} items, {len(pairs)} rounds; the bare aiohttp loop beside it {bare:.2f} x floor, "
        f"ours {against:.2f} x the bare loop",
    )
    cpu = median(
        (eval_["cpu_s"] / eval_["calls"]) / (b["cpu_s"] / b["calls"]) for eval_, b in pairs
    )
    ms = median(1000 * eval_["cpu_s"] / eval_["calls"] for eval_, _ in pairs)
    yield result(
        f"CPU per call / bare aiohttp loop at concurrency {concurrency}",
        cpu,
        "<= 3.5",
        cpu <= 3.5,
        f"agent loop, hooks, journal and judge included; {ms:.3f} ms a call on this machine",
    )
    syncs = median(e["journal"]["syncs"] / e["journal"]["records"] for e, _ in pairs)
    yield result(
        f"journal syncs / record at concurrency {concurrency}",
        syncs,
        "<= 0.25",
        syncs <= 0.25,
        "group commit with fdatasync",
    )


def whole_process(folder: Path, endpoint: Stub, rounds: int) -> dict:
    """From the start of the interpreter to its end: loading, evaluation, both reports."""
    items, concurrency = 5000, 64
    project = make_project(folder / "whole", items, endpoint.url)
    words = ["eval", "bench", "--concurrency", concurrency, "--json", "--quiet"]
    floor = THINK_MS / 1000 * CALLS * items / concurrency
    walls = [harness(project, *words).wall_s for _ in range(min(rounds, 3))]
    value = median(walls) / floor
    how = f"{items} items at concurrency {concurrency}, median of {len(walls)}"
    return result("eval whole process / floor", value, "<= 1.7", value <= 1.7, how)


def memory(folder: Path, *, quick: bool) -> dict:
    """Peak memory of the whole process, report included, at two sizes."""
    small, large = (500, 3000) if quick else (1000, 20_000)
    peaks = []
    with stub(folder, think_ms=0) as endpoint:
        for items in (small, large):
            project = make_project(folder / f"rss{items}", items, endpoint.url)
            words = ["eval", "bench", "--concurrency", 64, "--quiet", "--json"]
            peaks.append(harness(project, *words).peak_kib)
    slope = (peaks[1] - peaks[0]) / (large - small)
    how = f"peak {peaks[0] / 1024:.0f} MiB at {small} items, {peaks[1] / 1024:.0f} MiB at {large}"
    return result("RSS slope, KiB an item", slope, "<= 1", slope <= 1, how)


def result(name: str, value: float, goal: str, ok: bool, how: str) -> dict:
    return {"name": name, "value": round(value, 4), "goal": goal, "ok": bool(ok), "how": how}
