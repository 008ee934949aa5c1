"""`python -m harness_cli.loop.dimension_drops`: what each dimension costs a policy, on dev items.

In a project of its own: the same items under the base, then under states that one dimension alone
has changed, one state an item, then under all five. Prints the Markdown table of
docs/augmentation.md.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.evaluation.drops import ALL, METRICS, Drop, drops, scores_of
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import ITEMS, load_evalset
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.survey import HEADER
from harness_cli.evaluation.variant_set import STATES, draw_rows, states_text
from harness_cli.harness.load import harness_files, state_from_files
from harness_cli.loop.scaffold import make_project
from harness_cli.records.augmentation import DIMENSIONS, Dimension, DimensionName, Recipe
from harness_cli.records.canonical import write_atomic
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import dump_yaml
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

SAMPLE = "sample"
SEED = 20261130
Conditions = dict[str, Recipe]


def conditions(strength: float) -> Conditions:
    """Name of a condition → recipe: each dimension alone, then all of them."""
    one = Dimension(strength=strength)
    alone: Conditions = {name: _recipe([name], one) for name in DIMENSIONS}
    return {**alone, ALL: _recipe(DIMENSIONS, one)}


def _recipe(names: Sequence[DimensionName], one: Dimension) -> Recipe:
    return Recipe(dimensions=dict.fromkeys(names, one), attempts=30)


def make_sets(project: Project, items: Sequence[Item], recipes: Conditions, seed: int) -> None:
    """The sample, and one evalset a condition with a state for each item."""
    folder = project.evalsets / SAMPLE
    lines = b"".join(msgspec.json.encode(item) + b"\n" for item in items)
    header = EvalsetHeader(name=SAMPLE, splits={"dev": len(items)})
    write_atomic(folder / ITEMS, lines)
    write_atomic(folder / HEADER, dump_yaml(header).encode())
    files = harness_files(project)
    base = state_from_files(files)
    oracle = read_oracle(project.evalsets)
    for name, recipe in recipes.items():
        rows, _ = asyncio.run(draw_rows(files, base, recipe, items, oracle, seed=seed))
        place = project.evalsets / set_of(name)
        named = EvalsetHeader(name=place.name, splits=header.splits, items_of=SAMPLE, states=STATES)
        write_atomic(place / STATES, states_text(base.id, recipe, rows))
        write_atomic(place / HEADER, dump_yaml(named).encode())


def set_of(condition: str) -> str:
    """The evalset of a condition."""
    return f"{SAMPLE}-{condition.replace('_', '-')}"


def measured(
    project: Project, recipes: Conditions, *, policy: str, agent: str
) -> dict[str, list[Drop]]:
    """Condition → drops of one policy and agent."""
    before = scores_of(_run(project, SAMPLE, policy, agent))
    found = {}
    for name in recipes:
        after = scores_of(_run(project, set_of(name), policy, agent))
        found[name] = drops(before, after, {})
    return found


def _run(project: Project, evalset: str, policy: str, agent: str) -> RunFolder:
    options = EvalOptions(evalset=evalset, policy=policy, agent=agent)  # type: ignore[arg-type]
    outcome = asyncio.run(evaluate(project, options))
    outcome.check()
    return outcome.run


def table(rows: Mapping[tuple[str, str], Mapping[str, Sequence[Drop]]]) -> str:
    """The Markdown table: a row for each policy, agent and condition."""
    head = ["policy", "agent", "changed", "n", *(f"{m}: base → here, drop" for m in METRICS)]
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * len(head)) + " |"]
    for (policy, agent), found in rows.items():
        for name, made in found.items():
            n = max(drop.n for drop in made)
            cells = [policy, agent, name, str(n), *(_cell(drop) for drop in made)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(drop: Drop) -> str:
    if drop.base is None or drop.here is None or drop.drop is None:
        return "–"
    low, high = 100 * (drop.low or 0.0), 100 * (drop.high or 0.0)
    return (
        f"{100 * drop.base:.1f} → {100 * drop.here:.1f}, "
        f"{100 * drop.drop:+.1f} [{low:+.1f}, {high:+.1f}]"
    )


def main(argv: list[str] | None = None) -> int:
    """Parse, make the sets, run, print."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.loop.dimension_drops", description=__doc__
    )
    parser.add_argument("--limit", type=int, default=120, help="dev items; default: %(default)s")
    parser.add_argument("--strength", type=float, default=1.0, help="default: %(default)s")
    parser.add_argument("--policy", default="builtin", help="default: %(default)s")
    parser.add_argument("--agent", action="append", choices=("harness", "react"), default=None)
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="harness-drops-") as folder:
        project = Project.find(make_project(Path(folder, "shop")).root)
        every = list(load_evalset(project, "live_stream_qa", split="dev").items)
        step = max(1, len(every) // chosen.limit)
        items = every[::step][: chosen.limit]
        recipes = conditions(chosen.strength)
        make_sets(project, items, recipes, SEED)
        rows = {}
        for agent in chosen.agent or ["harness", "react"]:
            try:
                rows[chosen.policy, agent] = measured(
                    project, recipes, policy=chosen.policy, agent=agent
                )
            except HarnessError as exc:
                sys.stderr.write(f"{chosen.policy} ({agent}) was not measured: {exc}\n")
                return 1
            sys.stderr.write(f"{chosen.policy} ({agent}) measured\n")
    sys.stdout.write(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
