"""Output: data to stdout, everything else to stderr; JSON alone when asked for.

The tables are rich's, without colour or bold type when NO_COLOR is set or stdout is no terminal.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and line feed: what moves a cursor or writes a window's title."""
_NO_COLOUR = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f]|\x1b(?!\[[0-9;]*m)")
"""The same, less colours and what JSON may hold unescaped."""


def emit_json(value: Any) -> None:
    """One JSON document on stdout; an object gets `schema: 1` when it has none."""
    plain = msgspec.to_builtins(value)
    if isinstance(plain, dict):
        plain = {"schema": 1, **plain}
    sys.stdout.write(json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    sys.stdout.flush()


def skipped(exc: Exception, if_locked: str, *, as_json: bool) -> None:
    """What `--if-locked skip` says instead of failing; any other word raises the exception."""
    if if_locked != "skip":
        raise exc
    if as_json:
        emit_json({"skipped": str(exc)})
    note(f"skipped: {exc}")


def line(text: str = "") -> None:
    """One line of data."""
    sys.stdout.write(_shown(text) + "\n")


def note(text: str) -> None:
    """One line beside the data: progress, hints, what was written where."""
    sys.stderr.write(_shown(text) + "\n")
    sys.stderr.flush()


def step_summary(markdown: str) -> None:
    """Markdown for the page of a CI job, where `$GITHUB_STEP_SUMMARY` names its file."""
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    try:
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(markdown)
    except OSError as exc:  # the result stands all the same
        note(f"warning: $GITHUB_STEP_SUMMARY `{target}` cannot be written: {exc.strerror}")


def plain(text: str) -> str:
    """Text of models, tools and viewers for a terminal: no secrets, and nothing that steers it."""
    from harness_cli.store.redact import redact

    return _STEERING.sub(_escaped, redact(text))


def _shown(text: str) -> str:
    return _NO_COLOUR.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"


def interactive() -> bool:
    """A person sits at a terminal that can be asked."""
    return sys.stdin.isatty() and terminal(sys.stdout)


def terminal(stream: Any) -> bool:
    """A terminal that understands escape codes."""
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def colour() -> bool:
    """Colour is welcome on stdout (https://no-color.org: set and not empty means no)."""
    return terminal(sys.stdout) and not os.environ.get("NO_COLOR")


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "") -> None:
    """A table; numbers are aligned to the right, nothing is cut short off a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    filled = [[_cell(c) for c in row] for row in rows]
    numeric = [all(_is_number(r[i]) for r in filled) and bool(filled) for i in range(len(columns))]
    made = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for name, right in zip(columns, numeric, strict=True):
        made.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in filled:
        made.add_row(*(Text(c) for c in row))
    width = None if sys.stdout.isatty() else 200
    styled: Literal["auto"] | None = "auto" if colour() else None
    console = Console(width=width, color_system=styled, highlight=False)
    with console.capture() as captured:
        console.print(made)
    # rich pads every line to the table's width; a pager or a diff should not see that.
    text = "\n".join(row.rstrip() for row in captured.get().splitlines()).strip("\n")
    sys.stdout.write(text + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}"
    return _STEERING.sub(_escaped, str(value))


def _is_number(text: str) -> bool:
    return bool(text) and text.strip("–+-%0123456789.,±×[] ") == ""
