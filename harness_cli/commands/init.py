"""`harness init`: a working project that runs at once."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="A new or empty folder.")] = HERE,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A working project: harness, evalsets, gates, harness.yaml; it runs at once."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.loop.scaffold import make_project

    made = make_project(directory / folder)
    if as_json:
        emit_json({"root": str(made.root), "commit": made.commit, "paths": list(made.paths)})
        return
    line(f"made a project in {made.root} (commit {made.commit[:12]})")
    if not quiet:
        enter = "" if folder == HERE else f"cd {folder} && "
        note(f"\nnext: {enter}harness eval live_stream_qa --limit 50")
