"""`harness export inspect|junit`: a run for other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within
from harness_cli.records.counting import counted

if TYPE_CHECKING:
    from harness_cli.store.runs import RunFolder

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="A run for other tools.")
Run = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="ID", help="Default: the newest complete run.", autocompletion=run_ids
    ),
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")]


@app.command()
def inspect(
    output: Output,
    run: Run = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A log of inspect_ai as JSON; -o FOLDER names it as `inspect view --log-dir` lists it."""
    from harness_cli.commands._show import note
    from harness_cli.evaluation.exports.inspect_log import export_inspect, finished, is_listed
    from harness_cli.store.project import Project

    project = Project.find(directory)
    chosen = finished(_chosen(directory, run))
    path = within(directory, output) or output
    path, count = export_inspect(project, chosen, path)
    if not (quiet or is_listed(path.name)):
        note(f"note: the view of a folder lists no file of this name; `-o {path.parent}` names it")
    _said("inspect", chosen, path, count, as_json=as_json, quiet=quiet)


@app.command()
def junit(
    output: Output,
    run: Run = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """JUnit XML, one test case a rollout; an unscored one is skipped with its reason."""
    from harness_cli.errors import UsageError
    from harness_cli.evaluation.exports.inspect_log import finished
    from harness_cli.evaluation.junit import junit as lines_of
    from harness_cli.store.runs import atomic_file

    chosen = finished(_chosen(directory, run))
    path = within(directory, output) or output
    if not path.parent.is_dir():
        raise UsageError(f"no folder `{path.parent}` to write `{path.name}` into")
    report = chosen.report()
    with atomic_file(path) as file:
        for text in lines_of(report, chosen.results()):
            file.write(text.encode())
    count = report.planned - report.counts.get("missing", 0)
    _said("junit", chosen, path, count, as_json=as_json, quiet=quiet)


def _chosen(directory: Path, run: str | None) -> "RunFolder":
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    store = RunStore(Project.find(directory).runs)
    return store.get(run) if run else store.newest()


def _said(
    what: str, run: "RunFolder", path: Path, count: int, *, as_json: bool, quiet: bool
) -> None:
    from harness_cli.commands._show import emit_json, line

    if as_json:
        emit_json({"format": what, "run": run.id, "file": str(path), "rollouts": count})
    elif not quiet:
        line(f"{path}: {counted(count, 'rollout')} of run {run.id}")
