"""One MCP server, connected: started within its limit, watched, and given back whole.

The SDK's client lives in a task of its own, since what it opens must be closed where it was opened,
while calls come from every rollout. It speaks the stateless revision to servers that know it and
`initialize` to older ones.
"""

import asyncio
import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolResult,
    ListToolsResult,
    RequestParamsMeta,
)
from mcp_types import Tool as ListedTool

from harness_cli.errors import ToolError
from harness_cli.records.harness import McpServer, Tool
from harness_cli.runtime.mcp import Gone

log = logging.getLogger("harness.runtime")
PAGES = 50
"""Pages of a tool list that are read; a paginator that never ends is an error."""
CLOSE_S = 8.0
"""How long the SDK may take to end a server: close stdin, wait, terminate, kill."""


HTTP_TIMEOUT = httpx2.Timeout(30.0, read=300.0)
"""Behind our own limits: what the SDK advises, for a stream may stay silent for long."""


class Connection:
    """A running server and the client that talks to it."""

    def __init__(self, alias: str, server: McpServer, *, catalogue: Path) -> None:
        self.alias = alias
        self.server = server
        self._catalogue = catalogue
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scope = anyio.CancelScope()
        self._log: IO[str] | None = None
        self._lost = False
        self._task = asyncio.create_task(self._live(), name=f"mcp {alias}")

    @property
    def dead(self) -> bool:
        """The server is gone or was never there."""
        return self._lost or self._task.done()

    async def start(self) -> None:
        """Wait until the server answers; `ToolError` when it does not within its own limit."""
        limit = self.server.start_timeout_s
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), limit)
        except TimeoutError:
            self._scope.cancel()
            raise ToolError.of(
                "timeout", f"the MCP server `{self.alias}` did not start within {limit:g} s"
            ) from None

    async def tools(self) -> list[Tool]:
        """What the server lists, all pages, in its order."""
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await self._page(cursor)
            found += [listed(tool) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return found
        raise ToolError.of("malformed", f"the MCP server `{self.alias}` lists tools without end")

    async def _page(self, cursor: str | None) -> ListToolsResult:
        """One page of the list."""
        result: ListToolsResult = await self._ask(
            lambda client: client.list_tools(cursor=cursor, cache_mode="bypass"),
            self.server.start_timeout_s,
        )
        return result

    async def call(
        self, name: str, arguments: dict[str, Any], meta: dict[str, Any]
    ) -> CallToolResult:
        """One tool call, within the server's own limit."""
        limit = self.server.call_timeout_s
        result: CallToolResult = await self._ask(
            lambda client: client.call_tool(
                name, arguments, limit, meta=cast(RequestParamsMeta, meta)
            ),
            limit,
        )
        return result

    async def _ask(self, ask: Callable[[Client], Any], limit: float) -> Any:
        """One request; every way it can fail is a `ToolError`."""
        if self._client is None or self.dead:
            raise self._gone()
        try:
            async with asyncio.timeout(limit):
                return await ask(self._client)
        except TimeoutError:
            raise ToolError.of(
                "timeout", f"the MCP server `{self.alias}` gave no answer within {limit:g} s"
            ) from None
        except MCPError as exc:
            raise self._failed(exc) from exc
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError) as exc:
            raise self._gone() from exc
        except ValueError as exc:  # the SDK refuses what the server sent: pydantic's error
            message = f"the MCP server `{self.alias}` answered something invalid"
            raise ToolError.of("malformed", message) from exc

    def _failed(self, exc: MCPError) -> ToolError:
        if exc.code == CONNECTION_CLOSED:
            return self._gone()
        if exc.code == REQUEST_TIMEOUT:
            return ToolError.of("timeout", f"the MCP server `{self.alias}` gave no answer in time")
        return ToolError.of("unavailable", f"the MCP server `{self.alias}` answered: {exc}")

    def _gone(self) -> Gone:
        self._lost = True
        return Gone.of("unavailable", f"the MCP server `{self.alias}` is gone")

    async def _live(self) -> None:
        """The life of the connection; ends when it is closed, fails, or its server dies."""
        error: BaseException | None = None
        try:
            with self._scope:
                async with Client(self._transport(), cache=None) as client:
                    self._client = client
                    if not self._ready.done():
                        self._ready.set_result(None)
                    await self._stop.wait()
        except BaseException as exc:  # noqa: BLE001  a group of whatever the SDK's tasks raised
            error = exc
        finally:
            self._client = None
            if not self._ready.done():
                self._ready.set_exception(self._no_start(error))
                self._ready.exception()
            if self._log is not None:
                self._log.close()
        if isinstance(error, asyncio.CancelledError):
            raise error

    def _no_start(self, error: BaseException | None) -> ToolError:
        said = self._last_words()
        why = said or _innermost(error)
        return ToolError.of(
            "unavailable", f"the MCP server `{self.alias}` did not start{': ' + why if why else ''}"
        )

    def _last_words(self) -> str:
        """The last line a server wrote to stderr."""
        if self._log is None:
            return ""
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(0)
            lines = self._log.read()[-4_000:].strip().splitlines()
            return lines[-1][:200] if lines else ""
        return ""

    def _transport(self) -> Any:
        if self.server.transport == "http":
            headers = headers_of(self.alias, self.server)
            return _over_http(str(self.server.url), headers)
        if not self.server.command:
            raise ToolError.of("unavailable", f"the MCP server `{self.alias}` has no command")
        filled = {"{python}": sys.executable, "{catalogue}": str(self._catalogue)}
        argv = list(self.server.command)
        for hole, value in filled.items():
            argv = [word.replace(hole, value) for word in argv]
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115  closed when the server ends
        started = StdioServerParameters(
            command=argv[0],
            args=argv[1:],
            env=dict(self.server.env),
            encoding_error_handler="replace",
        )
        log.info("MCP server starts", extra={"server": self.alias, "command": argv})
        return stdio_client(started, errlog=self._log)

    async def close(self) -> None:
        """End the server; its process is gone when this returns."""
        self._stop.set()
        done, _ = await asyncio.wait((self._task,), timeout=CLOSE_S)
        if not done:
            self._scope.cancel()
            done, _ = await asyncio.wait((self._task,), timeout=CLOSE_S)
        if not done:
            self._task.cancel()


@contextlib.asynccontextmanager
async def _over_http(url: str, headers: dict[str, str]) -> Any:
    """The streamable HTTP transport with our headers; redirects stay on its origin (the SDK's)."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=HTTP_TIMEOUT, trust_env=False) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


def headers_of(alias: str, server: McpServer) -> dict[str, str]:
    """Headers whose values the environment holds."""
    found = {}
    for header, variable in server.headers_env.items():
        if variable not in os.environ:
            raise ToolError.of(
                "unavailable", f"the MCP server `{alias}` needs `{variable}`, which is not set"
            )
        found[header] = os.environ[variable]
    return found


def listed(tool: ListedTool) -> Tool:
    """A tool as a server lists it, in our record."""
    plain = tool.model_dump(by_alias=True, mode="json", exclude_none=True)
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description or "",
        input_schema=plain.get("inputSchema") or {"type": "object"},
        output_schema=plain.get("outputSchema"),
        annotations=plain.get("annotations") or {},
    )


def quiet() -> None:
    """The SDK logs what our errors say already, a server's banner line by line among it."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _innermost(error: BaseException | None) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return "" if error is None else str(error)[:200] or type(error).__name__
