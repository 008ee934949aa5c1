"""`harness report`: one run as one self-contained HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._completing import run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

app = typer.Typer(rich_markup_mode=None)


@app.command(name="report")
def report(
    run_name: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run's id, its beginning, or `latest`.", autocompletion=run_ids
        ),
    ] = "latest",
    incumbent: Annotated[
        str | None,
        typer.Argument(
            metavar="INCUMBENT",
            help="The run it is compared with; default: one of what the channel serves.",
            autocompletion=run_ids,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Default: report.html in the run."),
    ] = None,
    agreement: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `harness judge agree --json` printed."),
    ] = None,
    max_size: Annotated[
        float, typer.Option(metavar="MB", min=1, help="Trajectories are left out beyond it, said.")
    ] = 10.0,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """One self-contained HTML page of a run: numbers, changes, items with their trajectories.

    Prints the file's name. It works without network and from a mail; a run that is still being
    written is shown as far as it came.
    """
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.evaluation.page.write import write_page
    from harness_cli.loop.report_page import subject_of
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(directory)
    store = RunStore(project.runs)
    run = store.get(run_name)
    subject = subject_of(
        project,
        run,
        incumbent=store.get(incumbent) if incumbent else None,
        agreement=within(directory, agreement),
    )
    target = within(directory, output) or run.path / "report.html"
    written = write_page(target, subject, room=int(max_size * 1_000_000))
    if as_json:
        emit_json(written)
        return
    line(written.file)
    if quiet:
        return
    note(f"{written.bytes / 1e6:.1f} MB, {written.items} of {written.planned} rollouts")
    if written.status != "complete":
        note(f"partial: the run is {written.status}")
    if written.trajectories_left_out:
        note(f"{written.trajectories_left_out} trajectories had no room; --max-size MB gives more")
    if subject.comparison is None:
        note(f"no incumbent: {subject.why_incumbent}")
