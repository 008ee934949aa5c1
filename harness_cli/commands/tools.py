"""`harness tools`: lock what MCP servers list, check it for drift, call a tool."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import tool_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted

if TYPE_CHECKING:
    from harness_cli.records.request import Request
    from harness_cli.runtime.mcp_lock import Change
    from harness_cli.store.project import Project

DRIFT = 12
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Server = Annotated[str | None, typer.Option("--server", help="Only this alias of mcp.yaml.")]


@app.callback()
def group() -> None:
    """Lock, check and call tools."""


@app.command(name="lock")
def lock_tools(
    server: Server = None, directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False
) -> None:
    """Write down what the MCP servers list, so that drift shows."""
    import asyncio

    from harness_cli.commands._show import emit_json, note
    from harness_cli.records.harness import McpLock
    from harness_cli.runtime import mcp_lock
    from harness_cli.store.project import Project

    project = Project.find(directory)
    before = mcp_lock.read_lock(project.harness)
    servers = mcp_lock.read_servers(project.harness)
    listing = mcp_lock.list_servers(servers, catalogue=project.evalsets / "catalogue", only=server)
    now = asyncio.run(listing)
    kept = {a: t for a, t in before.servers.items() if server and a != server and a in servers}
    after = McpLock(servers={**kept, **now.servers})
    found = mcp_lock.changes(before, after)
    path = mcp_lock.write_lock(project.harness, after)
    if as_json:
        emit_json({"path": str(path), "servers": _digests(after), "changes": found})
        return
    _show_changes(found)
    if not quiet:
        count = sum(len(tools) for tools in after.servers.values())
        note(
            f"{counted(count, 'tool')} of {counted(len(after.servers), 'server')} locked in {path}"
        )


@app.command(name="check")
def check_tools(
    server: Server = None, directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False
) -> None:
    """Compare what the MCP servers list now with the lock; exit 12 on drift."""
    import asyncio

    from harness_cli.commands._show import emit_json, note
    from harness_cli.records.harness import McpLock
    from harness_cli.runtime import mcp_lock
    from harness_cli.store.project import Project

    project = Project.find(directory)
    servers = mcp_lock.read_servers(project.harness)
    before = mcp_lock.read_lock(project.harness)
    if server is not None:
        before = McpLock(servers={a: t for a, t in before.servers.items() if a == server})
    catalogue = project.evalsets / "catalogue"
    listing = mcp_lock.list_servers(servers, catalogue=catalogue, only=server, complete=False)
    found = mcp_lock.changes(before, asyncio.run(listing))
    if as_json:
        emit_json({"drift": bool(found), "changes": found})
    else:
        _show_changes(found)
        if found:
            note("if this is meant: `harness tools lock`, then commit the lock")
        elif not quiet:
            note("every server lists what was locked")
    if found:
        raise typer.Exit(DRIFT)


@app.command(name="call")
def call_tool(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A tool of the harness.", autocompletion=tool_names),
    ],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="Its arguments.")] = "{}",
    room: Annotated[str | None, typer.Option(help="Live room; default: the first.")] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,  # noqa: ARG001  one spelling for every verb
) -> None:
    """Call one tool, whatever runs it; exit 1 when it gives an error."""
    import asyncio

    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import UsageError
    from harness_cli.runtime.arguments import parse_arguments
    from harness_cli.store.project import Project

    project = Project.find(directory)
    parsed, problem = parse_arguments(arguments)
    if parsed is None:
        raise UsageError(problem, hint="such as '{\"link_id\": 1}'")
    result = asyncio.run(_call(project, name, parsed, _request(project, room)))
    if as_json:
        emit_json(result)
    else:
        line(result.content if result.ok else f"error ({result.error}): {result.content}")
    if not result.ok:
        raise typer.Exit(1)


async def _call(  # type: ignore[no-untyped-def]
    project: "Project", name: str, arguments: dict[str, object], request: "Request"
):
    """One call, validated and bounded as in a rollout."""
    from harness_cli.errors import UnknownName, UsageError
    from harness_cli.evaluation.agents import open_executors
    from harness_cli.harness.load import load_state
    from harness_cli.harness.tools import argument_errors
    from harness_cli.runtime.toolbox import run_tool
    from harness_cli.store.catalogue import read_catalogue

    state = load_state(project)
    tools = {tool.name: tool for tool in state.all_tools()}
    if name not in tools:
        raise UnknownName.of("tool", name, tools)
    wrong = argument_errors(tools[name], arguments)
    if wrong:
        raise UsageError("; ".join(wrong), hint=f"`harness show tool {name}` has its schema")
    folder = project.evalsets / "catalogue"
    executors = open_executors(state, read_catalogue(folder), catalogue=folder)
    try:
        return await run_tool(
            executors, tools[name], arguments, request, project.limits("offline").tool_s
        )
    finally:
        for executor in executors.values():
            await executor.close()


def _request(project: "Project", room: str | None) -> "Request":
    """A request in a room of the catalogue."""
    from harness_cli.errors import UnknownName
    from harness_cli.records.request import Request, Room
    from harness_cli.store.catalogue import read_catalogue

    world = read_catalogue(project.evalsets / "catalogue")
    found = world.room(room) if room else next(iter(world.rooms), None)
    if found is None:
        if room:
            raise UnknownName.of("room", room, [r.id for r in world.rooms])
        return Request()
    return Request(room=Room(id=found.id, products=found.products, current_link=1))


def _digests(lock) -> dict[str, dict[str, str]]:  # type: ignore[no-untyped-def]
    return {a: {n: t.sha256 for n, t in tools.items()} for a, tools in lock.servers.items()}


def _show_changes(found: "list[Change]") -> None:
    from harness_cli.commands._show import table

    rows = []
    for change in found:
        keys = change.keys or {"": ("", "")}
        for key, (before, now) in keys.items():
            rows.append((change.server, change.tool, change.what, key, _short(before), _short(now)))
    if rows:
        table(("server", "tool", "what", "key", "locked", "now"), rows)


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 120 else text[:117] + "…"
