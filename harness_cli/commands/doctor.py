"""`harness doctor`: settings with their source, what is missing, the command that fixes it."""

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def doctor(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """Settings with their source, what is missing, the command that fixes it."""
    from harness_cli.commands._show import emit_json, note, table
    from harness_cli.loop.doctor import examine

    found = examine(directory)
    missing = [f for f in found if f.state == "missing"]
    if as_json:
        emit_json({"findings": found, "missing": len(missing)})
    else:
        shown = missing if quiet else found
        table(
            ["what", "state", "value", "source", "fix"],
            [[f.name, f.state, f.value, f.source, f.fix] for f in shown],
        )
        note(f"{len(missing)} missing" if missing else "everything needed is here")
    if missing:
        raise typer.Exit(1)
