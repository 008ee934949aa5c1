"""Evalsets on disk: a header with frozen digests, and one item a line in a canonical form."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.records.canonical import canonical_json, digest, write_atomic
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.reader import dump_yaml

DEFAULTS = {"channel": "public", "mode": "single", "status": "live"}
COMPACTED = ("request", "expect", "overlay")
"""Parts of an item that a compact line leaves the defaults out of."""


def write_evalset(
    folder: Path,
    header: EvalsetHeader,
    items: Sequence[Item],
    *,
    note: str,
    compact: bool = False,
) -> EvalsetHeader:
    """`evalset.yaml` and `items.jsonl`; the header gets counts and digests per split.

    `compact` leaves out what an item has by default, a third of its bytes; the digest is of the
    lines as they are written.
    """
    plain = [compacted(item) if compact else item for item in items]
    header = msgspec.structs.replace(
        header,
        splits=dict(Counter(item.split for item in items)),
        digests=split_digests(items, compact=compact),
    )
    lines = b"".join(canonical_json(item) + b"\n" for item in plain)
    write_atomic(folder / "items.jsonl", lines)
    text = f"# {note}\n{dump_yaml(_trimmed(header))}"
    write_atomic(folder / "evalset.yaml", text.encode())
    return header


def split_digests(items: Sequence[Item], *, compact: bool = False) -> dict[str, str]:
    """Split → the digest its items have on disk."""
    splits: dict[str, list[Any]] = {}
    for item in items:
        splits.setdefault(item.split, []).append(compacted(item) if compact else item)
    return {name: digest(members) for name, members in splits.items()}


def split_digest(items: Sequence[Item]) -> str:
    """SHA-256 of the canonical JSON of a split's items, in file order."""
    return digest(list(items))


def compacted(item: Item) -> dict[str, Any]:
    """An item without the defaults of its request, expectations and overlay."""
    plain: dict[str, Any] = msgspec.to_builtins(item)
    for part in COMPACTED:
        if part in plain:
            plain[part] = _bare(plain[part])
    return {k: v for k, v in plain.items() if v != {}}


def _bare(value: Any) -> Any:
    """Without empty members and those of `DEFAULTS`; definitions of tools stay as they are."""
    if isinstance(value, list | tuple):
        return [_bare(v) for v in value]
    if not isinstance(value, dict) or "inputSchema" in value:
        return value
    kept = {k: _bare(v) for k, v in value.items()}
    return {k: v for k, v in kept.items() if v not in ("", [], {}, None) and DEFAULTS.get(k) != v}


def _trimmed(header: EvalsetHeader) -> Mapping[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(header)
    unsaid = {"role": "policy", "items_of": None, "states": None}
    return {
        k: v
        for k, v in plain.items()
        if v not in ("", {}, ()) and not (k in unsaid and v == unsaid[k])
    }
