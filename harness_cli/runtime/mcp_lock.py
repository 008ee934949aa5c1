"""`tools/mcp.lock.json`: what MCP servers listed when a person last looked, and what differs."""

from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile, UnknownName
from harness_cli.harness.tools import tool_digest
from harness_cli.records.canonical import write_json
from harness_cli.records.harness import LockedTool, McpFile, McpLock, McpServer, Tool
from harness_cli.records.reader import read_json, read_yaml
from harness_cli.runtime.mcp import McpExecutor, locked

SERVERS, LOCK = "tools/mcp.yaml", "tools/mcp.lock.json"
LISTED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What a digest covers (FORMATS, *Tools and MCP*)."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One listed tool that is not as it was locked."""

    server: str
    tool: str
    what: str
    """added, removed, renamed, changed, or `lock edited by hand`. A tool that is another name's
    equal in all else is renamed: `tool` is its locked name."""
    keys: dict[str, tuple[Any, Any]] = {}
    """Key → what was locked, what is listed now."""


def read_servers(harness: Path) -> dict[str, McpServer]:
    """The servers of `tools/mcp.yaml`; none when there is no such file."""
    path = harness / SERVERS
    if not path.is_file():
        return {}
    return read_yaml(path, McpFile, name=SERVERS).servers


def read_lock(harness: Path) -> McpLock:
    """The lock as it stands; an empty one when nothing was locked yet."""
    path = harness / LOCK
    if not path.is_file():
        return McpLock()
    lock = read_json(path, McpLock, name=LOCK)
    if lock.schema != 1:
        raise BadFile(f"{LOCK}: schema {lock.schema} is not known", hint="this is 1")
    return lock


def write_lock(harness: Path, lock: McpLock) -> Path:
    """Write the lock, whole or not at all."""
    path = harness / LOCK
    write_json(path, lock)
    return path


async def list_servers(
    servers: dict[str, McpServer],
    *,
    catalogue: Path,
    only: str | None = None,
    complete: bool = True,
) -> McpLock:
    """What every server (or `only` one) lists now, as a lock. `ToolError` when one fails.

    A tool that `mcp.yaml` names and no server lists is a `BadFile`, but where the listing is held
    against a lock (`complete=False`): there it has gone, which is what the lock is for.
    """
    if only is not None and only not in servers:
        raise UnknownName.of("MCP server", only, servers)
    chosen = {alias: s for alias, s in servers.items() if only in (None, alias)}
    executor = McpExecutor(chosen, McpLock(), catalogue=catalogue)
    try:
        found = {alias: await executor.tools(alias) for alias in sorted(chosen)}
    finally:
        await executor.close()
    _all_there(chosen, found, complete=complete)
    return McpLock(servers={a: {t.name: locked(t, a) for t in tools} for a, tools in found.items()})


def _all_there(
    servers: dict[str, McpServer], found: dict[str, list[Tool]], *, complete: bool
) -> None:
    """Every tool that `mcp.yaml` names is listed, and no name stands under two servers."""
    owner: dict[str, str] = {}
    for alias, tools in found.items():
        names = {t.name for t in tools}
        missing = [name for name in servers[alias].tools if name not in names]
        if missing and complete:
            raise BadFile(f"{SERVERS}: the server `{alias}` lists no `{missing[0]}`")
        for name in sorted(names):
            if name in owner:
                raise BadFile(
                    f"{SERVERS}: `{owner[name]}` and `{alias}` both list `{name}`",
                    hint="name the tools to expose under `tools`",
                )
            owner[name] = alias


def changes(lock: McpLock, now: McpLock) -> list[Change]:
    """How the listing differs from the lock; empty when it does not."""
    found: list[Change] = []
    for alias in sorted({*lock.servers, *now.servers}):
        before, after = lock.servers.get(alias, {}), now.servers.get(alias, {})
        renamed = _renamed(before, after)
        found += [
            Change(server=alias, tool=old, what="renamed", keys={"name": (old, new)})
            for old, new in renamed.items()
        ]
        for name in sorted({*before, *after} - {*renamed, *renamed.values()}):
            if name not in after:
                found.append(Change(server=alias, tool=name, what="removed"))
            elif name not in before:
                found.append(Change(server=alias, tool=name, what="added"))
            elif tool_digest(before[name].tool) != before[name].sha256:
                found.append(Change(server=alias, tool=name, what="lock edited by hand"))
            elif before[name].sha256 != after[name].sha256:
                keys = _keys(before[name].tool, after[name].tool)
                found.append(Change(server=alias, tool=name, what="changed", keys=keys))
    return found


def _renamed(before: dict[str, LockedTool], after: dict[str, LockedTool]) -> dict[str, str]:
    """Old name → new name of tools that went and came and are equal in all but their names."""
    came = {name: after[name].tool for name in sorted(after.keys() - before.keys())}
    found: dict[str, str] = {}
    for old in sorted(before.keys() - after.keys()):
        for new, tool in came.items():
            if new not in found.values() and _keys(before[old].tool, tool).keys() == {"name"}:
                found[old] = new
                break
    return found


def _keys(before: Tool, after: Tool) -> dict[str, tuple[Any, Any]]:
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    return {key: (old.get(key), new.get(key)) for key in LISTED if old.get(key) != new.get(key)}
