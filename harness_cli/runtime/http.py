"""Tools behind an HTTP endpoint: bounded time and size, no redirect, no proxy, keys from outside.

    _meta:
      harness.executor: http
      harness.url: https://stock.example/items/{product}     arguments fill the template
      harness.method: GET            the default; with POST, what the URL left over is the JSON body
      harness.headers_env: {Authorization: STOCK_TOKEN}      header → environment variable

The host of a URL stands in the harness, never in an argument, and a redirect is an error: nothing a
model writes chooses where a request goes.
"""

import asyncio
import os
import re
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from harness_cli.errors import ToolError
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult

BODY_CAP = 1 << 20
_HOLE = re.compile(r"\{(\w+)\}")
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")


class HttpExecutor:
    """Calls the HTTP tools of a state over one connection pool, opened on first use."""

    def __init__(self, *, seconds: float = 30.0) -> None:
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        request: Request,  # noqa: ARG002  an endpoint gets the arguments and nothing else
    ) -> ToolResult:
        """The endpoint's answer; `ToolError` for everything but a JSON or text answer of 2xx."""
        method, url, rest = address(tool, arguments)
        send = {"params": plain(rest)} if method in ("GET", "DELETE") else {"json": rest}
        try:
            async with self._opened().request(
                method, url, headers=_headers(tool), allow_redirects=False, **send
            ) as response:
                body = await _body(tool, response)
                return _result(tool, response, body)
        except TimeoutError as exc:
            raise ToolError.of("timeout", f"`{tool.name}`: no answer in time") from exc
        except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as exc:
            raise ToolError.of(
                "unavailable", f"`{tool.name}`: {type(exc).__name__} from `{urlsplit(url).netloc}`"
            ) from exc

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=self._timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def address(tool: Tool, arguments: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Method, URL with its holes filled, and the arguments that are left."""
    template = str(tool.meta.get("harness.url", ""))
    method = str(tool.meta.get("harness.method", "GET")).upper()
    parts = urlsplit(template)
    if parts.scheme not in ("http", "https") or not parts.netloc or _HOLE.search(parts.netloc):
        raise ToolError.of(
            "unavailable", f"`{tool.name}`: `harness.url` must be http(s) with a fixed host"
        )
    if method not in _METHODS:
        raise ToolError.of("unavailable", f"`{tool.name}`: unknown method `{method}`")
    rest = dict(arguments)

    def fill(hole: re.Match[str]) -> str:
        if hole[1] not in arguments:
            raise ToolError.of("invalid_arguments", f"`{hole[1]}` is needed in the address")
        rest.pop(hole[1], None)
        return quote(str(arguments[hole[1]]), safe="")

    return method, _HOLE.sub(fill, template), rest


def plain(values: dict[str, Any]) -> dict[str, str]:
    """Arguments as query parameters."""
    shown = {}
    for name, value in values.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        shown[name] = text
    return shown


def _headers(tool: Tool) -> dict[str, str]:
    """Headers from the environment; a name that is not set is said before any request is made."""
    found = {"Accept": "application/json"}
    for header, variable in dict(tool.meta.get("harness.headers_env", {})).items():
        value = os.environ.get(str(variable))
        if value is None:
            raise ToolError.of("unavailable", f"`{tool.name}`: `{variable}` is not set")
        found[str(header)] = value
    return found


async def _body(tool: Tool, response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_chunked(65_536):
        body += chunk
        if len(body) > BODY_CAP:
            raise ToolError.of("malformed", f"`{tool.name}` answered more than 1 MiB")
    return bytes(body)


def _result(tool: Tool, response: aiohttp.ClientResponse, body: bytes) -> ToolResult:
    text = body.decode(response.get_encoding(), errors="replace") if body else ""
    if response.status == 404:
        raise ToolError.of("not_found", f"`{tool.name}`: {text[:200] or 'nothing found'}")
    if 300 <= response.status < 400:
        raise ToolError.of("denied", f"`{tool.name}` wants to redirect; redirects are not followed")
    if response.status in (400, 422):
        raise ToolError.of("invalid_arguments", f"`{tool.name}`: {text[:500]}")
    if response.status in (401, 403):
        raise ToolError.of("denied", f"`{tool.name}` answered {response.status}")
    if not 200 <= response.status < 300:
        raise ToolError.of("unavailable", f"`{tool.name}` answered {response.status}")
    if "json" not in response.content_type:
        return ToolResult(ok=True, content=text, structured=None)
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as exc:
        raise ToolError.of("malformed", f"`{tool.name}` answered broken JSON: {exc}") from exc
    return ToolResult(ok=True, content=text, structured=value)
