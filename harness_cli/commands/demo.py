"""`harness demo`: the whole loop on the embedded policy, narrated."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted

app = typer.Typer(rich_markup_mode=None)


@app.command()
def demo(
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Leave the project in this new folder.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The whole loop in a temporary project: it ends with a promoted, verified manifest."""
    import asyncio
    import tempfile

    from harness_cli.commands._show import emit_json, line
    from harness_cli.loop.demo.run import run_demo

    narrator = Silent() if as_json or quiet else Terminal()
    with tempfile.TemporaryDirectory(prefix="harness-demo-") as made:
        folder = directory / keep if keep else Path(made) / "shop"
        done = asyncio.run(run_demo(folder, narrator))
    if as_json:
        emit_json(done)
    else:
        kept = f"; the project is in {done.folder}" if keep else ""
        line(
            f"\n{counted(len(done.stages), 'stage')} in {done.seconds:.0f} s, "
            f"selected: {done.selected}{kept}"
        )
    if not (done.verified and done.verified_after_rollback):
        raise typer.Exit(1)


class Silent:
    """Nobody listens."""

    def say(self, text: str = "") -> None:
        """Nothing."""

    def command(self, text: str) -> None:
        """Nothing."""

    def rows(self, columns: list[str], rows: list[list[Any]]) -> None:
        """Nothing."""


class Terminal:
    """Plain lines as things happen."""

    def say(self, text: str = "") -> None:
        """One line."""
        import sys

        from harness_cli.commands._show import line

        line(text)
        sys.stdout.flush()

    def command(self, text: str) -> None:
        """A command as a user types it."""
        self.say(f"$ {text}")

    def rows(self, columns: list[str], rows: list[list[Any]]) -> None:
        """A table."""
        from harness_cli.commands._show import table

        table(columns, rows)
