"""Ids of rows: given ones are the file's own, missing ones follow from the place."""

from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.source import name_of


class Ids:
    """Hands out the id of each row. Raises `BadFile` for one that stands twice."""

    def __init__(self) -> None:
        self._met: dict[str, str] = {}

    def of(self, given: Any, number: int, *, where: str) -> str:
        """The id of one row; `None` or empty text is none."""
        if given is None or given == "":
            found = f"row-{number:05d}"
        else:
            found = name_of(given, what="the id", where=where)
        if found in self._met:
            raise BadFile(
                f"{where}: the id `{found}` stands in {self._met[found]} already",
                hint="give every row an id of its own",
            )
        self._met[found] = where
        return found


def slug(text: str, otherwise: str) -> str:
    """A folder name made of a text."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower())
    made = "-".join(part for part in kept.split("-") if part)[:60].strip("-")
    return made or otherwise


def score_of(value: Any, *, where: str) -> float | None:
    """A recorded score between 0 and 1; None where there is none. Raises `BadFile` otherwise."""
    if value is None or value == "":
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise BadFile(f"{where}: the score `{str(value)[:40]}` is not between 0 and 1")
    return number
