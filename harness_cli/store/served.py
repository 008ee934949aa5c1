"""Serving logs on disk: written a whole line at a time, read with what is damaged named."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.served import Served
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.appending import append_durably
from harness_cli.store.redact import redact_value

FOLDER = ".harness/served"
SUFFIX = ".jsonl"
LINE_LIMIT = 1 << 26
"""Bytes of one line: a longer one is no rollout, and would be read into memory whole."""
_decode = msgspec.json.Decoder(Served).decode


class BadLine(NamedTuple):
    """A line that cannot be counted: `place` is `file:line`."""

    place: str
    problem: str


def append_served(path: Path, trajectory: Trajectory, *, at: datetime | None = None) -> None:
    """One more answered request at the end of a log, keys redacted; on disk when this returns."""
    when = (at or datetime.now(UTC)).isoformat(timespec="milliseconds")
    line = msgspec.to_builtins(Served(at=when, trajectory=trajectory))
    append_durably(path, msgspec.json.encode(redact_value(line)) + b"\n")


def served_logs(root: Path, named: Sequence[Path]) -> list[Path]:
    """The named files, and the logs in named folders; those of the project where none is named."""
    found: list[Path] = []
    for path in named:
        inside = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not inside or not inside[0].is_file():
            raise UsageError(f"no serving log `{path}`", hint="`harness run --log FILE` writes one")
        found += inside
    return found if named else sorted((root / FOLDER).glob(f"*{SUFFIX}"))


def read_served(path: Path) -> Iterator[Served | BadLine]:
    """Every line in order, in constant memory.

    A last line without its end is being written at this moment, and is left out.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_LIMIT):
            number += 1
            place = f"{path.name}:{number}"
            if not line.endswith(b"\n"):
                if len(line) < LINE_LIMIT:
                    return
                yield BadLine(place, f"longer than {LINE_LIMIT >> 20} MiB")
                while (rest := file.readline(LINE_LIMIT)) and not rest.endswith(b"\n"):
                    pass
            elif line.strip():
                yield _line(line, place)


def _line(data: bytes, place: str) -> Served | BadLine:
    try:
        found = _decode(data)
        found.moment()
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        return BadLine(place, str(exc))
    if found.schema != 1:
        return BadLine(place, f"schema {found.schema} is not known, this is 1")
    return found
