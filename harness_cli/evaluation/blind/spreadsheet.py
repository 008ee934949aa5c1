"""The sheet as CSV for a spreadsheet, and back.

Replies and comments are text of strangers. A cell that a spreadsheet would take for a formula gets
an apostrophe in front (OWASP, "CSV injection"); what people write into the last three columns is
read back with such an apostrophe taken off.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import BadFile
from harness_cli.evaluation.blind.annotations import AnnotationLog, fault_of
from harness_cli.records.blind import TAGS, Annotation, BlindPair, BlindSheet
from harness_cli.records.reader import read_text

COLUMNS = ("pair", "stratum", "request", "A", "B", "choice", "reason", "tag")
NEEDED = ("pair", "choice", "reason")
FAULTS_SHOWN = 20
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_SPLIT_OFF = re.compile(r"""([;\t][\s"']*)([=+\-@])""")
_WORDS = {"a": "A", "b": "B", "tie": "tie", "t": "tie", "=": "tie"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row that holds a decision."""

    number: int
    pair: str
    choice: str
    reason: str
    tag: str


def export(sheet: BlindSheet, latest: Mapping[str, Annotation]) -> str:
    """The sheet as CSV with what is decided already; identical pairs stand as ties."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    for pair in sheet.pairs:
        made = latest.get(pair.id)
        choice = made.choice if made else ("tie" if pair.identical else "")
        shown = (safe(strangers(t)) for t in (request_text(pair), pair.a.text, pair.b.text))
        said = (choice, made.reason if made else "", made.tag if made else "")
        writer.writerow([pair.id, safe(pair.stratum), *shown, *(safe(cell) for cell in said)])
    return "\ufeff" + out.getvalue()  # with a byte-order mark Excel reads UTF-8


def safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, and without NUL, which CSV cannot hold."""
    text = cell.replace("\0", "\ufffd")
    return f"'{text}" if text.lstrip("'").startswith(_FORMULA) else text


def strangers(text: str) -> str:
    """The same for what a spreadsheet of another locale would split off at `;` or a tab."""
    return _SPLIT_OFF.sub(r"\1'\2", text)


def bring_in(log: AnnotationLog, path: Path) -> tuple[int, int]:
    """Take in an annotated CSV: all of it or, where one row is wrong, nothing.

    Returns how many decisions are new or changed, and how many rows have none yet. Raises
    `BadFile` that names every faulty row with its fix.
    """
    rows, empty = read_rows(path)
    faults = _faults(log.sheet, rows)
    if faults:
        more = len(faults) - FAULTS_SHOWN
        listed = [f"{path.name}: {fault}" for fault in faults[:FAULTS_SHOWN]]
        raise BadFile(
            "\n".join([*listed, *([f"… and {more} more"] if more > 0 else [])]),
            hint="nothing was taken in; mend these rows and import again",
        )
    same = {p.id for p in log.sheet.pairs if p.identical}
    new = 0
    for row in rows:
        known = log.latest.get(row.pair)
        if row.choice == "tie" and known is None and row.pair in same:
            continue
        if known and (known.choice, known.reason, known.tag) == (row.choice, row.reason, row.tag):
            continue
        log.add(row.pair, row.choice, reason=row.reason, tag=row.tag, via="csv")
        new += 1
    return new, empty


def read_rows(path: Path) -> tuple[list[Row], int]:
    """Rows with a decision, and how many have none. Row numbers are those of a spreadsheet."""
    text = read_text(path, name=path.name).removeprefix("\ufeff")
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets of other locales write `;`
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as exc:
        raise BadFile(f"{path.name}: no CSV: {exc}", hint="save the sheet as CSV UTF-8") from exc
    header = [name.strip() for name in lines[0]] if lines else []
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise BadFile(
            f"{path.name}: row 1: no column {', '.join(f'`{m}`' for m in missing)}",
            hint=f"keep the first row of the export: {','.join(COLUMNS)}",
        )
    rows, empty = [], 0
    for number, cells in enumerate(lines[1:], 2):
        if not any(cell.strip() for cell in cells):
            continue
        row = _row(number, dict(zip(header, cells, strict=False)))
        if row.choice or row.reason or row.tag:
            rows.append(row)
        else:
            empty += 1
    return rows, empty


def _row(number: int, named: Mapping[str, str]) -> Row:
    def cell(name: str) -> str:
        text = named.get(name, "").strip()
        guarded = text.startswith("'") and text.lstrip("'").startswith(_FORMULA)
        return text[1:] if guarded else text

    choice = cell("choice")
    return Row(
        number=number,
        pair=cell("pair"),
        choice=_WORDS.get(choice.lower(), choice),
        reason=cell("reason"),
        tag=cell("tag"),
    )


def _faults(sheet: BlindSheet, rows: list[Row]) -> list[str]:
    faults = []
    seen: dict[str, int] = {}
    for row in rows:
        if row.pair in seen:
            faults.append(
                f"row {row.number}: pair `{row.pair}` stands in row {seen[row.pair]} already: "
                "delete one of them"
            )
        seen.setdefault(row.pair, row.number)
        fault = fault_of(sheet, row.pair, row.choice, row.reason, row.tag)
        if fault is not None:
            faults.append(f"row {row.number}: {fault}")
    return faults


def request_text(pair: BlindPair) -> str:
    """History, the host's last words and the comments in one cell."""
    parts = [*pair.history, *(f"host: {said}" for said in pair.anchor), *pair.comments]
    return "\n".join(parts)


def tags_line() -> str:
    """The tags with their meaning, for a person."""
    return "; ".join(f"{name}: {meaning}" for name, meaning in TAGS.items())
