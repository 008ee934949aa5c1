"""A data set as a folder: its files, what was left out, its card. `manifest.json` comes last.

Every file appears whole or not at all; a folder without a manifest is no data set yet.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, get_args

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.plan import run_versions
from harness_cli.records.canonical import atomic_file, sha256, write_atomic, write_json
from harness_cli.records.training import DataCard, DataFile, LeftOut, StudentName
from harness_cli.training.rl_items import TASKS

MANIFEST, LEFT_OUT, README = "manifest.json", "left_out.jsonl", "README.md"
COMMON = (MANIFEST, LEFT_OUT, README)
OWN = {
    "sft": {f"{s}{end}" for s in get_args(StudentName) for end in (".jsonl", ".tokens.jsonl")}
    | {"teacher", "states"},
    "prefs": {"prefs.jsonl"},
    "rl-tasks": {TASKS},
}
"""Kind of a data set → what its folder holds beside the common files."""
OWN_FOLDER = (
    "-o names a folder of its own: a new one, or that of an earlier export of the same kind"
)
_encode = msgspec.json.Encoder().encode
"""Keys are not sorted: parameters of tools and arguments of calls stay in the order shown."""


def lines_of(rows: Iterable[Any]) -> bytes:
    """Rows as JSON lines: equal rows, equal bytes."""
    return b"".join(_encode(row) + b"\n" for row in rows)


class Streamed:
    """A file that is written row by row: what a million rows need is one of them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._rows = self._bytes = 0
        self._longest: int | None = None
        self._trained: int | None = None

    def add(self, row: Any, *, tokens: int | None = None, trained: int = 0) -> None:
        """One row, of so many tokens where it holds tokens."""
        data = _encode(row) + b"\n"
        self._file.write(data)
        self._digest.update(data)
        self._rows += 1
        self._bytes += len(data)
        if tokens is not None:
            self._longest = max(self._longest or 0, tokens)
            self._trained = (self._trained or 0) + trained

    @property
    def written(self) -> DataFile:
        """What has been written so far."""
        return DataFile(
            rows=self._rows,
            sha256=self._digest.hexdigest(),
            bytes=self._bytes,
            longest=self._longest,
            trained=self._trained,
        )


@contextmanager
def streamed(path: Path) -> Iterator[Streamed]:
    """A file of rows that appears whole when the block ends, or not at all when it raises."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        yield Streamed(file)


def refuse_foreign(folder: Path, kind: str) -> None:
    """Raise `UsageError` where a folder holds what no data set of this kind does.

    A data set takes its folder over: it replaces its files and removes rows of an earlier one.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"`{folder}` is no folder", hint=OWN_FOLDER)
    there = sorted(p.name for p in folder.iterdir()) if folder.exists() else []
    for name in there:
        if not (name.startswith(".") or name in COMMON or name in OWN[kind]):
            raise UsageError(
                f"`{folder}` holds `{name}`, which is of no {kind} data", hint=OWN_FOLDER
            )


def unfinished(folder: Path) -> None:
    """Take the manifest away: until there is a new one the folder is no data set."""
    (folder / MANIFEST).unlink(missing_ok=True)


def write_data_set(
    folder: Path,
    card: DataCard,
    files: Mapping[str, Sequence[Any]],
    left_out: Sequence[LeftOut],
    *,
    reading: str,
    written: Mapping[str, DataFile] | None = None,
) -> DataCard:
    """Write rows, what was left out, README and manifest; gives back the card with its files.

    `reading` is the part of the README on how the files are read; `written` are files that stand
    there already.
    """
    refuse_foreign(folder, card.kind)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished(folder)
    made = dict(written or {})
    for name, rows in {**files, LEFT_OUT: left_out}.items():
        data = lines_of(rows)
        write_atomic(folder / name, data)
        made[name] = DataFile(rows=len(rows), sha256=sha256(data), bytes=len(data))
    for stale in folder.glob("*.jsonl"):
        if stale.name not in made:
            stale.unlink()
    card = msgspec.structs.replace(card, files=made, versions=run_versions())
    write_atomic(folder / README, readme(card, reading).encode())
    write_json(folder / MANIFEST, card)
    return card


def readme(card: DataCard, reading: str) -> str:
    """The card for people: where it comes from, what is in it, what is not, how it is read."""
    facts = [
        ("evalset", f"{card.evalset}, split {card.split} ({card.evalset_digest[:16]})"),
        ("harness", card.harness[:16]),
        ("augmented states", ", ".join(card.states)),
        ("teacher", card.teacher),
        ("judge", card.judge),
        ("policy", card.policy),
        ("runs", ", ".join(card.runs)),
        ("looked at", str(card.candidates)),
    ]
    lines = [f"# {card.kind} data of `{card.evalset}`", ""]
    lines += [f"- {name}: {value}" for name, value in facts if value]
    lines += ["", "| file | rows | sha256 |", "| --- | --- | --- |"]
    lines += [f"| `{n}` | {f.rows} | `{f.sha256[:16]}` |" for n, f in card.files.items()]
    lines += ["", f"Left out, each with its reason in `{LEFT_OUT}`:", ""]
    lines += [f"- {reason}: {count}" for reason, count in card.left_out.items()] or ["- nothing"]
    lines += ["", *(f"> {note}\n" for note in card.notes), reading.strip(), ""]
    return "\n".join(lines)


def counted_reasons(left_out: Iterable[LeftOut]) -> dict[str, int]:
    """Reason → how often, by name."""
    found: dict[str, int] = {}
    for one in left_out:
        found[one.reason] = found.get(one.reason, 0) + 1
    return dict(sorted(found.items()))
