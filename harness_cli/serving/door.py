"""The one address of a job: lets in what its replicas can take, and passes it on to the router.

The router has bounds of its own, and they are not used: `--max-concurrent-requests` is a token
bucket that refills while requests still run, and its queue gives up after 1/rate seconds whatever
`--queue-timeout-secs` says. Of ten requests of 3 s under a bound of 2 it ran three at once and
refused seven after 0.5 s (router 0.3.2, docs/adr/0017). Here a place is free when a request ended.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from harness_cli.serving.admission import Doorkeeper, Refused
from harness_cli.serving.app import local_only
from harness_cli.serving.meters import CONTENT_TYPE
from harness_cli.serving.wire import error_body

GATED: Final = frozenset({"/v1/chat/completions", "/v1/completions", "/generate"})
"""What costs a replica's time; health and models are always let through."""
OPEN: Final = frozenset(
    {
        "/health", "/health_generate", "/readiness", "/liveness", "/v1/models", "/model_info",
        "/get_model_info", "/server_info", "/get_server_info",
    }
)  # fmt: skip
"""The router's own controls (`/workers`, `/flush_cache`) are not for clients."""
_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade",
        "proxy-authenticate", "proxy-authorization", "content-length", "content-encoding", "host",
    }
)  # fmt: skip
CONNECT_S: Final = 10.0
PAGE_S: Final = 5.0
_SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)(\{)?", re.MULTILINE)
BODY_LIMIT: Final = 64 * 1024 * 1024


class Door:
    """A reverse proxy with admission in front of one router."""

    def __init__(
        self,
        target: str,
        keeper: Doorkeeper,
        session: aiohttp.ClientSession,
        replicas: Callable[[], Sequence[tuple[int, str]]] = tuple,
    ) -> None:
        self.target, self.keeper, self.session = target, keeper, session
        self.replicas = replicas
        """(number, address) of those that answer now: whose metrics `/metrics` shows."""

    @asynccontextmanager
    async def open(self, host: str, port: int, drain_s: float) -> AsyncIterator[int]:
        """Listen for as long as the block runs; gives the port. Raises `OSError`."""
        middlewares = [local_only] if host in ("127.0.0.1", "::1", "localhost") else []
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=middlewares)
        app.router.add_get("/metrics", self.metrics)
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
        if request.path in OPEN:
            return await self._through(request)
        if request.path not in GATED:
            return _refusal(404, "not_found", f"`{request.path}` is not served here")
        if request.content_type != "application/json":
            # A page in a browser can send anything else unasked.
            return _refusal(400, "invalid_request_error", "the content type must be JSON")
        try:
            async with self.keeper.inside():
                return await self._through(request)
        except Refused as exc:
            return _refusal(429, "rate_limit", str(exc))

    async def metrics(self, _: web.Request) -> web.Response:
        """Every replica's page in one, each sample with its replica's number; the door's own."""
        asked = [self._page(number, url) for number, url in self.replicas()]
        pages = await asyncio.gather(*asked)
        keeper = self.keeper
        own = (
            f"harness:door_running_reqs {keeper.running}\n"
            f"harness:door_queue_reqs {keeper.waiting}\n"
            f"harness:door_refused_requests_total {keeper.refused}\n"
        )
        text = "".join(pages) + own
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _page(self, number: int, url: str) -> str:
        timeout = aiohttp.ClientTimeout(total=PAGE_S)
        try:
            async with self.session.get(f"{url}/metrics", timeout=timeout) as answer:
                return labelled(await answer.text(), number) if answer.status == 200 else ""
        except (aiohttp.ClientError, TimeoutError, OSError):
            return ""

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


def labelled(page: str, number: int) -> str:
    """A Prometheus page with `replica="N"` on every sample."""
    return _SAMPLE.sub(lambda m: f'{m[1]}{{replica="{number}"' + ("," if m[2] else "}"), page)


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
