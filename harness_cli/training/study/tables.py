"""The tables of a study, as TR Tables 4 to 6 have them, with intervals and every seed.

A cell is the mean over seeds; beside it the change from the row it is added to, paired: an item's
scores are averaged over the seeds first, so the interval says what other items would give, and the
range of the seeds what another run would. A row with one seed says "single run".
"""

from collections.abc import Mapping, Sequence

import msgspec

from harness_cli.records.study import ArmScore, Study, Table
from harness_cli.stats.paired import paired

Scores = Mapping[str, Mapping[int, Mapping[str, float]]]
"""Arm → seed → item → score, of one column."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One arm or contrast on one column, in points."""

    mean: float | None = None
    seeds: dict[int, float] = {}
    """Each seed's own."""
    change: float | None = None
    low: float | None = None
    high: float | None = None
    """95 % of the paired bootstrap over items."""
    items: int = 0

    @property
    def single(self) -> bool:
        """Of one run."""
        return len(self.seeds) == 1


class MadeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a table."""

    label: str
    contrast: bool = False
    cells: dict[str, Cell] = {}


class MadeTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[MadeRow, ...]


def make_tables(study: Study, lines: Sequence[ArmScore]) -> tuple[MadeTable, ...]:
    """Every table of a study over the lines there are; a cell without them stays empty."""
    columns = tuple(m.column for m in study.sets)
    by_column: dict[str, dict[str, dict[int, dict[str, float]]]] = {c: {} for c in columns}
    for line in lines:
        if line.column in by_column:
            by_column[line.column].setdefault(line.arm, {})[line.seed] = line.scores
    return tuple(_table(table, columns, by_column) for table in study.tables)


def _table(table: Table, columns: tuple[str, ...], scores: Mapping[str, Scores]) -> MadeTable:
    shown = table.columns or columns
    rows = [
        MadeRow(label=row.label, cells={c: cell(scores[c], row.arm, row.against) for c in shown})
        for row in table.rows
    ]
    rows += [
        MadeRow(
            label=one.label,
            contrast=True,
            cells={c: cell(scores[c], one.plus, one.minus) for c in shown},
        )
        for one in table.contrasts
    ]
    return MadeTable(title=table.title, columns=shown, rows=tuple(rows))


def cell(scores: Scores, arm: str, against: str | None) -> Cell:
    """One arm, and its change from another: over the seeds that both have."""
    mine = scores.get(arm, {})
    if not mine:
        return Cell()
    seeds = {seed: 100 * _mean(items.values()) for seed, items in sorted(mine.items())}
    made = Cell(mean=_mean(seeds.values()), seeds=seeds, items=len(next(iter(mine.values()))))
    other = scores.get(against, {}) if against else {}
    pairs = _pairs(mine, other)
    if not pairs:
        return made
    diffs = [
        _mean([mine[a][item] - other[b][item] for a, b in pairs])
        for item in sorted(set.intersection(*(set(mine[a]) & set(other[b]) for a, b in pairs)))
    ]
    found = paired([100 * d for d in diffs])
    return msgspec.structs.replace(made, change=found.mean, low=found.low, high=found.high)


def _pairs(
    mine: Mapping[int, Mapping[str, float]], other: Mapping[int, Mapping[str, float]]
) -> list[tuple[int, int]]:
    """Seeds that belong together: equal ones, or each with the base's only one (seed 0)."""
    if set(other) == {0}:
        return [(seed, 0) for seed in sorted(mine)]
    return [(seed, seed) for seed in sorted(mine) if seed in other]


def _mean(values: object) -> float:
    listed = list(values)  # type: ignore[call-overload]
    return float(sum(listed) / len(listed)) if listed else 0.0


def markdown(table: MadeTable) -> str:
    """A table as Markdown: mean, change with its interval, and each seed in small."""
    head = "| | " + " | ".join(table.columns) + " |"
    lines = [f"**{table.title}**", "", head, "|---" * (len(table.columns) + 1) + "|"]
    lines += [
        f"| {row.label} | " + " | ".join(_said(row.cells[c], row) for c in table.columns) + " |"
        for row in table.rows
    ]
    return "\n".join(lines)


def _said(given: Cell, row: MadeRow) -> str:
    if given.mean is None:
        return "not run"
    change = ""
    if given.change is not None:
        change = f"{given.change:+.1f} [{given.low:+.1f}, {given.high:+.1f}]"
    if row.contrast:
        return change or "not run"
    if set(given.seeds) == {0}:
        return f"{given.mean:.1f}"
    seeds = "single run" if given.single else " ".join(f"{s:.1f}" for s in given.seeds.values())
    return f"{given.mean:.1f} {change} ({seeds})".replace("  ", " ")
