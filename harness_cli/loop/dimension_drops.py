"""`python -m harness_cli.loop.dimension_drops`: what each dimension costs a policy, on dev items.

In a project of its own: the same items under the base, then under states that one dimension alone
has changed, one state an item, then under all five. Prints the Markdown table of
docs/augmentation.md. With `--folder` the project is kept and the same command goes on where it
was; with `--seconds` each run gets its share of the time that is left, and rows pair the items that
both runs came to, so a slow policy's table has an n in each row and no row is missing.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness_cli.errors import HarnessError, Stale
from harness_cli.evaluation.drops import ALL, METRICS, Drop, drops, scores_of
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.evalsets import ITEMS, load_evalset
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.survey import HEADER
from harness_cli.evaluation.variant_set import STATES, draw_rows, states_text
from harness_cli.harness.load import harness_files, state_from_files
from harness_cli.loop.scaffold import make_project
from harness_cli.records.augmentation import DIMENSIONS, Dimension, DimensionName, Recipe
from harness_cli.records.canonical import write_atomic, write_json
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import dump_yaml, read_json
from harness_cli.simulator.solutions import read_oracle
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

SAMPLE = "sample"
SEED = 20261130
LEAST_S = 1.0
"""What the runs that are left share where no time is: one that begins should get somewhere."""
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
    project: Project,
    recipes: Conditions,
    *,
    policy: str,
    agent: str,
    seconds: float | None = None,
) -> dict[str, list[Drop]]:
    """Condition → drops of one policy and agent. `seconds`: for all runs, those under the base and
    under each condition; what one leaves over is the next one's."""
    end = None if seconds is None else time.monotonic() + seconds
    runs: dict[str, RunFolder] = {}
    sets = {"": SAMPLE, **{name: set_of(name) for name in recipes}}
    begun = {name: _begun(project, evalset, policy, agent) for name, evalset in sets.items()}
    left = sum(run is None or run.status() != "complete" for run in begun.values())
    for name, evalset in sets.items():
        run = begun[name]
        if run is None or run.status() != "complete":
            share = None if end is None else max(LEAST_S, end - time.monotonic()) / left
            run = _run(project, evalset, policy, agent, resume=run, seconds=share)
            left -= 1
        runs[name] = run
    before = scores_of(runs.pop(""))
    return {name: drops(before, scores_of(run), {}) for name, run in runs.items()}


def _run(
    project: Project,
    evalset: str,
    policy: str,
    agent: str,
    *,
    resume: RunFolder | None,
    seconds: float | None,
) -> RunFolder:
    """A run of the set, or the rest of one; it may stop at its time."""
    options = EvalOptions(
        evalset=evalset,
        policy=policy,
        agent=agent,  # type: ignore[arg-type]
        budget=Budget(seconds=seconds),
        resume=resume,
    )
    outcome = asyncio.run(evaluate(project, options))
    if outcome.report.status != "budget":
        outcome.check()
    return outcome.run


def _begun(project: Project, evalset: str, policy: str, agent: str) -> RunFolder | None:
    """The newest run of the set by that policy and agent."""
    for run in RunStore(project.runs).list():
        asked = run.config()
        if (asked.evalset.name, asked.policy, asked.agent) == (evalset, policy, agent):
            return run
    return None


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
    parser.add_argument("--folder", type=Path, help="keep the project here, and go on with it")
    parser.add_argument("--seconds", type=float, help="the most time that an agent's runs take")
    chosen = parser.parse_args(argv)
    with _shop(chosen.folder) as folder:
        rows = {}
        try:
            project = _prepared(folder, chosen.limit, chosen.strength)
            for agent in chosen.agent or ["harness", "react"]:
                rows[chosen.policy, agent] = measured(
                    project,
                    conditions(chosen.strength),
                    policy=chosen.policy,
                    agent=agent,
                    seconds=chosen.seconds,
                )
                sys.stderr.write(f"{chosen.policy} ({agent}) measured\n")
        except HarnessError as exc:
            sys.stderr.write(f"{chosen.policy} was not measured: {exc}\n")
            sys.stderr.write(f"hint: {exc.hint}\n" if exc.hint else "")
            return 1
    sys.stdout.write(table(rows))
    return 0


@contextmanager
def _shop(kept: Path | None) -> Iterator[Path]:
    """Where the project stands: in a folder that is kept, or in one that is not."""
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="harness-drops-") as folder:
        yield Path(folder, "shop")


def _prepared(folder: Path, limit: int, strength: float) -> Project:
    """The project with its sets; one that stands there already, if it is of the same question."""
    asked = {"limit": limit, "strength": strength, "seed": SEED}
    note = folder / "drops.json"
    if note.is_file():
        if read_json(note, dict[str, float]) != asked:
            raise Stale(
                f"`{folder}` was begun for {note.read_text().strip()}",
                hint="the same --limit and --strength, or another --folder",
            )
        return Project.find(folder)
    project = Project.find(make_project(folder).root)
    every = list(load_evalset(project, "live_stream_qa", split="dev").items)
    items = every[:: max(1, len(every) // limit)][:limit]
    make_sets(project, items, conditions(strength), SEED)
    write_json(note, asked)
    return project


if __name__ == "__main__":
    sys.exit(main())
