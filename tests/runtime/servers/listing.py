"""An MCP server by the SDK whose tools stand in a JSON file, read anew at every listing.

listing.py FILE [--http PORT]
"""

import asyncio
import json
import sys
from pathlib import Path

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = Path(sys.argv[1])


async def list_tools(_context, _params):
    found = [types.Tool.model_validate(tool) for tool in json.loads(TOOLS.read_text())]
    return types.ListToolsResult(tools=found)


async def call_tool(_context, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.name)])


server = Server("listing", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


async def stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if "--http" in sys.argv:
    import uvicorn

    port = int(sys.argv[sys.argv.index("--http") + 1])
    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
else:
    asyncio.run(stdio())
