"""Users into arms, row by row: a CSV goes through in constant memory."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.stats.online import arm_at, bucket, checked_shares

ADDED = ("arm", "bucket")


def assigned(
    lines: Iterable[str], *, name: str, user: str, salt: str, shares: Mapping[str, float]
) -> Iterator[tuple[list[str], str | None]]:
    """The header, then every row with its arm and bucket; beside each row its arm.

    A user beyond all shares has no arm. The same user id and salt give the same arm anywhere and
    at any time. Raises `BadFile` with the line for a row that is none, `UnknownName` for a user
    column that is not there.
    """
    rows = csv.reader(lines, strict=True)
    header = next(_safe(rows, name), None)
    if header is None:
        raise BadFile(f"{name}: empty", hint="the first row names the columns")
    header[0] = header[0].removeprefix("\ufeff")
    if user not in header:
        raise UnknownName.of(f"column in {name}", user, header)
    taken = [column for column in ADDED if column in header]
    if taken:
        raise UsageError(
            f"{name} has a column `{taken[0]}` already", hint="drop it, or assign from the users"
        )
    at, ends = header.index(user), checked_shares(shares)
    yield [*header, *ADDED], None
    for row in _safe(rows, name):
        if len(row) != len(header):
            raise BadFile(
                f"{name}:{rows.line_num}: {len(row)} cells, the header has {len(header)}",
                hint="quote cells that hold a comma",
            )
        if not row[at].strip():
            raise BadFile(f"{name}:{rows.line_num}: no user id", hint="drop the row or fill it")
        place = bucket(row[at], salt)
        arm = arm_at(place, ends)
        yield [*row, arm or "", f"{place:.9f}"], arm


def write_assigned(
    source: Iterable[str],
    target: IO[str],
    *,
    name: str,
    user: str,
    salt: str,
    shares: Mapping[str, float],
) -> Counter[str]:
    """Stream rows with their arms; how many users each arm got, `""` for none."""
    writer = csv.writer(target, lineterminator="\n")
    counts: Counter[str] = Counter()
    made = assigned(source, name=name, user=user, salt=salt, shares=shares)
    writer.writerow(next(made)[0])
    for row, arm in made:
        writer.writerow(row)
        counts[arm or ""] += 1
    return counts


def _safe(rows: Iterator[list[str]], name: str) -> Iterator[list[str]]:
    """Rows that are not blank; what is no CSV or no UTF-8 gets its line."""
    while True:
        try:
            row = next(rows, None)
        except csv.Error as exc:
            line = getattr(rows, "line_num", 0)
            raise BadFile(f"{name}:{line}: no CSV: {exc}", hint="save it as CSV UTF-8") from exc
        except UnicodeDecodeError as exc:
            raise BadFile(f"{name}: no UTF-8: {exc.reason}", hint="save it as UTF-8") from exc
        if row is None:
            return
        if row:
            yield row
