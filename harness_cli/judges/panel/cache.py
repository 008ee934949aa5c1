"""Votes kept by what they rest on, under the project's `.harness/verdicts/`: nobody pays twice.

One file a judge, one line a vote: `<key> <sha256 of the rest> <json>`. Lines are appended in one
write, so programs side by side keep whole lines; one cut short by a kill, or changed on disk, fails
its checksum and is no vote. In memory there is where each line lies, not what it says.
"""

import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness_cli.records.canonical import sha256
from harness_cli.records.verdict import Vote

log = logging.getLogger("harness.judges")
_decode = msgspec.json.Decoder(Vote).decode
_encode = msgspec.json.Encoder(order="deterministic").encode
_HEX = 64
"""Characters of a key and of a checksum."""


class VoteCache:
    """The votes of one file. Nothing is read before the first look."""

    def __init__(self, path: Path, clean: Callable[[str], str] = str) -> None:
        self.path = path
        self._clean = clean
        """Takes secrets out of what is written."""
        self._places: dict[str, tuple[int, int]] | None = None
        """Key → offset and length of what follows it in its last line."""
        self._fd: int | None = None
        self.damaged = 0

    def get(self, key: str) -> Vote | None:
        """The vote under a key; None where there is none or what stands there is damaged."""
        place = self._known().get(key)
        if place is None:
            return None
        try:
            return _vote(os.pread(self._open(), place[1], place[0]))
        except (OSError, ValueError, msgspec.DecodeError):
            self._known().pop(key, None)
            self._warn(1)
            return None

    def put(self, key: str, vote: Vote) -> None:
        """Keep a vote. A disk that takes it not costs the next run a call, nothing else."""
        data = self._clean(_encode(vote).decode()).encode()
        kept = sha256(data).encode() + b" " + data
        try:
            start = self._append(key.encode() + b" " + kept + b"\n")
        except OSError as exc:
            log.warning("the vote cache `%s` cannot be written: %s", self.path.name, exc.strerror)
            return
        self._known()[key] = (start + _HEX + 1, len(kept))

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        return self._fd

    def _append(self, line: bytes) -> int:
        """Write a line at the end of the file; where it begins."""
        fd = self._open()
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            start = os.fstat(fd).st_size
            # What a killed program left without its end gets one, so that this line stands alone.
            if start and os.pread(fd, 1, start - 1) != b"\n":
                start += os.write(fd, b"\n")
            os.write(fd, line)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
        return start

    def _known(self) -> dict[str, tuple[int, int]]:
        """Key → where its last line lies; what the line says is checked when it is asked for."""
        if self._places is None:
            self._places, broken, start = {}, 0, 0
            for line in _lines(self.path):
                end = len(line.rstrip(b"\n"))
                if end > 2 * _HEX + 2 and line[_HEX : _HEX + 1] == b" ":
                    key = line[:_HEX].decode("ascii", "replace")
                    self._places[key] = (start + _HEX + 1, end - _HEX - 1)
                elif end:
                    broken += 1
                start += len(line)
            self._warn(broken)
        return self._places

    def _warn(self, count: int) -> None:
        if count:
            self.damaged += count
            log.warning(
                "%d damaged entries of the vote cache `%s` are ignored", count, self.path.name
            )


def _vote(kept: bytes) -> Vote:
    sums, data = kept[:_HEX], kept[_HEX + 1 :]
    if sha256(data).encode() != sums:
        raise ValueError("the checksum does not fit")
    return _decode(data)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, one at a time; none where there is no file."""
    try:
        with path.open("rb") as file:
            yield from file
    except OSError:
        return
