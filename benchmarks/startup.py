"""CPU time of help, over importing typer."""

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.floor import result
from benchmarks.process import run

HARNESS = [sys.executable, "-c", "from harness_cli.main import main; main()"]
IMPORT = [sys.executable, "-c", "import typer"]


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object a goal; the two commands alternate."""
    rounds = 5 if quick else 21
    for words, goal in ((["--help"], 1.5), (["eval", "--help"], 1.8)):
        ratios = [run([*HARNESS, *words]).cpu_s / run(IMPORT).cpu_s for _ in range(rounds)]
        value = median(ratios)
        name = f"CPU of `harness {' '.join(words)}` / `import typer`"
        how = f"median of {rounds} alternations"
        yield result(name, value, f"<= {goal}", value <= goal, how)
