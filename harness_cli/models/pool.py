"""Keep-alive HTTP/1.1 connections to one endpoint, http or https. Proxies: see `lean.py`."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from harness_cli.errors import ProviderError, UsageError
from harness_cli.models.http1 import Connection
from harness_cli.models.provider_errors import transport
from harness_cli.models.stamped import StampedSocket

_IDLE_S: Final = 60.0
"""Idle connections are dropped after this; a server that drops them sooner is noticed."""


class Http1Pool:
    """Keep-alive connections to one address."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"`{url}` is no http or https address")
        self._host, self._tls = parts.hostname, parts.scheme == "https"
        self._port = parts.port or (443 if self._tls else 80)
        self._context: ssl.SSLContext | None = None
        self._idle: list[Connection] = []
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [f"POST {target} HTTP/1.1", f"Host: {parts.netloc.rpartition('@')[2]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._head = ("\r\n".join(lines) + "\r\nContent-Length: ").encode("latin-1")

    async def post(self, body: bytes, *, connect_s: float, stall_s: float | None) -> Connection:
        """Send a body; returns when the answer's head is there. Give the connection back."""
        connection = self._reused() or await self._connect(connect_s)
        try:
            connection.post(b"%b%d\r\n\r\n%b" % (self._head, len(body), body), stall_s=stall_s)
            await connection.head()
        except BaseException:
            connection.close()
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end; close any other."""
        if connection.reusable:
            connection.rest()
            self._idle.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)

    def _reused(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            age = asyncio.get_running_loop().time() - connection.idle_since
            if not connection.closed and age < _IDLE_S:
                return connection
            connection.close()
        return None

    async def _connect(self, connect_s: float) -> Connection:
        loop = asyncio.get_running_loop()
        if self._tls and self._context is None:
            self._context = ssl.create_default_context()
        try:
            async with asyncio.timeout(connect_s):
                return await self._opened(loop)
        except TimeoutError as exc:
            raise ProviderError.of(
                "timeout", f"no connection to `{self._host}` within {connect_s:g} s", retryable=True
            ) from exc
        except ssl.SSLCertVerificationError as exc:
            error = transport(f"the certificate of `{self._host}` is not trusted: {exc.reason}")
            error.retryable = False
            error.hint = "SSL_CERT_FILE names a file of authorities to trust"
            raise error from exc
        except OSError as exc:
            raise transport(
                f"no connection to `{self._host}:{self._port}`: {exc.strerror or exc}"
            ) from exc

    async def _opened(self, loop: asyncio.AbstractEventLoop) -> Connection:
        """Asyncio finds the address that answers; its socket is then read by one of ours."""
        found, _ = await loop.create_connection(
            asyncio.Protocol, self._host, self._port, happy_eyeballs_delay=0.25
        )
        wire = StampedSocket(fileno=found.get_extra_info("socket").dup().detach())
        found.abort()
        try:
            wire.begin()
            _, connection = await loop.create_connection(
                lambda: Connection(loop, wire),
                sock=wire,
                ssl=self._context,
                server_hostname=self._host if self._tls else None,
            )
        except BaseException:
            wire.close()
            raise
        return connection
