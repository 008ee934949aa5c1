"""The default client: our own HTTP/1.1 connections, and aiohttp where a proxy stands between."""

import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import msgspec

from harness_cli.models.client import ClientPolicy
from harness_cli.models.http1 import Connection, Stale
from harness_cli.models.pool import Http1Pool
from harness_cli.models.stream import Response
from harness_cli.records.config import PolicyConfig

_CONNECT_S: Final = 10.0
_AGENT: Final = "harness-evolution"


class LeanPolicy(ClientPolicy):
    """Chat completions at a small fraction of a general client's cost per call."""

    def __init__(self, name: str, config: PolicyConfig, *, seed: int = 0) -> None:
        super().__init__(name, config, seed=seed)
        headers = {
            "User-Agent": _AGENT,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
        }
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        url = f"{self.url}/chat/completions"
        proxy = proxy_for(url)
        self._way: _Way
        if proxy is None:
            self._way = _Direct(url, headers)
        else:
            from harness_cli.models.proxied import Proxied  # aiohttp loads for nobody else

            self._way = Proxied(url, headers, proxy)

    @asynccontextmanager
    async def _post(self, body: dict[str, Any], seconds: float) -> AsyncIterator[Response]:
        async with self._way.post(
            msgspec.json.encode(body), min(seconds, _CONNECT_S), self.stall_s()
        ) as response:
            yield response

    async def close(self) -> None:
        """Close every connection."""
        await self._way.close()


class _Way(Protocol):
    def post(
        self, body: bytes, connect_s: float, stall_s: float | None
    ) -> AbstractAsyncContextManager[Response]: ...

    async def close(self) -> None: ...


class _Direct:
    """Straight to the endpoint."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._pool = Http1Pool(url, headers)

    @asynccontextmanager
    async def post(
        self, body: bytes, connect_s: float, stall_s: float | None
    ) -> AsyncIterator[Connection]:
        try:
            connection = await self._pool.post(body, connect_s=connect_s, stall_s=stall_s)
        except Stale:
            # The server closed an idle connection while we wrote to it; a fresh one tells.
            connection = await self._pool.post(body, connect_s=connect_s, stall_s=stall_s)
        try:
            yield connection
        finally:
            self._pool.give_back(connection)

    async def close(self) -> None:
        await self._pool.close()


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address (`http_proxy`, `no_proxy`, …)."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies_environment()
    found = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.netloc.rpartition("@")[2]
    # Not in typeshed, though documented for getproxies.
    if not found or urllib.request.proxy_bypass_environment(host):  # type: ignore[attr-defined]
        return None
    return found if "://" in found else f"http://{found}"
