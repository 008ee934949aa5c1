"""Logs that are appended a record at a time and must lose none: openings, decisions, rejections."""

import os
from pathlib import Path

LINE_LIMIT = 1 << 24
"""Bytes at the end in which a line that was cut short is looked for."""


def append_durably(path: Path, data: bytes, *, mend: bool = False) -> None:
    """Append whole records; they are on the disk when this returns, a new file's name too.

    `mend` first takes away a last line that a kill cut short: for logs of one writer at a time.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if mend and path.exists():
        _take_torn_away(path)
    fresh = not path.exists()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, data[written:])
        os.fsync(fd)
    finally:
        os.close(fd)
    if fresh:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _take_torn_away(path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LINE_LIMIT))
        tail = file.read()
        if not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
