"""JSONL and CSV: a row is an item, and where it holds an answer, a rollout of it.

Rows that are items of ours already (`request`) are taken as they are.
"""

import csv
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.conversation import Turn
from harness_cli.evaluation.imports.ids import Ids, score_of, slug
from harness_cli.evaluation.imports.imported import RECORDED, Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.openai_messages import trajectory_of
from harness_cli.evaluation.imports.promptfoo_asserts import Asserts
from harness_cli.evaluation.imports.promptfoo_files import FIELD, Folder
from harness_cli.evaluation.imports.source import Source, decoded, not_utf8
from harness_cli.harness.filling import Filling
from harness_cli.records.item import Assertion, EvalsetHeader, Item
from harness_cli.records.request import Comment, Request, Room

ASKED = ("prompt", "input", "question", "query")
SAID = ("reply", "response", "output", "completion")
WANTED = {"expected": "equals", "target": "equals", "contains": "icontains"}
"""Column → the assertion that it becomes; `__expected` is promptfoo's short form."""
OURS = {
    *ASKED, *SAID, *WANTED, "id", "comment", "viewer", "room", "products", "current_link",
    "category", "tags", "split", "score", "repeat",
}  # fmt: skip


class Row(NamedTuple):
    """One row as it was understood."""

    item: Item
    reply: str | None
    score: float | None


def read(source: Source, options: ImportOptions) -> Imported:
    """The items of a table, and its answers. Raises `BadFile` with the line of what is wrong."""
    asserts = Asserts(Folder(source.path.parent), Filling())
    items: list[Item] = []
    answered = scored = live = 0
    extra: dict[str, None] = {}
    for row in _rows(source, asserts, extra):
        items.append(row.item)
        answered += row.reply is not None
        scored += row.score is not None
        live += bool(row.item.request.comments)
    if not items:
        raise BadFile(f"{source.name}: there is no row")
    if 0 < live < len(items):
        raise BadFile(
            f"{source.name}: {live} rows hold comments of a live room, the others bare prompts",
            hint="import them as two evalsets",
        )
    by_id = {item.id: item for item in items}
    policy = options.policy or source.path.stem
    policy_id = f"{policy}@{RECORDED}"

    def rollouts() -> Iterator[Recorded]:
        again = Asserts(Folder(source.path.parent), Filling())
        for row in _rows(source, again, {}):
            if row.reply is not None:
                yield _recorded(row, by_id[row.item.id], policy_id)

    notes = []
    if extra:
        notes.append(f"columns without a meaning here: {', '.join(list(extra)[:10])}")
    if answered and not scored:
        notes.append("the file records no score: --rescore gives one")
    return Imported(
        kind="jsonl" if _is_json(source) else "csv",
        header=EvalsetHeader(
            name=options.name or slug(source.path.stem, "rows"),
            provenance=f"rows of {source.name}",
            agent="harness" if live else "bare",
            metrics=("accuracy", "effectiveness", "avg") if live else ("passed",),
            judge="grounded" if live else "none",
            catalogue="catalogue" if live else None,
        ),
        items=tuple(items),
        rollouts=rollouts if answered else None,
        policy=policy,
        policy_id=policy_id,
        simulator=options.simulator or "",
        judge_id=f"{RECORDED}@rows",
        notes=tuple(notes),
        unsupported=tuple(asserts.unsupported),
    )


def _rows(source: Source, asserts: Asserts, extra: dict[str, None]) -> Iterator[Row]:
    ids = Ids()
    for number, (where, row) in enumerate(_plain(source), 1):
        if "request" in row:
            item = decoded(msgspec.json.encode(row), Item, where=where)
            ids.of(item.id, number, where=where)
            yield Row(item, None, None)
            continue
        extra.update(dict.fromkeys(k for k in row if k not in OURS and not k.startswith("__")))
        item_id = ids.of(row.get("id"), number, where=where)
        item = _item(item_id, row, asserts, where)
        said = next((row[k] for k in SAID if isinstance(row.get(k), str)), None)
        yield Row(item, said, score_of(row.get("score"), where=where))


