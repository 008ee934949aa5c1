"""The way to an endpoint behind an HTTP proxy: aiohttp, which speaks CONNECT."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlsplit

import aiohttp

from harness_cli.errors import ProviderError
from harness_cli.models.provider_errors import stalled, transport
from harness_cli.models.stream import Response


class Proxied:
    """Through the proxy of the environment."""

    def __init__(self, url: str, headers: Mapping[str, str], proxy: str) -> None:
        parts = urlsplit(proxy)
        self._proxy = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        told: dict[str, str] = {}
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            told["Proxy-Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        tunnel = urlsplit(url).scheme == "https"
        # Behind CONNECT the proxy's password is for the proxy alone; else it reads the request.
        self._url, self._headers = url, dict(headers) if tunnel else {**headers, **told}
        self._proxy_headers = told if tunnel else None
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def post(
        self, body: bytes, connect_s: float, stall_s: float | None
    ) -> AsyncIterator[Response]:
        """Post `body`; the context ends the exchange."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # aiohttp's own context is made at import: too early for SSL_CERT_FILE.
                connector=aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context())
            )
        limits = aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=stall_s)
        try:
            async with self._session.post(
                self._url,
                data=body,
                headers=self._headers,
                timeout=limits,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                allow_redirects=False,
            ) as response:
                yield _AioResponse(response, stall_s)
        except aiohttp.ServerTimeoutError as exc:
            raise _late(exc, connect_s, stall_s) from exc
        except aiohttp.ClientError as exc:
            raise transport(f"the connection failed: {type(exc).__name__}: {exc}") from exc

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)


class _AioResponse:
    def __init__(self, response: aiohttp.ClientResponse, stall_s: float | None) -> None:
        self._response, self._stall_s = response, stall_s
        self.status = response.status

    @property
    def headers(self) -> dict[str, str]:
        return {k.lower(): v for k, v in self._response.headers.items()}

    complete = False  # only reading on tells

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except aiohttp.ServerTimeoutError as exc:
            raise stalled(self._stall_s or 0) from exc
        except (aiohttp.ClientError, ConnectionError) as exc:
            raise transport(
                f"the connection was cut before the answer's end: {type(exc).__name__}"
            ) from exc


def _late(exc: Exception, connect_s: float, stall_s: float | None) -> ProviderError:
    if isinstance(exc, aiohttp.ConnectionTimeoutError):
        return ProviderError.of(
            "timeout", f"no connection to the proxy within {connect_s:g} s", retryable=True
        )
    return stalled(stall_s or 0)
