"""A data set as a folder: its files, what was left out, its card. `manifest.json` comes last.

Every file appears whole or not at all; a folder without a manifest is no data set yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.evaluation.plan import run_versions
from harness_cli.records.canonical import sha256, write_atomic, write_json
from harness_cli.records.training import DataCard, DataFile, LeftOut

MANIFEST, LEFT_OUT, README = "manifest.json", "left_out.jsonl", "README.md"
_encode = msgspec.json.Encoder().encode
"""Keys are not sorted: parameters of tools and arguments of calls stay in the order shown."""


def lines_of(rows: Iterable[Any]) -> bytes:
    """Rows as JSON lines: equal rows, equal bytes."""
    return b"".join(_encode(row) + b"\n" for row in rows)


def write_data_set(
    folder: Path,
    card: DataCard,
    files: Mapping[str, Sequence[Any]],
    left_out: Sequence[LeftOut],
    *,
    reading: str,
    lengths: Mapping[str, tuple[int, int]] | None = None,
) -> DataCard:
    """Write rows, what was left out, README and manifest; gives back the card with its files.

    `reading` is the part of the README on how the files are read; `lengths` are (longest row,
    tokens with loss) of tokenised files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    made: dict[str, DataFile] = {}
    for name, rows in {**files, LEFT_OUT: left_out}.items():
        data = lines_of(rows)
        write_atomic(folder / name, data)
        longest, trained = (lengths or {}).get(name, (None, None))
        made[name] = DataFile(
            rows=len(rows), sha256=sha256(data), bytes=len(data), longest=longest, trained=trained
        )
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
