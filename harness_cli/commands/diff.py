"""`harness diff REV_A [REV_B]`: what changed between two harness states, by meaning."""

from typing import Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="REV_A", help="A revision or harness id.")],
    after: Annotated[
        str | None, typer.Argument(metavar="REV_B", help="Default: the working files.")
    ] = None,
    full: Annotated[bool, typer.Option(help="Whole texts, not their beginnings.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rules, parameters, settings and constraints that changed between two harness states."""
    from harness_cli.commands._changes import change_lines
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.harness.diff import diff_states
    from harness_cli.harness.load import load_state
    from harness_cli.store.project import Project

    project = Project.find(directory)
    found = diff_states(load_state(project, before), load_state(project, after))
    if as_json:
        emit_json(found)
        return
    for text in change_lines(found.changes, sides=not quiet, full=full):
        line(text)
    if not quiet:
        modules = ", ".join(f"{n} {module}" for module, n in found.modules().items())
        note(f"{found.a[:12]} → {found.b[:12]}: {modules or 'no changes'}")
