"""CPU per call against inspect-ai's marginal one, in an environment of its own.

`build/inspect-venv` is used when it is there; `INSPECT_VENV=make` makes it first (a package index
and some minutes are needed). Without it the goal is not measured, and says so.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.floor import result
from benchmarks.process import harness, run
from benchmarks.project import make_project, prompt
from benchmarks.stub import stub

ROOT = Path(__file__).parents[1]
VENV = ROOT / "build" / "inspect-venv"
PACKAGES = ("inspect-ai==0.3.285", "openai==3.57.0")
NAME = "inspect-ai's marginal CPU per call / ours at concurrency 64"

TASK = '''
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import tool

@tool
def lookup():
    async def execute(q: str) -> str:
        """Look an article up.

        Args:
            q: the article
        """
        return "42"
    return execute

@task
def bench(n: int = 100):
    samples = [Sample(input=f"What about SID={i} today?", target="42") for i in range(n)]
    return Task(
        dataset=MemoryDataset(samples),
        solver=[system_message(PROMPT), use_tools(lookup()), generate()],
        scorer=includes(),
    )
'''


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object: measured, or said not to be."""
    if os.environ.get("INSPECT_VENV") == "make" and not VENV.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        pip = [VENV / "bin/python", "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(pip, check=True)
    if not (VENV / "bin" / "inspect").exists():
        how = "not measured: INSPECT_VENV=make makes build/inspect-venv (inspect-ai)"
        yield {"name": NAME, "value": None, "goal": ">= 20", "ok": None, "how": how}
        return
    sizes = (100, 300) if quick else (200, 600)
    with stub(folder, think_ms=20) as endpoint:
        theirs = _marginal([_inspect(folder, endpoint.url, n) for n in sizes], sizes)
        ours = []
        for _ in range(1 if quick else 3):
            project = make_project(folder / f"ours{len(ours)}", 1000, endpoint.url)
            words = ("eval", "bench", "--concurrency", 64, "--json", "--quiet")
            timing = json.loads(harness(project, *words).out)["timing"]
            ours.append(timing["cpu_s"] / timing["calls"])
    value = theirs / median(ours)
    how = (
        f"inspect {1000 * theirs:.2f} ms a call (two a sample, {sizes[0]} to {sizes[1]} samples), "
        f"ours {1000 * median(ours):.3f} ms"
    )
    yield result(NAME, value, ">= 20", value >= 20, how)


def _inspect(folder: Path, url: str, samples: int) -> float:
    file = folder / "task.py"
    file.write_text(f"PROMPT = {prompt()!r}\n{TASK}")
    words = [
        "eval",
        file.name,
        "--model",
        "openai/stub",
        "--model-base-url",
        url,
        "-T",
        f"n={samples}",
    ]
    words += ["--max-connections", 64, "--display", "none", "--log-dir", folder / "logs"]
    words += ["-M", "responses_api=false", "-M", "api_key=none"]
    done = run([VENV / "bin" / "inspect", *words], folder)
    if done.code != 0:
        raise SystemExit(f"inspect eval: exit {done.code}")
    return done.cpu_s


def _marginal(cpu_s: list[float], samples: tuple[int, int]) -> float:
    return (cpu_s[1] - cpu_s[0]) / (2 * (samples[1] - samples[0]))
