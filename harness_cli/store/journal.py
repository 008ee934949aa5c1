"""`journal.jsonl`: append-only, a checksum a record, written at once and synced in groups.

A line is `{"sum":"<16 hex>","record":{…}}` and a newline; the sum is BLAKE2b-64 over the bytes of
the record. What is appended within one turn of the event loop becomes one `write` on an O_APPEND
descriptor: from then on a kill of the process cannot lose it. When somebody waits for a record, or
after half a second, a thread makes one `fdatasync` of all that was written meanwhile; only then is
it acknowledged, and a power cut cannot lose it either. At most the last line of the file is torn.
"""

import asyncio
import os
import threading
from collections.abc import Generator, Iterator
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import msgspec

from harness_cli.errors import BadFile, HarnessError
from harness_cli.records.journal import JournalRecord

_HEAD = b'{"sum":"'
_MIDDLE = b'","record":'
_START = len(_HEAD) + 16 + len(_MIDDLE)
_KIND = len(b'{"kind":"')
LATEST_S = 0.5
"""So long at most a record that nobody waits for stays without a sync."""
_BUFFER = 1 << 20
"""A trajectory's line spans many small buffers: read in large ones a scan takes a quarter less."""
_encode = msgspec.json.Encoder().encode


class Line(NamedTuple):
    """One whole record: where its line starts, its kind, and its JSON bytes."""

    offset: int
    kind: str
    data: bytes

    @property
    def end(self) -> int:
        """Where the next line begins."""
        return self.offset + _START + len(self.data) + 2


def line_of(data: bytes) -> bytes:
    """The line of a record's JSON bytes."""
    total = blake2b(data, digest_size=8).hexdigest().encode()
    return b"".join((_HEAD, total, _MIDDLE, data, b"}\n"))


def data_of(line: bytes) -> bytes | None:
    """The record's bytes of a line; None when the line is torn or was changed."""
    if not (line.endswith(b"}\n") and line.startswith(_HEAD)):
        return None
    data = line[_START:-2]
    total = blake2b(data, digest_size=8).hexdigest().encode()
    return data if line[len(_HEAD) : len(_HEAD) + 16] == total else None


def scan(path: Path, start: int = 0, end: int | None = None) -> Iterator[Line]:
    """Every whole record in order, in constant memory; a torn tail is left out.

    `start` and `end` bound it to lines that begin there or between. Raises `BadFile` when a damaged
    record stands before whole ones: that is no torn write.
    """
    damaged: int | None = None
    offset = start
    with path.open("rb", buffering=_BUFFER) as file:
        file.seek(start)
        for number, line in enumerate(file, 1):
            if offset == end:
                return
            data = data_of(line)
            if data is None:
                damaged = damaged or number
            elif damaged:
                raise BadFile(
                    f"{path.name}:{damaged}: the record does not match its checksum",
                    hint="the file was changed or the disk is failing; start a new run",
                )
            else:
                yield Line(offset, data[_KIND : data.index(b'"', _KIND)].decode(), data)
            offset += len(line)


def ranges(path: Path, count: int) -> list[tuple[int, int]]:
    """The file as at most `count` ranges of bytes that begin with a line."""
    size = path.stat().st_size
    ends = {0, size}
    with path.open("rb") as file:
        for i in range(1, count):
            file.seek(size * i // count)
            file.readline()
            ends.add(min(file.tell(), size))
    bounds = sorted(ends)
    return list(pairwise(bounds))


def read_at(path: Path, offset: int) -> bytes:
    """The bytes of the record whose line starts at `offset`."""
    with path.open("rb") as file:
        file.seek(offset)
        data = data_of(file.readline())
    if data is None:
        raise BadFile(f"{path.name}: no whole record at byte {offset}")
    return data


def cut_torn_tail(path: Path) -> int:
    """Cut what a killed process left half written; returns the number of bytes cut."""
    end = 0
    for line in scan(path):
        end = line.offset + _START + len(line.data) + 2
    torn = path.stat().st_size - end
    if torn:
        with path.open("r+b") as file:
            file.truncate(end)
            file.flush()
            os.fsync(file.fileno())
    return torn


class Batch:
    """Records that go to the disk together. Awaiting it waits until they are there."""

    __slots__ = ("_failure", "_journal", "_waiting", "done", "lines", "sent")

    def __init__(self, journal: "Journal") -> None:
        self.lines: list[bytes] = []
        self.done = False
        self.sent = False
        """A sync of it was asked for."""
        self._journal = journal
        self._waiting: list[asyncio.Future[None]] = []
        self._failure: HarnessError | None = None

    def __await__(self) -> Generator[Any, None, None]:
        if not self.done:
            if not self.sent:
                self._journal.sync_soon()
            waiter = self._journal.loop.create_future()
            self._waiting.append(waiter)
            yield from waiter
        if self._failure is not None:
            raise self._failure

    def settle(self, failure: HarnessError | None) -> None:
        """The records are on the disk, or will never be; called in the event loop."""
        self.done, self._failure = True, failure
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)


