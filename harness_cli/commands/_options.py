"""Options that every verb has, under one spelling."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="JSON only on stdout.")]
Folder = Annotated[
    Path, typer.Option("-C", "--directory", metavar="DIR", help="Run as if started in DIR.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only results.")]
Waits = Annotated[
    Literal["wait", "skip", "fail"],
    typer.Option("--if-locked", help="Where another process switches: wait a minute, or 12."),
]
HERE = Path()


def within(directory: Path, path: Path | None) -> Path | None:
    """A path that was given, as if the program had been started in `directory`."""
    return path and directory / path
