"""How many requests are let in at once, how many wait, and who is sent away."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Refused(Exception):
    """No place: neither to run nor to wait, or the wait was too long."""


class Doorkeeper:
    """At most `limit` at a time, `queue` more in line for `queue_s`, first come first served.

    `limit` may change at any time; None lets everybody in. To be used within one event loop.
    """

    def __init__(self, limit: int | None, queue: int = 0, queue_s: float = 30.0) -> None:
        self._limit, self._queue, self._queue_s = limit, queue, queue_s
        self._line: deque[asyncio.Future[None]] = deque()
        self.running = self.refused = 0

    @property
    def waiting(self) -> int:
        """Requests in line."""
        return len(self._line)

    @property
    def limit(self) -> int | None:
        """Requests that may run at once."""
        return self._limit

    @limit.setter
    def limit(self, value: int | None) -> None:
        self._limit = value
        self._call()

    @asynccontextmanager
    async def inside(self) -> AsyncIterator[None]:
        """A place for as long as the block runs. Raises `Refused`."""
        await self._enter()
        try:
            yield
        finally:
            self.running -= 1
            self._call()

    def _free(self) -> bool:
        return self._limit is None or self.running < self._limit

    async def _enter(self) -> None:
        if self._free() and not self._line:
            self.running += 1
            return
        if self.waiting >= self._queue:
            self.refused += 1
            raise Refused(f"{self.running} run and {self.waiting} wait: come again later")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(place)
        try:
            async with asyncio.timeout(self._queue_s):
                await place
        except BaseException as exc:
            self._leave_line(place)
            if not isinstance(exc, TimeoutError):
                raise
            self.refused += 1
            raise Refused(f"no place within {self._queue_s:g} s: come again later") from None

    def _leave_line(self, place: "asyncio.Future[None]") -> None:
        """Give a place up that was called in the same moment in which its request went away."""
        if place.done() and not place.cancelled():
            self.running -= 1
            self._call()
        elif place in self._line:
            self._line.remove(place)

    def _call(self) -> None:
        """Let the next ones in; their places count from now on."""
        while self._line and self._free():
            place = self._line.popleft()
            if not place.done():
                self.running += 1
                place.set_result(None)
