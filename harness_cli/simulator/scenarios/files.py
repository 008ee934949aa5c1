"""Evalsets on disk: a header with frozen digests, and one item a line in a canonical form."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness_cli.records.canonical import canonical_json, digest, write_atomic
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import dump_yaml


def write_evalset(
    folder: Path, header: EvalsetHeader, items: Sequence[Item], *, note: str
) -> EvalsetHeader:
    """`evalset.yaml` and `items.jsonl`; the header gets counts and digests per split."""
    splits: dict[str, list[Item]] = {}
    for item in items:
        splits.setdefault(item.split, []).append(item)
    header = msgspec.structs.replace(
        header,
        splits={name: len(members) for name, members in splits.items()},
        digests={name: split_digest(members) for name, members in splits.items()},
    )
    lines = b"".join(canonical_json(item) + b"\n" for item in items)
    write_atomic(folder / "items.jsonl", lines)
    text = f"# {note}\n{dump_yaml(_trimmed(header))}"
    write_atomic(folder / "evalset.yaml", text.encode())
    return header


def split_digest(items: Sequence[Item]) -> str:
    """SHA-256 of the canonical JSON of a split's items, in file order."""
    return digest(list(items))


def _trimmed(header: EvalsetHeader) -> Mapping[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(header)
    unsaid = {"role": "policy", "items_of": None}
    return {
        k: v
        for k, v in plain.items()
        if v not in ("", {}, ()) and not (k in unsaid and v == unsaid[k])
    }
