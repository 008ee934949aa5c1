"""One byte form and one name for every JSON value; files written whole or not at all."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec


def canonical_json(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys and no blanks: equal values, equal bytes.

    Numbers that are whole are written as integers, so that 89 and 89.0 share a digest
    (the rule of RFC 8785 §3.2.2.3 for the numbers that occur here). NaN is refused.
    """
    plain = whole_numbers(msgspec.to_builtins(value))
    return json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def whole_numbers(value: Any) -> Any:
    """`value` with every float that is whole turned into an integer, at any depth."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {k: whole_numbers(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [whole_numbers(v) for v in value]
    return value


def sha256(data: bytes) -> str:
    """The hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def file_sha256(path: Path) -> str:
    """The hex SHA-256 of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON."""
    return sha256(canonical_json(value))


def write_atomic(path: Path, data: bytes) -> None:
    """Write whole or not at all: a killed program leaves the old file or none.

    File and folder are synced, so that the name survives a power cut.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write(data)
    except OSError as exc:
        exc.filename = str(path)  # the name that was asked for; a full disk names none
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is streamed and then appears whole, or not at all.

    The temporary file lies beside the target: rename is atomic only within a file system.
    """
    fd, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(part).chmod(0o644)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """One JSON document, indented, with sorted keys and a last newline."""
    text = json.dumps(
        msgspec.to_builtins(value), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    write_atomic(path, text.encode() + b"\n")
