"""The drop from the base, behind the tables of a run under augmented states."""

from typing import Any

import msgspec

from harness_cli.commands._show import line, note, table
from harness_cli.evaluation.drops import ALL, Drop, drops_of
from harness_cli.evaluation.evalsets import load_header
from harness_cli.records.run import Report
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

COLUMNS = ["items", "metric", "n", "base %", "here %", "drop, points", "95 % interval"]


def with_drops(project: Project, report: Report, run: RunFolder) -> Any:
    """The report for programs; under `drops` the run it is held against and each row."""
    if not (project.evalsets / run.config().evalset.name).is_dir():
        return report
    base, drops = drops_of(project, run)
    if base is None:
        return report
    return {**msgspec.to_builtins(report), "drops": {"base": base.id, "rows": drops}}


def show_drops(project: Project, run: RunFolder) -> None:
    """Rows by dimension, or what to run so that there are some; nothing for other evalsets."""
    config = run.config()
    if not (project.evalsets / config.evalset.name).is_dir():
        return
    header = load_header(project, config.evalset.name)
    if header.states is None:
        return
    base, drops = drops_of(project, run)
    if base is None:
        split = f" --split {config.evalset.split}" if config.evalset.split else ""
        note(
            f"no complete run of `{header.items_of}` by `{config.policy}`, in this harness and by "
            "this judge, to take the drop from"
        )
        agent = "" if config.agent == "harness" else f" --agent {config.agent}"
        why = ' --reason "…"' if config.evalset.split in header.seal.splits else ""
        asked = f"{header.items_of}{split} --policy {config.policy}{agent}{why}"
        note(f"hint: `harness eval {asked}`, then `harness eval --rescore {run.id}{why}`")
        return
    line(f"drop of {config.policy} ({config.agent}) from run {base.id}, the same items in the base")
    table(COLUMNS, [_row(drop) for drop in drops])


def _row(drop: Drop) -> list[object]:
    return [
        _items(drop),
        drop.metric,
        drop.n,
        _percent(drop.base),
        _percent(drop.here),
        _points(drop.drop),
        "–" if drop.low is None else f"{_points(drop.low)} … {_points(drop.high)}",
    ]


def _items(drop: Drop) -> str:
    if drop.dimension == ALL:
        return ALL
    return f"{'with' if drop.applied else 'without'} {drop.dimension}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.2f}"
