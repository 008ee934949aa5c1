"""The tools of one live room as an MCP server over stdio.

    python -m harness_cli.simulator.mcp_server [-C DIR] [--seed N] [--room ROOM]

One process is one room at one moment: that of the first request its seed comes to, which the tool
`room_request` shows. Its tools are those of the harness (names, descriptions, schemas), answered
from the room's own catalogue; the loop's own tools (`load_skill`, `refuse`) are not among them.
Failures are injected at the rates of `--faults`, none by default.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from harness_cli.errors import HarnessError
from harness_cli.records.harness import Tool
from harness_cli.records.trajectory import ToolResult
from harness_cli.simulator.live.settings import Faults, Settings
from harness_cli.simulator.rooms import Rooms, open_rooms
from harness_cli.simulator.sessions import Session, Sessions, Start

NAME = "live-room"
REQUEST = "room_request"
_ASKED: dict[str, Any] = {
    "name": REQUEST,
    "title": "What the room asks",
    "description": "The comments to answer and the room they were made in.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}


def build_server(sessions: Sessions, session: Session) -> Server[Any]:
    """The server of one session."""
    episode = session.environment.episode
    assert episode is not None
    tools = [_listed(t) for t in episode.drawn.state.all_tools() if t.executor != "builtin"]
    listed = types.ListToolsResult(
        tools=[types.Tool.model_validate(tool) for tool in [_ASKED, *tools]]
    )

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == REQUEST:
            return _result(_asked(session))
        return _result(await sessions.call(session.id, params.name, dict(params.arguments or {})))

    return Server(NAME, version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def _listed(tool: Tool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
    }
    if tool.output_schema is not None:
        shown["outputSchema"] = tool.output_schema
    return shown


def _asked(session: Session) -> ToolResult:
    item = session.environment.item
    assert item is not None
    shown = {
        "comments": [msgspec.to_builtins(c) for c in item.request.comments],
        "room": msgspec.to_builtins(item.request.room),
        "host_said": list(item.request.anchor),
        "viewer_actions": [msgspec.to_builtins(e) for e in item.request.events],
    }
    return ToolResult(ok=True, content=json.dumps(shown, ensure_ascii=False), structured=shown)


def _result(result: ToolResult) -> types.CallToolResult:
    structured = result.structured if isinstance(result.structured, dict) else None
    if not result.ok:
        structured = {"error": str(result.error), "message": result.content}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.content)],
        structured_content=structured,
        is_error=not result.ok,
    )


async def serve_stdio(rooms: Rooms, start: Start) -> None:
    """One room over stdin and stdout, until the client closes them."""
    sessions = Sessions(rooms)
    session = await sessions.open(start)
    server = build_server(sessions, session)
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await sessions.close_all()


def main(argv: list[str] | None = None) -> int:
    """Parse, open the project, serve."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.simulator.mcp_server", description="A room's tools over MCP."
    )
    parser.add_argument("-C", dest="folder", type=Path, default=Path(), help="the project")
    parser.add_argument("--harness", metavar="REV", help="its harness at this revision")
    parser.add_argument("--seed", type=int, default=0, help="which room and moment")
    parser.add_argument("--room", help="this room of the catalogue")
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls that time out")
    chosen = parser.parse_args(argv)
    try:
        rooms = open_rooms(chosen.folder, rev=chosen.harness, rewards=False)
        calm = Settings(faults=Faults(timeout=chosen.faults, malformed=0, denied=0))
        rooms = Rooms(
            rooms.shop, rooms.draws, None, msgspec.structs.replace(calm, room=chosen.room)
        )
        asyncio.run(serve_stdio(rooms, Start(seed=chosen.seed)))
    except HarnessError as exc:
        sys.stderr.write(f"error: {exc}\n" + (f"hint: {exc.hint}\n" if exc.hint else ""))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
