"""Logs that are appended a record at a time and must lose none: openings, decisions, rejections."""

import os
from pathlib import Path


def append_durably(path: Path, data: bytes) -> None:
    """Append whole records; they are on the disk when this returns, a new file's name too."""
    path.parent.mkdir(parents=True, exist_ok=True)
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
