"""Files of labels: JSON lines in the long or the flat form, or CSV with the flat form's columns."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.judges.labels import LabelledReply, LabelRow
from harness_cli.records.item import Item
from harness_cli.records.reader import parse_json, read_text

TABLES = (".csv", ".tsv")
COLUMNS = tuple(n for n in LabelRow.__struct_fields__ if n not in ("tool_results", "actions"))
NUMBERS = ("accuracy", "effectiveness")


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The labelled replies of one file, each with the line where it stands."""

    path: Path
    replies: tuple[LabelledReply, ...]
    places: Mapping[str, str]
    """Id → `file:line` of its first line."""
    without_reply: frozenset[str]
    """Ids whose reply a run has to give."""


def read_labels(path: Path) -> list[LabelledReply]:
    """Every reply of a file that gives the replies itself. Raises `BadFile` with the place."""
    return list(read_label_file(path).replies)


def read_label_file(path: Path) -> LabelFile:
    """The labels of a file; several annotators of one reply come together.

    Raises `BadFile` with the line of what is wrong.
    """
    found: dict[str, LabelledReply] = {}
    flat: set[str] = set()
    places: dict[str, str] = {}
    without: set[str] = set()
    for where, line in _lines(path):
        reply, is_row, bare = line
        before = found.get(reply.id) if is_row and reply.id in flat else None
        wrong = _fault(reply, found) if before is None else _other(before, reply)
        if wrong:
            raise BadFile(f"{where}: {wrong}", hint="docs/judging.md has the format")
        if before is not None:
            reply = msgspec.structs.replace(before, labels=(*before.labels, *reply.labels))
            wrong = _fault(reply, {})
            if wrong:
                raise BadFile(f"{where}: {wrong}")
        found[reply.id] = reply
        places.setdefault(reply.id, where)
        flat |= {reply.id} if is_row else set()
        without |= {reply.id} if bare else set()
    if not found:
        raise BadFile(f"{path}: no labelled reply in it")
    return LabelFile(path, tuple(found.values()), places, frozenset(without))


Line = tuple[LabelledReply, bool, bool]


def _lines(path: Path) -> Iterator[tuple[str, Line]]:
    """Place, and the reply of each line: is it a row, is it one without a reply."""
    text = read_text(path)
    if path.suffix.lower() in TABLES:
        for number, cells in _table(path, text):
            where = f"{path}:{number}"
            row = parse_json(msgspec.json.encode(cells), LabelRow, name=where)
            yield where, (row.labelled(), True, row.reply is None)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        if "labels" in parse_json(line, dict[str, Any], name=where):
            yield where, (parse_json(line, LabelledReply, name=where), False, False)
        else:
            row = parse_json(line, LabelRow, name=where)
            yield where, (row.labelled(), True, row.reply is None)


def _table(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and cells of every row, empty ones left out; numbers as numbers."""
    first = text.partition("\n")[0]
    comma = max(",;\t", key=first.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=comma, strict=True)
    columns = [name.strip() for name in reader.fieldnames or ()]
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or "item_id" not in columns:
        fault = f"no column is named `{unknown[0]}`" if unknown else "no column `item_id`"
        raise BadFile(f"{path}:1: {fault}", hint=f"columns: {', '.join(COLUMNS)}")
    reader.fieldnames = columns
    try:
        for cells in reader:
            if None in cells or None in cells.values():
                raise BadFile(f"{path}:{reader.line_num}: not {len(columns)} cells as line 1 has")
            yield (
                reader.line_num,
                _cells(cells, f"{path}:{reader.line_num}", has="reply" in columns),
            )
    except csv.Error as exc:
        raise BadFile(f"{path}:{reader.line_num}: {exc}") from exc


def _cells(cells: Mapping[str, str], where: str, *, has: bool) -> dict[str, Any]:
    made: dict[str, Any] = {k: v for k, v in cells.items() if v.strip()}
    for name in NUMBERS:
        if name not in made:
            raise BadFile(f"{where}: `{name}` is empty", hint="leave the row out, or grade it")
        try:
            number = float(made[name])
        except ValueError:
            raise BadFile(f"{where}: `{name}` is `{made[name]}`, which is no number") from None
        made[name] = int(number) if name == "accuracy" and number.is_integer() else number
    if "also" in made:
        made["also"] = made["also"].replace(";", " ").split()
    if has:
        made.setdefault("reply", "")  # an empty cell is silence; a missing column is a run's reply
    return made


def _fault(reply: LabelledReply, seen: Mapping[str, LabelledReply]) -> str | None:
    if reply.id in seen:
        return f"`{reply.id}` stands twice"
    if not reply.labels:
        return f"`{reply.id}` has no label"
    for label in reply.labels:
        if label.accuracy not in (0, 1) or label.effectiveness not in (0, 0.5, 1):
            return f"`{reply.id}`: accuracy is 0 or 1, effectiveness 0, 0.5 or 1"
    if len({label.annotator for label in reply.labels}) < len(reply.labels):
        return f"`{reply.id}`: one annotator has labelled it twice"
    return None


def _other(before: LabelledReply, reply: LabelledReply) -> str | None:
    """Why a further row is not another annotator's reading of the same reply."""
    if (before.item_id, before.reply) != (reply.item_id, reply.reply):
        return f"`{reply.id}` stands twice, with two replies: give each an id of its own"
    return None


def with_items(
    replies: Sequence[LabelledReply],
    items: Iterable[Item],
    *,
    places: Mapping[str, str] | None = None,
    evalset: str = "the evalset",
) -> list[LabelledReply]:
    """The replies with the items that they name by id.

    Raises `BadFile` listing those that name another item, each with its place.
    """
    wanted = {r.item_id for r in replies if r.item is None and r.item_id is not None}
    known = {item.id: item for item in items if item.id in wanted}
    strange = [r for r in replies if r.item is None and r.item_id and r.item_id not in known]
    if strange:
        shown = [
            f"{(places or {}).get(r.id, r.id)}: item `{r.item_id}` is none of {evalset}"
            for r in strange[:5]
        ]
        more = [f"… and {len(strange) - 5} more"] if len(strange) > 5 else []
        raise BadFile(
            "\n".join([*shown, *more]),
            hint="--evalset and --split name the items that the labels are of",
        )
    return [
        msgspec.structs.replace(r, item=known[r.item_id])
        if r.item is None and r.item_id is not None
        else r
        for r in replies
    ]
