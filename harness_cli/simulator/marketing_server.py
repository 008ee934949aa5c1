"""The marketing service as an MCP server: a process of its own, over stdio or streamable HTTP.

    python -m harness_cli.simulator.marketing_server --catalogue DIR [--http PORT]

The live room of a call travels in its `_meta` (`harness/room`, `harness/products`), which the
runtime fills in: a policy never names a room. Both the stateless protocol revision and older
`initialize` clients are served, by the SDK.
"""

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from harness_cli.errors import ToolError
from harness_cli.harness.tools import value_errors
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.marketing_tools import TOOLS
from harness_cli.store.catalogue import read_catalogue

NAME = "marketing"


def build_server(marketing: Marketing) -> Server[Any]:
    """The server on one catalogue."""
    schemas = {tool["name"]: tool["inputSchema"] for tool in TOOLS}
    listed = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in TOOLS])

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        try:
            if params.name in schemas and (wrong := value_errors(schemas[params.name], arguments)):
                raise ToolError.of("invalid_arguments", "; ".join(wrong[:3]))
            room, products = room_of(params)
            return _result(marketing.answer(params.name, arguments, room, products))
        except ToolError as exc:
            return _result({"error": exc.kind, "message": str(exc)}, failed=True)

    return Server(NAME, version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def room_of(params: types.CallToolRequestParams) -> tuple[str, tuple[str, ...]]:
    """The room of a call and its products, from the metadata of the request."""
    meta: dict[str, Any] = dict(params.meta or {})
    room = meta.get("harness/room")
    products = meta.get("harness/products") or ()
    if not room and not products:
        raise ToolError.of("unavailable", "the call names no live room in `_meta`")
    return str(room or ""), tuple(str(p) for p in products)


def _result(value: dict[str, Any], *, failed: bool = False) -> types.CallToolResult:
    text = value["message"] if failed else json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=value,
        is_error=failed,
    )


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over stdin and stdout, until it closes them."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http(server: Server[Any], port: int) -> None:
    """Serve any client on the loopback interface, at `/mcp`."""
    import uvicorn

    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")


def main() -> None:
    """Read the options, then serve."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--catalogue", type=Path, required=True, metavar="DIR")
    options.add_argument("--http", type=int, metavar="PORT", help="HTTP instead of stdio")
    chosen = options.parse_args()
    server = build_server(Marketing(read_catalogue(chosen.catalogue)))
    if chosen.http is None:
        asyncio.run(serve_stdio(server))
        # Nothing is open any more, and tearing the SDK down takes longer than a client waits.
        os._exit(0)
    else:
        serve_http(server, chosen.http)


if __name__ == "__main__":
    main()
