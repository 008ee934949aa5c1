"""One policy on one loopback port until the process is told to end."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from harness_cli.errors import HarnessError
from harness_cli.models.base import Policy
from harness_cli.serving.app import ServedPolicy

LOOPBACK: Final = "127.0.0.1"


async def host(
    served: ServedPolicy,
    port: int,
    *,
    finish_s: float,
    up: Callable[[int], None],
    down: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what is in flight within `finish_s`.

    `up` is called with the port once it listens, `down` when it has been told to end. Raises
    `OSError` where the port is taken.
    """
    # Routers knock with HTTP/2 first: their preface is no error of ours worth a traceback.
    logging.getLogger("aiohttp.server").addFilter(_no_strange_protocol)
    await _warm(served.policy)
    runner = web.AppRunner(
        served.app(), access_log=None, shutdown_timeout=finish_s, handler_cancellation=True
    )
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        up(int(runner.addresses[0][1]))
        try:
            await ended.wait()
        finally:
            down()
    finally:
        await runner.cleanup()


@contextmanager
def told(port: object) -> Iterator[None]:
    """Errors on stderr, where `serve up` finds them as the last lines of a log; then the exit."""
    try:
        yield
    except HarnessError as exc:
        sys.stderr.write(f"error: {exc}\n" + (f"hint: {exc.hint}\n" if exc.hint else ""))
        sys.exit(exc.exit_code)
    except OSError as exc:
        sys.stderr.write(f"error: cannot listen on port {port}: {exc.strerror}\n")
        sys.exit(1)


def _no_strange_protocol(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


async def _warm(policy: Policy) -> None:
    """Have weights read, and converted the first time, before anyone waits for an answer."""
    warm = getattr(policy, "warm", None)
    if warm is not None:
        await warm()
