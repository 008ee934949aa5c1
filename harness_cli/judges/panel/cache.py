"""Votes kept by what they rest on, under the project's `.harness/verdicts/`: nobody pays twice.

One file a judge, one line a vote: `<key> <sha256 of the rest> <json>`. Lines are appended in one
write, so programs side by side keep whole lines; one cut short by a kill, or changed on disk, fails
its checksum and is no vote.
"""

import fcntl
import logging
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness_cli.records.canonical import sha256
from harness_cli.records.verdict import Vote

log = logging.getLogger("harness.judges")
_decode = msgspec.json.Decoder(Vote).decode
_encode = msgspec.json.Encoder(order="deterministic").encode
_HEX = 64


class VoteCache:
    """The votes of one file. Nothing is read before the first look."""

    def __init__(self, path: Path, clean: Callable[[str], str] = str) -> None:
        self.path = path
        self._clean = clean
        """Takes secrets out of what is written."""
        self._lines: dict[bytes, bytes] | None = None
        self._fd: int | None = None
        self.damaged = 0

    def get(self, key: str) -> Vote | None:
        """The vote under a key; None where there is none or what stands there is damaged."""
        line = self._known().get(key.encode())
        if line is None:
            return None
        sums, data = line[:_HEX], line[_HEX + 1 :]
        try:
            if sha256(data).encode() != sums:
                raise ValueError("checksum")
            return _decode(data)
        except (ValueError, msgspec.DecodeError):
            self._known().pop(key.encode(), None)
            self._warn(1)
            return None

    def put(self, key: str, vote: Vote) -> None:
        """Keep a vote. A disk that takes it not costs the next run a call, nothing else."""
        data = self._clean(_encode(vote).decode()).encode()
        line = sha256(data).encode() + b" " + data
        self._known()[key.encode()] = line
        try:
            self._append(key.encode() + b" " + line + b"\n")
        except OSError as exc:
            log.warning("the vote cache `%s` cannot be written: %s", self.path.name, exc.strerror)

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _append(self, line: bytes) -> None:
        if self._fd is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            size = os.fstat(self._fd).st_size
            # What a killed program left without its end gets one, so that this line stands alone.
            if size and os.pread(self._fd, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(self._fd, line)
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _known(self) -> dict[bytes, bytes]:
        """Key → its line, the last one of a key; checked when it is asked for."""
        if self._lines is None:
            self._lines, broken = {}, 0
            try:
                data = self.path.read_bytes()
            except OSError:
                data = b""
            for line in data.split(b"\n"):
                if len(line) > 2 * _HEX + 2 and line[_HEX : _HEX + 1] == b" ":
                    self._lines[line[:_HEX]] = line[_HEX + 1 :]
                elif line:
                    broken += 1
            self._warn(broken)
        return self._lines

    def _warn(self, count: int) -> None:
        if count:
            self.damaged += count
            log.warning(
                "%d damaged entries of the vote cache `%s` are ignored", count, self.path.name
            )
