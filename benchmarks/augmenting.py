"""CPU of 100 augmented states of the shipped harness, in one fresh process on one core."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.floor import result

STATES = 100
GOAL_S = 10.0
ROOT = Path(__file__).parents[1]
DRAW = """
import json, sys, time
from pathlib import Path
from harness_cli.augmentation.states import augment
from harness_cli.harness.load import folder_files
from harness_cli.records.augmentation import Recipe
files = folder_files(Path(sys.argv[1]))
start, trees, discards = time.process_time(), set(), 0
for seed in range(int(sys.argv[2])):
    made = augment(files, Recipe(), seed)
    trees.add(made.state.id)
    discards += len(made.discards)
took = time.process_time() - start
print(json.dumps({"cpu_s": took, "trees": len(trees), "discards": discards}))
"""


def measurements(folder: Path, *, quick: bool) -> Iterator[dict]:
    """One object: drawn, loaded, checked and held against the base, the first state included."""
    rounds = [drawn(STATES) for _ in range(1 if quick else 3)]
    value = median(r["cpu_s"] for r in rounds)
    trees, discards = rounds[0]["trees"], rounds[0]["discards"]
    how = (
        f"CPU seconds of {STATES} states by the default recipe (five dimensions, strength 0.5), "
        f"{trees} different trees, {discards} draws discarded, median of {len(rounds)}"
    )
    yield result("100 augmented states", value, f"<= {GOAL_S:g}", value <= GOAL_S, how)


def drawn(count: int) -> dict:
    """One process: the states, on one core."""
    command = [sys.executable, "-c", DRAW, str(ROOT / "harness_repo"), str(count)]
    made = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(made.stdout)