class Journal:
    """The writing side. `append` encodes; the record is durable when its batch is awaited.

    What is appended within one turn of the event loop is one batch; a sync takes every batch that
    was written before it. To be used within one running event loop; `close` waits for everything
    that was appended.
    """

    def __init__(self, path: Path) -> None:
        self.loop = asyncio.get_running_loop()
        fresh = not path.exists()
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if fresh:
            _sync_folder(path.parent)
        self._queue: SimpleQueue[list[Batch] | None] = SimpleQueue()
        self._open: Batch | None = None
        self._written: list[Batch] = []
        self._wanted = self._timed = False
        self._failure: HarnessError | None = None
        self.records = 0
        self.syncs = 0
        self.size = 0
        self._thread = threading.Thread(target=self._sync_until_closed, daemon=True)
        self._thread.start()

    def append(self, record: JournalRecord) -> Batch:
        """Take one record in; await the batch to know it on the disk."""
        if self._failure is not None:
            raise self._failure
        if self._open is None:
            self._open = Batch(self)
            self.loop.call_soon(self.write_out)
        self._open.lines.append(line_of(_encode(record)))
        self.records += 1
        return self._open

    def write_out(self) -> None:
        """Hand what was appended to the kernel, where no kill of this process reaches it.

        In the event loop's own thread: a write into the page cache takes microseconds, and what
        follows it need not wait for a disk.
        """
        batch, self._open = self._open, None
        if batch is None:
            return
        try:
            if self._failure is None:
                self.size += _write_all(self._fd, b"".join(batch.lines))
        except OSError as exc:
            self._failure = _unwritable(exc)
        batch.lines = []
        self._written.append(batch)
        if self._wanted or self._failure is not None:
            self._send()
        elif not self._timed:
            self._timed = True
            self.loop.call_later(LATEST_S, self._time_is_up)

    def sync_soon(self) -> None:
        """Have everything that was appended synced; what is still open goes with its write."""
        if self._open is not None:
            self._wanted = True
        else:
            self._send()

    async def close(self) -> None:
        """Write what is left and give the file back."""
        self.write_out()
        self._send()
        self._queue.put(None)
        while self._thread.is_alive():
            await asyncio.sleep(0.001)
        os.close(self._fd)
        if self._failure is not None:
            raise self._failure

    def _time_is_up(self) -> None:
        self._timed = False
        self._send()

    def _send(self) -> None:
        self._wanted = False
        if self._written:
            for batch in self._written:
                batch.sent = True
            self._queue.put(self._written)
            self._written = []

    def _sync_until_closed(self) -> None:
        last = False
        while not last:
            taken = [self._queue.get()]
            try:
                while True:
                    taken.append(self._queue.get_nowait())
            except Empty:
                pass
            last = taken[-1] is None
            batches = [batch for sent in taken if sent is not None for batch in sent]
            if batches:
                self._sync(batches)

    def _sync(self, batches: list[Batch]) -> None:
        try:
            if self._failure is None:
                os.fdatasync(self._fd)
                self.syncs += 1
        except OSError as exc:
            self._failure = _unwritable(exc)
        try:
            self.loop.call_soon_threadsafe(_settle, batches, self._failure)
        except RuntimeError:
            return  # the loop is gone: nobody waits for these any more


def _unwritable(exc: OSError) -> HarnessError:
    return HarnessError(
        f"the journal cannot be written: {exc.strerror}",
        hint="make room and resume the run; what was acknowledged is safe",
    )


def _settle(batches: list[Batch], failure: HarnessError | None) -> None:
    for batch in batches:
        batch.settle(failure)


def _write_all(fd: int, data: bytes) -> int:
    """One write; the rest of it when the kernel took only a part (a full disk, a signal)."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, data[written:])
    return written


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
