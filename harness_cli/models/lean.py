"""The default client: our own HTTP/1.1 connections, and aiohttp where a proxy stands between."""

import urllib.request
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
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

    keeps_deadlines = True
    """Every wait of `complete` ends with its deadline, and at once when it is cancelled:
    `runtime.ask` gives it neither a clock nor a task of its own."""

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

    def _post(self, body: dict[str, Any], seconds: float) -> AbstractAsyncContextManager[Response]:
        return self._way.post(msgspec.json.encode(body), min(seconds, _CONNECT_S), self.stall_s())

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

    def post(self, body: bytes, connect_s: float, stall_s: float | None) -> "_Exchange":
        return _Exchange(self._pool, body, connect_s, stall_s)

    async def close(self) -> None:
        await self._pool.close()


class _Exchange(AbstractAsyncContextManager[Response]):
    """One request and its answer; a generator would cost as much again as all that it does."""

    __slots__ = ("_body", "_connect_s", "_connection", "_pool", "_stall_s")

    def __init__(
        self, pool: Http1Pool, body: bytes, connect_s: float, stall_s: float | None
    ) -> None:
        self._pool, self._body = pool, body
        self._connect_s, self._stall_s = connect_s, stall_s
        self._connection: Connection | None = None

    async def __aenter__(self) -> Connection:
        pool, body, connect_s, stall_s = self._pool, self._body, self._connect_s, self._stall_s
        try:
            made = await pool.post(body, connect_s=connect_s, stall_s=stall_s)
        except Stale:
            # The server closed an idle connection while we wrote to it; a fresh one tells.
            made = await pool.post(body, connect_s=connect_s, stall_s=stall_s)
        self._connection = made
        return made

    async def __aexit__(self, *exc: object) -> None:
        if self._connection is not None:
            self._pool.give_back(self._connection)


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