def _is_json(source: Source) -> bool:
    """An object a line, whatever the file is called; else it is a table."""
    return source.head.lstrip()[:1] == b"{"


def _plain(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and cells of every row."""
    if not _is_json(source):
        yield from _cells(source)
        return
    for number, line in source.lines():
        where = f"{source.name}:{number}"
        row = decoded(line, dict[str, Any], where=where)
        yield where, row


def _cells(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(FIELD)
    reader = csv.reader(_lines(source), strict=True)
    columns: list[str] = []
    try:
        for cells in reader:
            where = f"{source.name}:{reader.line_num}"
            if not columns:
                columns = [c.strip() for c in cells]
                if len(set(columns)) < len(columns) or not all(columns):
                    raise BadFile(f"{where}: every column needs a name of its own")
            elif len(cells) > len(columns):
                raise BadFile(
                    f"{where}: {len(cells)} cells in a row of {len(columns)} columns",
                    hint="put cells that hold a comma in quotes",
                )
            elif any(c.strip() for c in cells):
                yield where, dict(zip(columns, cells, strict=False))
    except csv.Error as exc:
        raise BadFile(
            f"{source.name}:{reader.line_num}: {exc}", hint="is a quote never closed?"
        ) from exc


def _lines(source: Source) -> Iterator[str]:
    """Lines with their ends, as the csv module needs them for cells of several lines."""
    at, number = source.start, 0
    while at < source.size:
        end = source.data.find(b"\n", at)
        end = source.size if end < 0 else end + 1
        number += 1
        try:
            yield source.at(at, end, f"line {number}").decode("utf-8")
        except UnicodeDecodeError as exc:
            raise not_utf8(f"{source.name}:{number}") from exc
        at = end


def _item(item_id: str, row: dict[str, Any], asserts: Asserts, where: str) -> Item:
    return Item(
        id=item_id,
        split=str(row.get("split") or "dev"),
        category=str(row.get("category") or "uncategorised"),
        request=_request(row, where),
        assert_=tuple(_asserts(row, asserts, where)),
        tags=_listed(row.get("tags")),
    )


def _request(row: dict[str, Any], where: str) -> Request:
    if row.get("comment"):
        link = row.get("current_link")
        try:
            current = int(link) if link not in (None, "") else None
        except (TypeError, ValueError):
            raise BadFile(f"{where}: `current_link` must be a whole number") from None
        return Request(
            comments=(Comment(viewer=str(row.get("viewer") or "v1"), text=str(row["comment"])),),
            room=Room(
                id=str(row.get("room") or ""),
                current_link=current,
                products=_listed(row.get("products")),
            ),
        )
    asked = next((row[k] for k in ASKED if row.get(k)), None)
    if not isinstance(asked, str):
        raise BadFile(
            f"{where}: the row asks nothing",
            hint=f"a column {', '.join(ASKED)} for a bare prompt, or `comment` for a live room",
        )
    return Request(prompt=asked)


def _asserts(row: dict[str, Any], asserts: Asserts, where: str) -> Iterator[Assertion]:
    for column, kind in WANTED.items():
        value = row.get(column)
        if value is not None and value != "":
            yield Assertion(type=kind, value=value)
    for column, value in row.items():
        if column.startswith("__expected") and str(value or "").strip():
            yield asserts.short(str(value), where=f"{where}: {column}")


def _listed(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(str(v) for v in value)
    parts = str(value or "").replace(";", ",").split(",")
    return tuple(p.strip() for p in parts if p.strip())


def _recorded(row: Row, item: Item, policy_id: str) -> Recorded:
    turns = [
        Turn(role="user", content=item.request.prompt or item.request.comments[0].text),
        Turn(role="assistant", content=row.reply),
    ]
    return Recorded(
        item_id=item.id,
        trajectory=trajectory_of(turns, item_id=item.id, policy_id=policy_id),
        scores={} if row.score is None else {"score": row.score},
    )
