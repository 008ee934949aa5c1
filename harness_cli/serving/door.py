"""The one address of a job: lets in what its replicas can take, and passes it on to the router.

The router has bounds of its own, and they are not used: `--max-concurrent-requests` is a token
bucket that refills while requests still run, and its queue gives up after 1/rate seconds whatever
`--queue-timeout-secs` says. Of ten requests of 3 s under a bound of 2 it ran three at once and
refused seven after 0.5 s (router 0.3.2, docs/adr/0017). Here a place is free when a request ended.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from harness_cli.serving.admission import Doorkeeper, Refused
from harness_cli.serving.wire import error_body

GATED: Final = frozenset({"/v1/chat/completions", "/v1/completions", "/generate"})
"""What costs a replica's time; health, models and metrics are always let through."""
_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade",
        "proxy-authenticate", "proxy-authorization", "content-length", "content-encoding", "host",
    }
)  # fmt: skip
CONNECT_S: Final = 10.0
BODY_LIMIT: Final = 64 * 1024 * 1024


class Door:
    """A reverse proxy with admission in front of one router."""

    def __init__(self, target: str, keeper: Doorkeeper, session: aiohttp.ClientSession) -> None:
        self.target, self.keeper, self.session = target, keeper, session

    @asynccontextmanager
    async def open(self, host: str, port: int, drain_s: float) -> AsyncIterator[int]:
        """Listen for as long as the block runs; gives the port. Raises `OSError`."""
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self.pass_on)
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=drain_s, handler_cancellation=True
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            yield int(runner.addresses[0][1])
        finally:
            await runner.cleanup()

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """One request through, once there is room for it."""
        if request.path not in GATED:
            return await self._through(request)
        try:
            async with self.keeper.inside():
                return await self._through(request)
        except Refused as exc:
            return _refusal(429, "rate_limit", str(exc))

    async def _through(self, request: web.Request) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        body = await request.read()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        sent = False
        try:
            async with self.session.request(
                request.method,
                self.target + request.path_qs,
                headers=headers,
                data=body or None,
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                response = web.StreamResponse(status=answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in _HOP:
                        response.headers[name] = value
                await response.prepare(request)
                sent = True
                async for data in answer.content.iter_any():
                    await response.write(data)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            if sent:
                # Half an answer must not look like a whole one: the connection ends instead.
                _hang_up(request)
                raise
            return _refusal(503, "server_error", f"no replica was reached: {type(exc).__name__}")


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _refusal(status: int, kind: str, message: str) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(error_body(message, kind)),
        status=status,
        content_type="application/json",
        headers={"Retry-After": "1"},
    )
