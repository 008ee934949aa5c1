"""What is measured of a user: `gmv`, `orders/visits`, `turns>1`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness_cli.errors import UnknownName, UsageError

Floats = NDArray[np.float64]
Kind = Literal["mean", "ratio", "share"]
_SHARE = re.compile(r"(?P<column>.+?)\s*(?P<relation>>=|>|==|=)\s*(?P<bound>[0-9.]+)")


@dataclass(frozen=True, slots=True)
class Metric:
    """One per-user metric: Σ numerator / Σ denominator over the users of an arm."""

    name: str
    kind: Kind
    column: str
    below: str | None = None
    """Denominator of a ratio; else every user counts 1."""
    relation: str = ""
    bound: float = 0.0

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (self.column,) if self.below is None else (self.column, self.below)

    def rows(self, columns: Mapping[str, Floats]) -> Floats:
        """(numerator, denominator) of every user, shape (users, 2)."""
        values = columns[self.column]
        if self.kind == "share":
            values = _RELATIONS[self.relation](values, self.bound).astype(np.float64)
        below = np.ones(len(values)) if self.below is None else columns[self.below]
        return np.column_stack([values, below])


_RELATIONS = {">": np.greater, ">=": np.greater_equal, "=": np.equal, "==": np.equal}


def parse_metric(text: str, columns: Sequence[str]) -> Metric:
    """A metric by its name: a column (mean per user), `A/B` (ratio of sums), `A>k` (share).

    A text that is a column's whole name is that column. Raises `UnknownName` for other columns.
    """
    if text in columns:
        return Metric(name=text, kind="mean", column=text)
    found = _SHARE.fullmatch(text)
    if found is not None:
        column = _known(found["column"], columns)
        return Metric(
            name=text,
            kind="share",
            column=column,
            relation=found["relation"],
            bound=_bound(text, found["bound"]),
        )
    above, mark, below = text.partition("/")
    if mark:
        names = _known(above.strip(), columns), _known(below.strip(), columns)
        return Metric(name=text, kind="ratio", column=names[0], below=names[1])
    raise UnknownName.of("column", text, columns)


def _known(name: str, columns: Sequence[str]) -> str:
    if name not in columns:
        raise UnknownName.of("column", name, columns)
    return name


def _bound(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise UsageError(f"`{text}`: `{number}` is no number", hint="turns>1") from None
