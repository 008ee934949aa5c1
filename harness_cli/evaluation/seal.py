"""Sealed splits: who opened one, when and why, logged before the first item is handed out.

The log (`evalsets/seal.log.jsonl`) is append-only and belongs into version control: an edit to the
harness that is made after a line of it is marked (TR §5.5, METHODS §8).
"""

import socket
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.reader import parse_json
from harness_cli.store.appending import append_durably
from harness_cli.store.state import user_name


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log."""

    at: str
    by: str
    why: str
    evalset: str
    split: str
    digest: str


def needs_reason(evalset: str, split: str, reason: str | None) -> str:
    """The reason, or a refusal that says how to give one."""
    if reason and reason.strip():
        return reason.strip()
    raise UsageError(
        f"the split `{split}` of `{evalset}` is sealed",
        hint='opening it is logged for good: say why with --reason "…"',
    )


def log_opening(log: Path, *, evalset: str, split: str, digest: str, reason: str) -> None:
    """Append one opening; it is on the disk when this returns."""
    opening = Opening(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        by=f"{user_name()}@{socket.gethostname()}",
        why=reason,
        evalset=evalset,
        split=split,
        digest=digest,
    )
    append_durably(log, msgspec.json.encode(opening) + b"\n")


def openings(log: Path) -> list[Opening]:
    """Every opening so far, oldest first."""
    if not log.exists():
        return []
    lines = log.read_bytes().splitlines()
    return [
        parse_json(line, Opening, name=f"{log.name}:{n}")
        for n, line in enumerate(lines, 1)
        if line.strip()
    ]
