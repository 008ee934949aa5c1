"""An answer that is streamed: gathered, with the moments at which its parts came."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harness_cli.errors import ProviderError
from harness_cli.models.sse import DONE, EventReader
from harness_cli.models.wire import ReplyBuilder
from harness_cli.records.chat import ChatRequest

_TAIL_S: Final = 0.5
"""How long the end of a stream is waited for after `[DONE]`, so that its connection can stay."""


class Response(Protocol):
    """An answer whose head has arrived."""

    status: int

    @property
    def headers(self) -> Any:
        """Header names in lower case → values."""

    @property
    def complete(self) -> bool:
        """The body is known to be read to its end; False where only `read` can tell."""

    async def read(self) -> bytes:
        """The next bytes of the body, empty at its end."""


@dataclass(slots=True)
class Streamed:
    """A stream read to its end; moments are of `time.perf_counter`."""

    builder: ReplyBuilder
    first: float | None = None
    """Of the first event."""
    said: float | None = None
    """Of the first event with content, reasoning or a tool call in it."""
    last: float = 0.0


async def read_stream(response: Response, request: ChatRequest) -> Streamed:
    """The gathered reply of an event stream, and when it came.

    A transport that knows when bytes reached this process says it by `came`, (first, last) of what
    was just read: what this process was busy with before it looked is no time of the server.
    """
    events, builder = EventReader(), ReplyBuilder(request)
    streamed = Streamed(builder)
    while not builder.ended:
        data = await response.read()
        came, streamed.last = getattr(response, "came", None) or (time.perf_counter(),) * 2
        payloads = events.feed(data) if data else events.close()
        if payloads and streamed.first is None:
            streamed.first = came
        for payload in payloads:
            if payload is DONE:
                builder.ended = True
                break
            builder.add(payload)
        if streamed.said is None and builder.said_something:
            streamed.said = came
        if not data:
            return streamed
    if not response.complete:
        await _read_tail(response)
    return streamed


async def _read_tail(response: Response) -> None:
    """What follows `[DONE]`, so that the connection can be used again."""
    try:
        async with asyncio.timeout(_TAIL_S):
            while await response.read():
                pass
    except (TimeoutError, ProviderError):
        pass  # The answer is whole; only the connection is lost.
