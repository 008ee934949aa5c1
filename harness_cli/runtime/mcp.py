"""MCP tools: the servers of `tools/mcp.yaml`, each started on first use and restarted once.

Every way a server can fail, dying, printing to stdout, never answering, is a typed error within its
own limits. A tool whose listing differs from `tools/mcp.lock.json` is not called: the policy was
told the locked text. The SDK, half a second of imports, is loaded with the first server.
"""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.errors import ToolError
from harness_cli.harness.tools import tool_digest
from harness_cli.records.harness import LockedTool, McpLock, McpServer, Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolErrorKind, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from harness_cli.runtime.mcp_server import Connection

SERVER = "harness_cli.runtime.mcp_server"
STARTS = 2
"""Starts of one server in the life of an executor; after them it counts as down."""


class Gone(ToolError):
    """The server is not there any more: another start may help."""

    @classmethod
    def of(cls, kind: str, message: str) -> "Gone":
        """The error, which the caller may answer with a restart."""
        error = cls(message)
        error.kind = kind
        return error


class McpExecutor:
    """Calls the tools of MCP servers over stdio or streamable HTTP."""

    def __init__(self, servers: Mapping[str, McpServer], lock: McpLock, *, catalogue: Path) -> None:
        self._servers = dict(servers)
        self._lock = lock
        self._catalogue = catalogue
        self._connections: dict[str, Connection] = {}
        self._starting: dict[str, asyncio.Lock] = {}
        self._starts: dict[str, int] = {}
        self._down: dict[str, ToolError] = {}
        self._drifted: dict[str, str] = {}

    async def start(self) -> list[ToolError]:
        """Start every server that the lock knows, side by side, as a service does before it takes
        requests; what did not start is given back and said again when its tools are called."""
        known = [alias for alias in self._servers if alias in self._lock.servers]
        done = await asyncio.gather(*map(self._connected, known), return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ToolError):
                raise outcome
        return [outcome for outcome in done if isinstance(outcome, ToolError)]

    async def warm(self, tool: Tool) -> None:
        """Start the server of a tool, within the server's own limit and outside any call's."""
        await self._connected(self._alias(tool))

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:
        """The server's answer. A server that died is started once more; a call that may have
        changed something is not made twice."""
        alias = self._alias(tool)
        meta = {"harness/room": request.room.id, "harness/products": list(request.room.products)}
        connection = await self._connected(alias)
        if tool.operation in self._drifted:
            raise ToolError.of("unavailable", self._drifted[tool.operation])
        try:
            return result_of(await connection.call(tool.operation, arguments, meta))
        except Gone:
            if tool.mutates:
                raise
        connection = await self._connected(alias)
        return result_of(await connection.call(tool.operation, arguments, meta))

    async def tools(self, alias: str) -> list[Tool]:
        """What a server lists now, of the tools that are exposed, by name."""
        connection = await self._connected(alias)
        wanted = self._servers[alias].tools
        found = [t for t in await connection.tools() if not wanted or t.name in wanted]
        return sorted(found, key=lambda t: t.name)

    def _alias(self, tool: Tool) -> str:
        """The server of a tool; a renamed tool keeps its operation and so its server."""
        for alias, locked in self._lock.servers.items():
            if tool.operation in locked or any(t.tool.name == tool.name for t in locked.values()):
                return alias
        raise ToolError.of("unavailable", f"no MCP server serves `{tool.name}`")

    async def _connected(self, alias: str) -> "Connection":
        """The living connection of a server, started when there is none."""
        if alias not in self._servers:
            raise ToolError.of("unavailable", f"no MCP server `{alias}` in `tools/mcp.yaml`")
        async with self._starting.setdefault(alias, asyncio.Lock()):
            known = self._connections.get(alias)
            if known is not None and not known.dead:
                return known
            if known is not None:
                await known.close()
                del self._connections[alias]
            if alias in self._down:
                raise self._down[alias]
            return await self._start(alias)

    async def _start(self, alias: str) -> "Connection":
        """Start a server and compare what it lists with the lock."""
        # In a thread: other rollouts of this process have clocks that go on meanwhile.
        server = await asyncio.to_thread(import_module, SERVER)
        server.quiet()
        self._starts[alias] = self._starts.get(alias, 0) + 1
        connection: Connection = server.Connection(
            alias, self._servers[alias], catalogue=self._catalogue
        )
        self._connections[alias] = connection
        try:
            await connection.start()
            if alias in self._lock.servers:
                self._compare(alias, await connection.tools())
        except ToolError as exc:
            if self._starts[alias] >= STARTS:
                self._down[alias] = exc
            raise
        if self._starts[alias] >= STARTS:
            gone = f"the MCP server `{alias}` died {STARTS} times"
            self._down[alias] = ToolError.of("unavailable", gone)
        return connection

    def _compare(self, alias: str, found: list[Tool]) -> None:
        now = {tool.name: tool_digest(tool) for tool in found}
        for name, locked in self._lock.servers[alias].items():
            if now.get(name) != locked.sha256:
                word = "changed" if name in now else "no longer lists"
                self._drifted[name] = (
                    f"the MCP server `{alias}` {word} `{name}` since it was locked; "
                    "see `harness tools check`"
                )

    async def close(self) -> None:
        """End every server that was started."""
        connections, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(c.close() for c in connections))


def result_of(answer: "CallToolResult") -> ToolResult:
    """An MCP answer as ours. `isError` is an error, of the kind its structured content names."""
    texts = [_text(block) for block in answer.content]
    structured = answer.structured_content
    content = "\n".join(t for t in texts if t)
    if not answer.is_error:
        return ToolResult(ok=True, content=content, structured=structured)
    kind = structured.get("error") if isinstance(structured, dict) else None
    known = {k.value: k for k in ToolErrorKind}
    return ToolResult(
        ok=False,
        content=content or "the tool reports an error",
        structured=structured,
        error=known.get(str(kind), ToolErrorKind.UNAVAILABLE),
    )


def _text(block: Any) -> str:
    """A content block as text; what is none is named."""
    text = getattr(block, "text", None)
    return text if isinstance(text, str) else f"[{block.type}]"


def locked(tool: Tool, alias: str) -> LockedTool:
    """A listed tool as the lock keeps it: its digest, and where it runs."""
    meta = {"harness.executor": "mcp", "harness.server": alias, "harness.operation": tool.name}
    kept = Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        meta=meta,
    )
    return LockedTool(sha256=tool_digest(tool), tool=kept)
