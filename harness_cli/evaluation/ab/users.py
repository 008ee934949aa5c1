"""A table of users with their arm: read, and refused with row and fix where it cannot be meant."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.evaluation.ab.metric import Floats, Metric, parse_metric
from harness_cli.evaluation.frames import TextTable, read_text_table

SHOWN = 20
"""Faulty rows that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Users:
    """One row a user."""

    ids: Sequence[str]
    arms: tuple[str, ...]
    """Names of the arms, the control first."""
    arm: NDArray[np.int64]
    """Of each user: index into `arms`."""
    columns: dict[str, Floats]
    metrics: tuple[Metric, ...]

    def sizes(self) -> dict[str, int]:
        """Users of each arm."""
        counts = np.bincount(self.arm, minlength=len(self.arms))
        return {name: int(n) for name, n in zip(self.arms, counts, strict=True)}


def read_users(
    path: Path,
    *,
    user: str,
    arm: str,
    control: str | None,
    metrics: Sequence[str] = (),
) -> Users:
    """Users, arms and the columns that the metrics need; every numeric column by default.

    Raises `BadFile` that names the faulty rows: no id, no arm, a user twice or in two arms, a
    value that is no number, missing, infinite or negative. `UsageError` for one arm alone, or a
    control that is not named.
    """
    table = read_text_table(path, text=(user, arm))
    for name in (user, arm):
        if name not in table.names:
            raise UnknownName.of(f"column in {path.name}", name, table.names)
    if table.rows == 0:
        raise BadFile(f"{path.name}: no user", hint="one row a user")
    faults = [*_empty(table, user, arm), *_twice(table, user, arm)]
    chosen = _metrics(table, metrics, (user, arm))
    columns: dict[str, Floats] = {}
    for name in dict.fromkeys(c for metric in chosen for c in metric.columns):
        columns[name], wrong = _numbers(table, name)
        faults += wrong
    _refuse(path, faults)
    codes, labels = table.codes(arm)
    order = _control_first(labels, control, path.name)
    place = np.empty(len(labels), dtype=np.int64)
    place[[labels.index(name) for name in order]] = np.arange(len(order))
    return Users(table.texts(user), tuple(order), place[codes], columns, chosen)


def _metrics(table: TextTable, wanted: Sequence[str], keys: tuple[str, str]) -> tuple[Metric, ...]:
    columns = [name for name in table.names if name not in keys]
    if wanted:
        return tuple(parse_metric(text, columns) for text in wanted)
    numeric = [name for name in columns if table.is_numeric(name)]
    if not numeric:
        raise UsageError(
            "no column holds numbers",
            hint=f"columns: {', '.join(columns) or 'none beside the key'}",
        )
    return tuple(parse_metric(name, columns) for name in numeric)


def _empty(table: TextTable, user: str, arm: str) -> Iterator[str]:
    for name, what in ((user, "user id"), (arm, "arm")):
        for at in np.flatnonzero(table.empty(name))[: SHOWN + 1]:
            yield f"row {table.row(at)}: no {what} in `{name}`: drop the row or fill it"


def _twice(table: TextTable, user: str, arm: str) -> Iterator[str]:
    """Users that stand in more than one row, with both places."""
    again = np.flatnonzero(table.duplicated(user) & ~table.empty(user))
    if not len(again):
        return
    ids, arms = table.texts(user), table.texts(arm)
    wanted = {ids[at] for at in again[: SHOWN + 1]}
    first: dict[str, int] = {}
    for at, name in enumerate(ids):
        if name in wanted and name not in first:
            first[name] = at
    for at in again[: SHOWN + 1]:
        was = first[ids[at]]
        rows = f"rows {table.row(was)} and {table.row(at)}"
        if arms[was] == arms[at]:
            yield f"{rows}: user `{ids[at]}` stands twice: one row a user, sum a user's rows first"
        else:
            yield (
                f"{rows}: user `{ids[at]}` is in the arms `{arms[was]}` and `{arms[at]}`: "
                "a user belongs to one arm, leave out whoever saw both"
            )


def _numbers(table: TextTable, name: str) -> tuple[Floats, list[str]]:
    values = table.numbers(name)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    faults = [
        f"row {table.row(at)}: `{name}` is {_shown(table, name, at, values[at])}"
        for at in wrong[: SHOWN + 1]
    ]
    return values, faults


def _shown(table: TextTable, name: str, at: int, value: float) -> str:
    if value < 0 and np.isfinite(value):
        return f"{value:g}: a user's total is 0 or more, net refunds within the period"
    if np.isinf(value):
        return "infinite: give the user's total"
    text = table.text(name, at)
    if text in ("", "nan", "NaN", "None", "<NA>"):
        return "missing: write 0 for a user without any"
    return f"`{text}`, no number"


def _refuse(path: Path, faults: list[str]) -> None:
    if not faults:
        return
    more = len(faults) - SHOWN
    listed = [f"{path.name}: {fault}" for fault in faults[:SHOWN]]
    raise BadFile("\n".join([*listed, *(["… and more"] if more > 0 else [])]))


def _control_first(labels: Sequence[str], control: str | None, name: str) -> list[str]:
    """The arms, the control first and the others by name."""
    known = sorted(labels)
    if len(known) < 2:
        raise UsageError(
            f"{name}: all users are in the arm `{known[0]}`: an uplift needs two",
            hint="--arm-column names the column that tells them apart",
        )
    if control is None:
        named = [n for n in known if n.lower() in ("control", "baseline")]
        if len(named) != 1:
            raise UsageError(
                f"which of {', '.join(f'`{k}`' for k in known[:12])} is the control?",
                hint=f"--control {known[0]}",
            )
        control = named[0]
    if control not in known:
        raise UnknownName.of("arm", control, known)
    return [control, *(n for n in known if n != control)]
