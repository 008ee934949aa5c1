"""One file that is imported: opened once, bounded, its bytes mapped rather than read.

Imported text is data of strangers: what is no regular file, too large, in another encoding or
nested without end is refused with its place, before anything is written.
"""

import hashlib
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.decode_fixes import fix_for

MOST_BYTES = 4 << 30
RECORD_BYTES = 64 << 20
"""Of one record (a simulation, a conversation, a row): more is no record of anything."""
RECODED_BYTES = 256 << 20
"""Files that are not UTF-8 are recoded in memory up to here."""
NAME_CHARACTERS = 300

T = TypeVar("T")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of one file, UTF-8 without a byte-order mark where they are text."""

    path: Path
    name: str
    """How messages call it: its last part."""
    data: "mmap.mmap | bytes"
    start: int = 0
    """Where the text begins: behind a byte-order mark."""

    @property
    def head(self) -> bytes:
        """The first bytes, for telling what kind of file it is."""
        return bytes(self.data[self.start : self.start + 4096])

    @property
    def size(self) -> int:
        """Bytes of the whole."""
        return len(self.data)

    def sha256(self) -> str:
        """The hex SHA-256 of the bytes as they were mapped."""
        total = hashlib.sha256()
        for at in range(0, len(self.data), _PIECE):
            total.update(self.data[at : at + _PIECE])
        return total.hexdigest()

    def at(self, start: int, end: int, what: str) -> bytes:
        """The bytes of one record. Raises `BadFile` for one without measure."""
        if end - start > RECORD_BYTES:
            raise BadFile(
                f"{self.name}: {what} has {end - start:,} bytes, more than {RECORD_BYTES:,}",
                hint="split the file, or leave that record out",
            )
        return bytes(self.data[start:end])

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Line number and bytes of every line that is not blank."""
        start, number = self.start, 0
        while start < len(self.data):
            end = self.data.find(b"\n", start)
            end = len(self.data) if end < 0 else end
            number += 1
            line = self.at(start, end, f"line {number}")
            if line.strip():
                yield number, line
            start = end + 1

    def text(self, *, most: int) -> str:
        """The whole as text, for formats that cannot be read in parts."""
        if self.size > most:
            raise BadFile(
                f"{self.name}: {self.size:,} bytes, more than {most:,}", hint="split the file"
            )
        try:
            text = bytes(self.data[self.start :]).decode("utf-8")
        except UnicodeDecodeError as exc:
            raise not_utf8(f"{self.name}: byte {exc.start + self.start}") from exc
        return text.replace("\r\n", "\n").replace("\r", "\n")


@contextmanager
def opened(path: Path) -> Iterator[Source]:
    """The file, mapped. Raises `BadFile` for what is no readable, regular, bounded file."""
    shown = path.name or str(path)
    try:
        if path.is_dir():
            raise BadFile(f"`{path}` is a folder, not a file")
        if not path.is_file():  # a pipe or a device would be read for ever
            raise BadFile(f"no file `{path}`", hint="name a regular file")
        with path.open("rb") as file:
            yield _mapped(path, shown, file)
    except OSError as exc:
        raise BadFile(f"`{path}` cannot be read: {exc.strerror}") from exc
    except ValueError as exc:  # a NUL in the name
        raise BadFile(f"`{shown!r}` names no file") from exc


def _mapped(path: Path, name: str, file: Any) -> Source:
    size = path.stat().st_size
    if size == 0:
        raise BadFile(f"{name}: the file is empty")
    if size > MOST_BYTES:
        raise BadFile(f"{name}: {size:,} bytes, more than {MOST_BYTES:,}", hint="split the file")
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    head = data[:4]
    if head[:3] == b"\xef\xbb\xbf":
        return Source(path, name, data, 3)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Source(path, name, _recoded(name, data))
    return Source(path, name, data)


def _recoded(name: str, data: "mmap.mmap") -> bytes:
    """UTF-16 with its mark, as some spreadsheets write it, in UTF-8."""
    if len(data) > RECODED_BYTES:
        raise BadFile(f"{name}: {len(data):,} bytes of UTF-16", hint="save the file as UTF-8")
    try:
        return bytes(data).decode("utf-16").encode("utf-8")
    except UnicodeError as exc:
        raise BadFile(f"{name}: no whole UTF-16", hint="save the file as UTF-8") from exc


def not_utf8(where: str) -> BadFile:
    """The error for text in another encoding."""
    return BadFile(f"{where} is not UTF-8", hint="save the file as UTF-8")


def decoded(data: bytes, kind: type[T], *, where: str) -> T:
    """One record's JSON. Raises `BadFile` with `where`, the field, and the fix."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as exc:
        message, _, path = str(exc).partition(" - at `$")
        at = f" at `{path.rstrip('`').lstrip('.')}`" if path else ""
        raise BadFile(f"{where}: {message}{at}", hint=_fix(message, kind)) from exc
    except msgspec.DecodeError as exc:
        raise _no_json(data, where, exc) from exc
    except RecursionError as exc:
        raise BadFile(f"{where}: nested too deeply", hint="no such file is written") from exc


def _fix(message: str, kind: Any) -> str | None:
    if "out of range" in message:
        return "the number is too large to mean anything: correct or remove it"
    return fix_for(message, kind, []) or None


def _no_json(data: bytes, where: str, exc: Exception) -> BadFile:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        return not_utf8(f"{where}: byte {wrong.start}")
    return BadFile(f"{where}: {exc}", hint="the file is cut short or no JSON")


def name_of(value: Any, *, what: str, where: str) -> str:
    """A name or id as text. Raises `BadFile` for what names nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadFile(f"{where}: {what} must be a text or a whole number", hint="give it a name")
    try:
        text = str(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        text = "9" * (NAME_CHARACTERS + 1)
    if not text or text != text.strip() or len(text) > NAME_CHARACTERS:
        raise BadFile(
            f"{where}: {what} must be a text of 1 to {NAME_CHARACTERS} characters, no blanks around"
        )
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise BadFile(f"{where}: {what} holds a control character", hint="take it out")
    return text
