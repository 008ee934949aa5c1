"""What `harness evalset import` does with its options, and what it says afterwards."""

import sys
from pathlib import Path
from typing import Any

from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.errors import UsageError
from harness_cli.evaluation import report as shown
from harness_cli.evaluation.imports.bring_in import BroughtIn, bring_in
from harness_cli.evaluation.imports.imported import ImportOptions
from harness_cli.records.counting import counted
from harness_cli.records.reader import read_text
from harness_cli.store.project import Project


def bring(
    kind: str,
    path: Path | None,
    directory: Path,
    *,
    name: str | None,
    tasks: Path | None,
    policy: str | None,
    simulator: str | None,
    rescore: bool,
    judge: str | None,
) -> BroughtIn:
    """The import that the options ask for."""
    if judge is not None and not rescore:
        raise UsageError("--judge scores again, so it goes with --rescore")
    options = ImportOptions(
        name=name,
        tasks=read_text(tasks) if tasks else None,
        policy=policy,
        simulator=simulator,
    )
    return bring_in(
        Project.find(directory),
        kind,
        path or Path(),
        options,
        rescore=rescore,
        judge=judge,
        command=tuple(sys.argv[1:]),
    )


def show_brought_in(made: BroughtIn, *, as_json: bool, quiet: bool) -> None:
    """Evalset, run and scores; what was left out and guessed goes to stderr."""
    if as_json:
        emit_json(_plain(made))
        return
    for words in made.imported.unsupported:
        note(f"not supported: {words}")
    for words in made.imported.notes:
        note(f"note: {words}")
    if quiet:
        line(made.run.id if made.run else made.evalset.header.name)
        return
    state = "new" if made.fresh else "as it was"
    line(f"evalset {made.evalset.header.name}: {counted(made.evalset.ref.n, 'item')}, {state}")
    if made.run is None or made.report is None:
        note(f"next: `harness eval {made.evalset.header.name}`")
        return
    line(shown.title(made.report))
    line(shown.headline(made.report))
    table(shown.COLUMNS, shown.metric_rows(made.report))
    if made.report.pass_hat:
        line(shown.pass_line(made.report))
    line(f"user simulator: {made.imported.simulator or 'none'}")
    line(f"run {made.run.id}: {made.run.path}")
    note(f"next: `harness diagnose {made.run.id}`; `harness compare` pairs it with another import")


def _plain(made: BroughtIn) -> dict[str, Any]:
    return {
        "kind": made.imported.kind,
        "evalset": made.evalset.ref,
        "new": made.fresh,
        "run": made.run.id if made.run else None,
        "report": made.report,
        "notes": made.imported.notes,
        "unsupported": made.imported.unsupported,
    }
