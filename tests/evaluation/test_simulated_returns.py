"""Tools whose returns an item simulates, beside the executors that stay behind them."""

import asyncio

from harness_cli.evaluation.agents import returns_before
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult


class Started:
    """An executor that has to start something first."""

    def __init__(self) -> None:
        self.warmed: list[str] = []

    async def warm(self, tool: Tool) -> None:
        self.warmed.append(tool.name)

    async def call(self, tool: Tool, arguments: dict, request: Request) -> ToolResult:
        return ToolResult(ok=True, content=f"{tool.name} itself")

    async def close(self) -> None:
        """Nothing to give back."""


def test_only_a_tool_that_really_runs_is_started_before_its_call():
    inner = Started()
    returns = returns_before(inner, {"lookup": "as the item says"})
    lookup, search = (Tool(name=n, description=n) for n in ("lookup", "search"))

    async def go() -> list[str]:
        found = []
        for tool in (lookup, search):
            await returns.warm(tool)
            found.append((await returns.call(tool, {}, Request())).content)
        return found

    assert asyncio.run(go()) == ["as the item says", "search itself"]
    assert inner.warmed == ["search"]


class Ready(Started):
    """One that has not."""

    warm = None


def test_before_an_executor_that_is_ready_there_is_nothing_to_start():
    returns = returns_before(Ready(), {"lookup": "as the item says"})
    assert not hasattr(returns, "warm")
    search = Tool(name="search", description="d")
    assert asyncio.run(returns.call(search, {}, Request())).content == "search itself"
