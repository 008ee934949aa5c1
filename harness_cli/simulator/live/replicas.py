"""The services of a room as replicas in this process, answered from one moment of its catalogue."""

import json
from typing import Any

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.harness import HarnessState, Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult
from harness_cli.runtime.agent import Executor
from harness_cli.runtime.python import PythonExecutor
from harness_cli.simulator.marketing import Marketing
from harness_cli.simulator.sandbox import SandboxExecutor


class MarketingReplica:
    """The tools of the marketing server, without the server."""

    def __init__(self, world: Catalogue) -> None:
        self._marketing = Marketing(world)

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:
        """One call on the request's room; raises a typed `ToolError` for what it cannot answer."""
        room = request.room
        found = self._marketing.answer(tool.operation, arguments, room.id, room.products)
        return ToolResult(ok=True, content=json.dumps(found, ensure_ascii=False), structured=found)

    async def close(self) -> None:
        """Nothing was started."""


def replicas(state: HarnessState, world: Catalogue) -> dict[str, Executor]:
    """An executor for every kind of tool that a room can serve.

    Tools over HTTP have none: a simulated room calls nothing outside, they are *unavailable*.
    """
    found: dict[str, Executor] = {
        "sandbox": SandboxExecutor(world),
        "mcp": MarketingReplica(world),
    }
    if any(tool.executor == "python" for tool in state.tools):
        found["python"] = PythonExecutor(state.files)
    return found
