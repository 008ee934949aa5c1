"""The server of `harness view`: on loopback, until it is told to end."""

import asyncio
import contextlib
import errno
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from aiohttp import web

from harness_cli.errors import UsageError
from harness_cli.loop.view.app import Viewer, page_folder
from harness_cli.loop.view.guard import Guard, new_token
from harness_cli.loop.view.mounts import mounts
from harness_cli.store.project import Project

HOST = "127.0.0.1"


async def serve(project: Project, port: int, started: Callable[[str, int], None]) -> None:
    """Serve until SIGINT or SIGTERM. `started` gets the address and the port.

    Raises `UsageError` for a port that is taken or not allowed.
    """
    guard = Guard(new_token())
    ended = asyncio.Event()
    with page_folder() as folder:
        viewer = Viewer(project, guard, Path(folder), mounts(project, guard.token))
        # No access log: its lines would hold the token.
        runner = web.AppRunner(viewer.app(), access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        try:
            guard.port = await _listen(runner, port)
            with _signals(ended.set):
                started(f"http://{HOST}:{guard.port}/{guard.token}/", guard.port)
                await ended.wait()
        finally:
            await runner.cleanup()


async def _listen(runner: web.AppRunner, port: int) -> int:
    site = web.TCPSite(runner, HOST, port)
    try:
        await site.start()
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} is in use", hint="--port 0 takes one that is free"
            ) from exc
        if exc.errno == errno.EACCES:
            raise UsageError(
                f"port {port} is not yours to listen on", hint="choose one above 1023"
            ) from exc
        raise
    return int(runner.addresses[0][1])


@contextlib.contextmanager
def _signals(end: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
