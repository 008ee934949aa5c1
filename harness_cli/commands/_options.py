"""Options that every verb has, under one spelling."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from harness_cli.errors import UsageError

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


def target(directory: Path, path: Path | None) -> Path | None:
    """The same of a file that is written at the end: its folder is there, and it is none itself.

    Raises `UsageError` before anything is spent on what could not be written.
    """
    found = within(directory, path)
    if found is not None and found.is_dir():
        raise UsageError(f"`{path}` is a folder", hint="name a file in it")
    if found is not None:
        found.parent.mkdir(parents=True, exist_ok=True)
    return found
