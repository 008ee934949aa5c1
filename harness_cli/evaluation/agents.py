"""An agent from a project: state, policy and fallback, executors, limits, an item's overlay."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from harness_cli.errors import UsageError
from harness_cli.models.base import Policy
from harness_cli.models.generation import generation_of
from harness_cli.models.open import open_policy
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.config import PolicyConfig
from harness_cli.records.harness import HarnessState, Tool
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolErrorKind, ToolResult
from harness_cli.runtime.agent import Agent, Executor
from harness_cli.store.project import Project

if TYPE_CHECKING:
    from harness_cli.evaluation.variants import StateSource

AgentKind = Literal["harness", "react", "bare"]


@asynccontextmanager
async def open_agent(
    project: Project,
    state: HarnessState,
    policy_name: str | None = None,
    *,
    world: Catalogue,
    profile: str = "offline",
    kind: AgentKind = "harness",
    seed: int | None = None,
    catalogue: Path | None = None,
    record: Path | None = None,
    replay: Path | None = None,
    started: bool = False,
) -> AsyncIterator[Agent]:
    """The agent of a policy in a harness; what was started is given back at the end.

    `record` keeps every answer in a cassette, `replay` takes every answer from one. `started`: its
    tool servers are there before the first request, whose time is theirs no more. Raises
    `UnknownName` for a policy, fallback or profile that is not in harness.yaml.
    """
    name, config = project.policy(policy_name)
    async with AsyncExitStack() as stack:
        policy = _policy(project, name, config, record=record, replay=replay)
        stack.push_async_callback(policy.close)
        check_tools = getattr(policy, "check_tools", None)
        if check_tools is not None and kind != "bare":
            check_tools()
        fallback = None
        if config.fallback is not None and replay is None:
            other, its_config = project.policy(config.fallback)
            if other == name:
                raise UsageError(f"the policy `{name}` is its own fallback")
            fallback = open_policy(other, its_config, root=project.root)
            stack.push_async_callback(fallback.close)
        folder = catalogue or project.evalsets / "catalogue"
        executors = open_executors(state, world, catalogue=folder) if kind != "bare" else {}
        for executor in executors.values():
            stack.push_async_callback(executor.close)
        start = getattr(executors.get("mcp"), "start", None)
        if started and start is not None:
            await start()
        yield Agent(
            state=state,
            policy=policy,
            executors=executors,
            world=world,
            limits=project.limits(profile),
            generation=generation_of(config, seed),
            fallback=fallback,
            pipeline=config.pipeline,
            kind=kind,
            profile=profile,
            send_back_reasoning=config.send_back_reasoning,
        )


def open_executors(
    state: HarnessState, world: Catalogue, *, catalogue: Path
) -> dict[str, Executor]:
    """One executor for each kind that the state's tools name; none is started before its use."""
    kinds = {tool.executor for tool in state.all_tools()}
    found: dict[str, Executor] = {}
    if "sandbox" in kinds:
        from harness_cli.simulator.sandbox import SandboxExecutor

        found["sandbox"] = SandboxExecutor(world)
    if "python" in kinds:
        from harness_cli.runtime.python import PythonExecutor

        found["python"] = PythonExecutor(state.files)
    if "http" in kinds:
        from harness_cli.runtime.http import HttpExecutor

        found["http"] = HttpExecutor()
    if state.mcp:
        from harness_cli.runtime.mcp import McpExecutor

        found["mcp"] = McpExecutor(state.mcp, state.lock, catalogue=catalogue)
    return found


def for_item(agent: Agent, item: Item, states: "StateSource | None" = None) -> Agent:
    """The agent under which one item runs: its state, overlay and simulated tool returns."""
    if item.state is not None:
        if states is None:
            raise UsageError(f"`{item.id}` names the state `{item.state}`, its evalset has none")
        agent = replace(agent, state=states.state(item.state))
    overlay = item.overlay
    if not (overlay.tools or overlay.instructions or item.tool_returns):
        return agent
    executors: dict[str, Executor] = {
        kind: returns_before(executor, item.tool_returns)
        for kind, executor in agent.executors.items()
    }
    executors["returns"] = Returns(item.tool_returns, None)
    made = replace(
        agent,
        executors=executors,
        overlay=(*agent.overlay, *overlay.tools),
        instructions=(*agent.instructions, *overlay.instructions),
    )
    if not overlay.tools:
        # What is compiled depends on the state and the overlay alone: no need to do it again.
        made.__dict__["prepared"] = agent.prepared
    return made


class Returns:
    """Answers the tools of a simulated tool-return map; passes the others on.

    A value of the map is what the tool returns: text, or JSON; an object with `ok` is a whole
    `ToolResult` (`{"ok": false, "error": "timeout", "content": "…"}`).
    """

    def __init__(self, returns: Mapping[str, Any], inner: Executor | None) -> None:
        self._returns = returns
        self._inner = inner

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:
        """The simulated return, else the real executor's."""
        if tool.name in self._returns:
            return simulated(self._returns[tool.name])
        if self._inner is None:
            return ToolResult(
                ok=False,
                content=f"no return is simulated for `{tool.name}`",
                error=ToolErrorKind.UNAVAILABLE,
            )
        return await self._inner.call(tool, arguments, request)

    async def close(self) -> None:
        """The inner executor belongs to the agent."""


class WarmReturns(Returns):
    """The same before an executor that has to start something first."""

    def __init__(
        self,
        returns: Mapping[str, Any],
        inner: Executor,
        warm: Callable[[Tool], Awaitable[None]],
    ) -> None:
        super().__init__(returns, inner)
        self._warm = warm

    async def warm(self, tool: Tool) -> None:
        """Start what the tool needs, unless its return is simulated."""
        if tool.name not in self._returns:
            await self._warm(tool)


def returns_before(inner: Executor, given: Mapping[str, Any]) -> Returns:
    """Simulated returns before an executor: warmed where that one is, for a task each call."""
    warm = getattr(inner, "warm", None)
    return Returns(given, inner) if warm is None else WarmReturns(given, inner, warm)


def simulated(value: Any) -> ToolResult:
    """A tool result from an entry of `tool_returns`."""
    if isinstance(value, dict) and "ok" in value:
        return msgspec.convert({"content": "", **value}, ToolResult)
    if isinstance(value, str):
        return ToolResult(ok=True, content=value)
    return ToolResult(ok=True, content=msgspec.json.encode(value).decode(), structured=value)


def _policy(
    project: Project,
    name: str,
    config: PolicyConfig,
    *,
    record: Path | None,
    replay: Path | None,
) -> Policy:
    if replay is not None:
        from harness_cli.models.cassette import ReplayPolicy

        return ReplayPolicy(replay)
    policy = open_policy(name, config, root=project.root)
    if record is not None:
        from harness_cli.models.cassette import RecordingPolicy

        return RecordingPolicy(policy, record)
    return policy
