"""What `harness train study` does: a study run or gone on with, its tables printed and written."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.commands._show import emit_json, line, note
from harness_cli.errors import HarnessError
from harness_cli.records.reader import read_yaml
from harness_cli.records.study import ArmScore, ArmTime, Study
from harness_cli.training.study.checked import check_chosen, check_study
from harness_cli.training.study.curves import Curve, curves_of
from harness_cli.training.study.families import Unit, units
from harness_cli.training.study.tables import MadeTable, make_tables, markdown

CURVE: Final = "curve.jsonl"
"""Of a base made here, beside its weights."""


def read_study(path: Path) -> Study:
    """The file. Raises `BadFile` with its place, `UsageError` where its parts do not fit."""
    study = read_yaml(path, Study, name=str(path))
    check_study(study)
    return study


def train_study(
    path: Path,
    *,
    seed: int | None,
    arms: Sequence[str],
    processes: int,
    tables_only: bool,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run what is not there yet, then show the tables. One seed alone shows none."""
    from harness_cli.training.study.prepare import open_ground
    from harness_cli.training.study.run import all_scores, ground_made, seed_run, times_of

    study = read_study(path)
    check_chosen(study, seed, arms)
    ground = open_ground(study, path.parent)

    def said(text: str) -> None:
        if not quiet:
            note(f"{time.strftime('%H:%M:%S')} {text}")

    if seed is not None:
        seed_run(ground, seed, said, arms)
        return
    if not tables_only:
        ground_made(ground, said)
        _run_units(path, units(study.arms, study.seeds, arms), processes)
    lines = list(all_scores(ground.folder, study.seeds))
    times = [t for s in (0, *study.seeds) for t in times_of(ground.folder, s).read(ArmTime)]
    tables = make_tables(study, lines)
    base_curve = ground.project.root / ground.base / CURVE
    text = page(study, tables, times, lines, curve=base_curve)
    if output is not None:
        curves = curves_of(study, ground.project.root, base_curve)
        write_results(output, text, tables, times, lines, curves)
    if as_json:
        emit_json({"study": study.name, "tables": msgspec.to_builtins(tables)})
    else:
        line(text)


def _run_units(path: Path, waiting: Sequence[Unit], processes: int) -> None:
    """Every unit in a process of its own, so many side by side, in the order they are given."""
    left = list(waiting)
    running: list[tuple[Unit, subprocess.Popen[bytes]]] = []
    failed: set[int] = set()
    while left or running:
        while left and len(running) < processes:
            seed, arms = unit = left.pop(0)
            command = [sys.executable, "-m", "harness_cli.main", "train", "study", str(path)]
            command += ["--seed", str(seed), *(x for arm in arms for x in ("--arm", arm))]
            running.append((unit, subprocess.Popen(command)))
        for pair in list(running):
            if pair[1].poll() is not None:
                running.remove(pair)
                if pair[1].returncode:
                    failed.add(pair[0][0])
        time.sleep(0.5)
    if failed:
        said = ", ".join(map(str, sorted(failed)))
        raise HarnessError(f"seed {said} did not come to its end", hint="the same command goes on")


def page(
    study: Study,
    tables: Sequence[MadeTable],
    times: Sequence[ArmTime],
    lines: Sequence[ArmScore],
    *,
    curve: Path | None = None,
) -> str:
    """The tables, and what they cost."""
    parts = [f"## {study.name}", ""]
    if study.notes:
        parts += [study.notes.strip(), ""]
    for table in tables:
        parts += [markdown(table), ""]
    parts += _rewards(lines)
    jobs = sum(t.seconds for t in times) / 60
    runs = {s.run: s for s in lines}.values()
    scoring = sum(s.seconds for s in runs) / 60
    cpu = sum(t.cpu_s for t in times) / 60
    scoring_cpu = sum(s.cpu_s for s in runs) / 60
    seeds = ", ".join(map(str, study.seeds))
    parts.append(
        f"Seeds {seeds}. {len(times)} jobs took {jobs:.1f} minutes of wall time, one by one "
        f"({cpu:.1f} of CPU), measuring {scoring:.1f} ({scoring_cpu:.1f})."
    )
    measured = curve.read_bytes().splitlines() if curve is not None and curve.is_file() else []
    if measured:  # a base of few steps has no point yet
        last = msgspec.json.decode(measured[-1])
        minutes = last["cpu_s"] / 60
        parts.append(
            f"The base read {last['tokens'] / 1e6:.1f} M tokens in {last['step']} steps, "
            f"{minutes:.1f} minutes of CPU."
        )
    return "\n".join(parts)


def _rewards(lines: Sequence[ArmScore]) -> list[str]:
    """Means of the four rewards on the first column that has them, by arm over its seeds."""
    first = next((s.column for s in lines if s.parts), None)
    if first is None:
        return []
    arms = list(dict.fromkeys(s.arm for s in lines))
    names = sorted({n for s in lines for n in s.parts})
    made = [f"**Rewards on {first}, means over seeds**", ""]
    made += ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for arm in arms:
        mine = [s for s in lines if s.arm == arm and s.column == first]
        if mine:
            means = [sum(s.parts.get(n, 0.0) for s in mine) / len(mine) for n in names]
            made.append(f"| {arm} | " + " | ".join(f"{100 * m:.1f}" for m in means) + " |")
    return [*made, ""]


def write_results(
    output: Path,
    text: str,
    tables: Sequence[MadeTable],
    times: Sequence[ArmTime],
    lines: Sequence[ArmScore],
    curves: dict[str, dict[int, Curve]],
) -> None:
    """`tables.md`, `tables.json`, `times.json`, `curves.json` and `scores.json` (means alone)."""
    from harness_cli.records.canonical import write_atomic, write_json

    output.mkdir(parents=True, exist_ok=True)
    write_atomic(output / "tables.md", (text + "\n").encode())
    write_json(output / "tables.json", tables)
    write_json(output / "times.json", times)
    write_json(output / "curves.json", curves)
    means = [
        {
            "arm": s.arm,
            "seed": s.seed,
            "column": s.column,
            "items": len(s.scores),
            "mean": sum(s.scores.values()) / max(1, len(s.scores)),
            **s.parts,
        }
        for s in lines
    ]
    write_json(output / "scores.json", means)
