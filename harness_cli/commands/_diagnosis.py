"""A diagnosis on the terminal: classes with shares, cases, who must act, what to do next."""

from typing import Any

from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.evolution.clusters import SORTED_BY
from harness_cli.evolution.outlets import OUTLETS
from harness_cli.evolution.show_hunk import visible
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Cluster, Diagnosis


def show_diagnosis(made: Diagnosis, *, as_json: bool, quiet: bool) -> None:
    """The table, then every class with its cases; shares of what is systematic always."""
    if as_json:
        emit_json(made)
        return
    for words in () if quiet else made.notes:
        note(f"note: {words}")
    line(f"{made.evalset}: {counted(made.failures, 'failure')} of {made.of}, run {made.run}")
    rows = [_row(c) for c in made.clusters]
    if rows:
        table(["class", "", "size", "share", "kind", "side", "suspected"], rows)
    _shares(made)
    for cluster in () if quiet else made.clusters:
        _show_cluster(cluster)
    _changes(made)
    line()
    line(f"advice: {made.advice['action']} (the choice is yours)")
    for reason in made.advice["reasons"]:
        line(f"  - {reason}")


def _row(c: Cluster) -> list[Any]:
    kind = "systematic" if c.systematic else "sparse"
    known = "known" if c.class_id else "new"
    suspected = ", ".join(c.suspected_modules[:2])
    return [c.id, known, c.size, f"{c.share:.0%}", kind, c.side, suspected]


def _shares(made: Diagnosis) -> None:
    """Systematic, long tail, unexplained; then who must act, and how."""
    if not made.failures:
        return
    large = round(100 * sum(c.share for c in made.clusters if c.systematic))
    unexplained = round(100 * made.unexplained)
    tail = max(0, 100 - large - unexplained)  # what is left, so that the three are 100
    line(f"systematic: {large}%, long tail: {tail}%, unexplained: {unexplained}% of the failures")
    alone = "; no model was asked" if made.by in SORTED_BY.values() else ""
    line(f"sorted by: {made.by}, after the human-owned classes{alone}")
    sides: dict[str, int] = {}
    for c in made.clusters:
        sides[c.side] = sides.get(c.side, 0) + c.size
    for side, size in sorted(sides.items(), key=lambda x: (-x[1], x[0])):
        line(f"  {side}: {size}: {OUTLETS[side]}")


def _changes(made: Diagnosis) -> None:
    moved = [c for c in made.changes if c.kind != "same"]
    if moved:
        line()
        line("classes since the diagnosis before:")
    for change in moved:
        before, after = ", ".join(change.before), ", ".join(change.after)
        line(f"  {change.kind}: {' -> '.join(x for x in (before, after) if x)}")


def _show_cluster(cluster: Cluster) -> None:
    line()
    line(f"{cluster.id}: {visible(cluster.label)}")
    if cluster.explanation:
        line(f"  {_short(cluster.explanation, 400)}")
    line(f"  {_short(cluster.root_cause, 400)}")
    if cluster.citations:
        line(f"  shown at {', '.join(cluster.citations[:6])}")
    for case in cluster.cases:
        where = case.item_id if case.step is None else f"{case.item_id}:{case.step}"
        line(f"  {where}  “{_short(case.comment)}” → “{_short(case.reply)}”")
        line(f"    {case.why}")


def _short(text: str, most: int = 90) -> str:
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= most else flat[: most - 1] + "…"
