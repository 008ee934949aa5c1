"""`harness incidents`: guardrail hits, retries, fallbacks, suppressed replies by version."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_cli.commands._completing import evalset_names, run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

if TYPE_CHECKING:
    from harness_cli.evaluation.incidents import Count, Incidents, Span
    from harness_cli.store.project import Project

app = typer.Typer(rich_markup_mode=None)


@app.command()
def incidents(
    logs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[LOG]…", help="Serving logs, or folders of them."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="24h, 7d, a day, or an instant (UTC).")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Up to here, not included.")
    ] = None,
    by: Annotated[str, typer.Option(help="harness, policy, day: some of them.")] = "harness,policy",
    run: Annotated[
        list[str] | None,
        typer.Option(help="Evaluation runs instead; may be repeated.", autocompletion=run_ids),
    ] = None,
    evalset: Annotated[
        str | None,
        typer.Option(help="All runs of this evalset instead.", autocompletion=evalset_names),
    ] = None,
    most: Annotated[
        float | None,
        typer.Option(
            "--max-per-100", min=0, metavar="N", help="Exit 10 where one is more frequent."
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What guardrails caught and what had to be repaired, by harness and policy version.

    Counts the serving logs that are named, else those in .harness/served, else evaluation runs.
    """
    from datetime import UTC, datetime

    from harness_cli.errors import UsageError
    from harness_cli.evaluation.incidents import axes, span_of
    from harness_cli.store.project import Project

    project = Project.find(directory)
    named = [path for one in logs or () if (path := within(directory, one))]
    if named and (run or evalset):
        raise UsageError("serving logs or evaluation runs, not both")
    if most is not None and math.isnan(most):
        raise UsageError("--max-per-100 takes a number, not `nan`")
    span = span_of(since, until, datetime.now(UTC))
    found = _found(project, named, run, evalset, span, axes(by))
    show(found, as_json=as_json, quiet=quiet)
    if most is not None:
        _decide(found, most)


def _found(
    project: "Project",
    named: list[Path],
    run: list[str] | None,
    evalset: str | None,
    span: "Span",
    by: tuple[str, ...],
) -> "Incidents":
    from harness_cli.evaluation.incidents import Incidents, of_logs, of_runs, rows
    from harness_cli.store.runs import RunStore
    from harness_cli.store.served import served_logs

    paths = [] if run or evalset else served_logs(project.root, named)
    count: Count
    if paths:
        count = of_logs(paths, span, by)
    else:
        store = RunStore(project.runs)
        chosen = [store.get(name) for name in run] if run else store.list()
        fits = (r for r in chosen if evalset in (None, r.config().evalset.name))
        count = of_runs(fits, span, by)
    return Incidents(
        source="served" if paths else "runs",
        by=by,
        since=span.since.isoformat() if span.since else None,
        until=span.until.isoformat() if span.until else None,
        rollouts=count.rollouts.total(),
        incidents=rows(count, by, _releases(project)),
        bad_lines=count.bad_lines,
        bad=tuple((line.place, line.problem) for line in count.bad),
    )


def _releases(project: "Project") -> dict[tuple[str, str], str]:
    """(policy id, harness id) → the manifest that proves the pair; none where one is damaged."""
    from harness_cli.errors import BadFile
    from harness_cli.release.channels import list_manifests, proven_pairs

    try:
        return proven_pairs(list_manifests(project.manifests).values())
    except BadFile:
        return {}


def show(found: "Incidents", *, as_json: bool, quiet: bool) -> None:
    """The table; what could not be read is named on stderr."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.records.counting import counted

    for place, problem in found.bad:
        note(f"warning: {place}: {problem}")
    if found.bad_lines > len(found.bad):
        note(f"warning: … and {found.bad_lines - len(found.bad)} more lines")
    if as_json:
        emit_json(found)
        return
    happened = [row for row in found.incidents if row.count]
    if not happened:
        what = "requests" if found.source == "served" else "rollouts of runs"
        line(f"no incidents in {found.rollouts} {what}")
    elif not quiet:
        columns = [*found.by, "release", "incident", "count", "rollouts", "per_100"]
        table(columns, [[_cell(row, c) for c in columns] for row in happened])
        line(f"{counted(found.rollouts, 'rollout')} in all")


def _cell(row: Any, column: str) -> Any:
    value = getattr(row, column)
    return value[:12] if column == "harness" else value


def _decide(found: "Incidents", most: float) -> None:
    """Exit codes that a script can act on: 10 too many, 1 what cannot be read could be too many."""
    from harness_cli.commands._show import note

    over = [row for row in found.incidents if row.per_100 > most]
    for row in over:
        version = " ".join(str(_cell(row, axis)) for axis in found.by)
        note(f"over {most:g} in 100: {row.incident}, {row.per_100:g} under {version}")
    if over:
        raise typer.Exit(10)
    if found.bad_lines:
        raise typer.Exit(1)
