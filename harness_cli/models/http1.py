"""One HTTP/1.1 connection, straight on asyncio: the answer's parser.

Only what a chat endpoint needs (RFC 9112): one request at a time, bodies by length, in chunks or
until close. Why this is written by hand is told, with numbers, in docs/adr/0004-lean-transport.md.
"""

import asyncio
import time
import zlib
from typing import Final

from harness_cli.errors import ProviderError
from harness_cli.models.provider_errors import malformed, stalled, transport
from harness_cli.models.stamped import StampedSocket

_HEAD_LIMIT: Final = 64 * 1024
_BODY_LIMIT: Final = 256 * 1024 * 1024


class Stale(Exception):
    """A kept-alive connection was closed by the server before any answer: safe to ask again."""


class Connection(asyncio.Protocol):
    """One connection; parses the answer of one exchange at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wire: StampedSocket) -> None:
        self._loop, self._wire = loop, wire
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.used = 0
        self.closed = False
        self.idle_since = 0.0
        self._start(None)

    def _start(self, stall_s: float | None) -> None:
        self._buffer = bytearray()
        self._ready: list[bytes] = []
        self._state = "head"
        self._left = self._total = 0
        self._error: Exception | None = None
        self._stall_s, self._heard = stall_s, self._loop.time()
        self._inflate: zlib._Decompress | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self._keep = True
        self._since = self._last = 0.0
        self.came: tuple[float, float] | None = None
        """When the first and the last of what `read` gave reached this machine."""

    # -- asyncio's side

    def connection_made(self, made: asyncio.BaseTransport) -> None:
        """Asyncio connected it."""
        assert isinstance(made, asyncio.Transport)
        self._transport = made

    def data_received(self, data: bytes) -> None:
        """Asyncio read bytes."""
        self._heard = self._loop.time()
        now, unread = self._wire.came(after=self._last), bool(self._ready)
        if self._state == "idle":
            self.close()  # An answer to nothing: the connection is out of step.
            return
        self._buffer += data
        try:
            while self._buffer and self._step():
                pass
        except ProviderError as exc:
            self._fail(exc)
        self._since, self._last = (self._since if unread else now), now
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """The server, or the network, closed it."""
        self.closed = True
        if self._state == "until_close" and exc is None:
            self._state = "done"
        elif self._state not in ("done", "idle"):
            said = f": {type(exc).__name__}" if exc else ""
            if self._state == "head" and self.used > 1 and not self._buffer:
                self._fail(Stale())
            else:
                self._fail(transport(f"the connection was cut before the answer's end{said}"))
        self._wake()

    # -- our side

    def post(self, message: bytes, *, stall_s: float | None) -> None:
        """Send a whole request; the answer is then read with `head` and `read`."""
        assert self._transport is not None
        self.used += 1
        self._start(stall_s)
        self._arm()
        self._last = time.perf_counter()
        self._transport.write(message)

    async def head(self) -> None:
        """Wait until `status` and `headers` are there."""
        while self._state == "head":
            await self._wait()

    async def read(self) -> bytes:
        """The next bytes of the body, empty at its end."""
        while True:
            while not self._ready:
                if self._state == "done":
                    return b""
                await self._wait()
            self.came = (self._since, self._last)
            data = self._ready[0] if len(self._ready) == 1 else b"".join(self._ready)
            self._ready.clear()
            if self._inflate is None:
                return data
            if data := self._inflated(data):
                return data

    @property
    def complete(self) -> bool:
        """The whole body was read."""
        return self._state == "done" and not self._ready

    @property
    def reusable(self) -> bool:
        """The answer came to its end and the server keeps the connection."""
        return self._state == "done" and self._keep and not self.closed and not self._buffer

    def rest(self) -> None:
        """Between two exchanges."""
        self._state = "idle"
        self.idle_since = self._loop.time()

    def close(self) -> None:
        """End it now."""
        if self._timer is not None:
            self._timer.cancel()
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not self._ready:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._keep = False

    def _arm(self) -> None:
        """One timer for all exchanges: it looks how long ago the server was last heard."""
        if self._stall_s is None:
            return
        at = self._heard + self._stall_s
        if self._timer is not None and self._timer.when() > at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(at, self._watch)

    def _watch(self) -> None:
        self._timer = None
        if self._stall_s is None or self._state in ("idle", "done"):
            return
        if self._heard + self._stall_s > self._loop.time():
            self._arm()
            return
        self._fail(stalled(self._stall_s))
        self._wake()

    def _inflated(self, data: bytes) -> bytes:
        assert self._inflate is not None
        try:
            return self._inflate.decompress(data)
        except zlib.error as exc:
            raise malformed(f"the compressed answer cannot be read: {exc}") from exc

    # -- the answer, step by step; each returns whether it got on

    def _step(self) -> bool:
        match self._state:
            case "size":
                return self._chunks() or self._line()
            case "head":
                return self._head()
            case "length":
                return self._take("done")
            case "chunk":
                return self._take("chunk_end")
            case "chunk_end" | "trailers":
                return self._line()
            case "until_close":
                self._left = len(self._buffer)
                return self._take("until_close")
        return False

    def _head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise malformed("the answer's head has no end")
            return False
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        parts = lines[0].split(" ", 2)
        if not parts[0].startswith("HTTP/1.") or len(parts) < 2 or not parts[1].isdigit():
            raise malformed(f"the answer is no HTTP/1.1: `{lines[0][:60]}`")
        if parts[1].startswith("1"):
            return True  # 100 Continue, 103 Early Hints: the answer is yet to come.
        self.headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (text.partition(":") for text in lines[1:])
        }
        self.status = int(parts[1])
        self._keep = "close" not in self.headers.get("connection", "").lower()
        self._keep = self._keep and parts[0] != "HTTP/1.0"
        if self.headers.get("content-encoding", "identity") in ("gzip", "deflate"):
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._frame()
        return True

    def _frame(self) -> None:
        if self.status in (204, 304):
            self._state = "done"
        elif "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._state = "size"
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not length.isdigit() or int(length) > _BODY_LIMIT:
                raise malformed(f"the answer's length is `{length[:20]}`")
            self._left = int(length)
            self._state = "length" if self._left else "done"
        else:
            self._state, self._keep = "until_close", False

    def _chunks(self) -> bool:
        """Every chunk that lies whole in the buffer, at once: most of a stream goes this way."""
        buffer, at, before = self._buffer, 0, len(self._ready)
        while (end := buffer.find(b"\r\n", at, at + 10)) > at:
            try:
                size = int(buffer[at:end], 16)
            except ValueError:
                break  # an extension, or garbage: the slow way knows
            stop = end + 2 + size
            if size <= 0 or buffer[stop : stop + 2] != b"\r\n":
                break
            self._ready.append(bytes(buffer[end + 2 : stop]))
            self._total += size
            at = stop + 2
        if at:
            del buffer[:at]
        if self._total > _BODY_LIMIT:
            raise malformed("the answer is too long")
        return len(self._ready) > before

    def _take(self, then: str) -> bool:
        part = bytes(self._buffer[: self._left])
        del self._buffer[: self._left]
        self._left -= len(part)
        self._total += len(part)
        if self._total > _BODY_LIMIT:
            raise malformed("the answer is too long")
        self._ready.append(part)
        if not self._left:
            self._state = then
        return True

    def _line(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > _HEAD_LIMIT:
                raise malformed("a chunk of the answer has no size")
            return False
        text = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        if self._state == "trailers":
            self._state = "trailers" if text else "done"
        elif self._state == "chunk_end":
            if text:
                raise malformed("a chunk of the answer is longer than its size")
            self._state = "size"
        else:
            try:
                self._left = int(text.split(b";", 1)[0], 16)
            except ValueError as exc:
                raise malformed("a chunk of the answer has no size") from exc
            self._state = "chunk" if self._left > 0 else "trailers"
        return True
