"""What a rollout needs beside its request: state, policies, executors, limits, a call log."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from harness_cli.models.base import Policy
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply, ChatRequest, Generation
from harness_cli.records.config import Limits
from harness_cli.records.harness import HarnessState, Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult
from harness_cli.runtime.prepared import Prepared, prepare


class Executor(Protocol):
    """Runs the tools of one kind (`sandbox`, `python`, `http`, `mcp`).

    Raises `ToolError` for what goes wrong; the toolbox bounds its time from outside and turns
    every error into a typed result. An executor that has to start something first may have
    `async warm(tool)`, which is awaited before the call and has its own time limit.
    """

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:
        """One call with valid arguments, already under the executor's own names."""
        ...

    async def close(self) -> None:
        """End what was started."""
        ...


class CallLog(Protocol):
    """Stands between the loop and the outside: the engine journals and resumes through it.

    `index` counts the model calls (`model`) or tool calls (`tool`) of one rollout, fallbacks and
    retries by hooks included, so that the same rollout asks the same questions in the same order.
    """

    async def model(
        self, index: int, request: ChatRequest, call: Callable[[], Awaitable[ChatReply]]
    ) -> ChatReply:
        """The recorded answer of model call `index`, or a fresh one from `call`, recorded."""
        ...

    async def tool(
        self,
        index: int,
        name: str,
        arguments: Mapping[str, Any],
        call: Callable[[], Awaitable[ToolResult]],
    ) -> tuple[ToolResult, bool]:
        """The recorded result of tool call `index` (True), or a fresh one (False)."""
        ...


class Direct:
    """The call log that records nothing."""

    async def model(
        self,
        index: int,  # noqa: ARG002  the protocol's signature
        request: ChatRequest,  # noqa: ARG002
        call: Callable[[], Awaitable[ChatReply]],
    ) -> ChatReply:
        """A fresh answer."""
        return await call()

    async def tool(
        self,
        index: int,  # noqa: ARG002
        name: str,  # noqa: ARG002
        arguments: Mapping[str, Any],  # noqa: ARG002
        call: Callable[[], Awaitable[ToolResult]],
    ) -> tuple[ToolResult, bool]:
        """A fresh result."""
        return await call(), False


@dataclass(frozen=True)
class Agent:
    """A policy in a harness, with everything that bounds it. One value serves many rollouts."""

    state: HarnessState
    policy: Policy
    executors: Mapping[str, Executor]
    """Kind of executor → the one that runs it; `builtin` tools are the loop's own."""
    world: Catalogue
    """Product and room configuration for the prompt; facts still come from tools."""
    limits: Limits = field(default_factory=Limits)
    generation: Generation = field(default_factory=Generation)
    fallback: Policy | None = None
    """Answers when one model call of `policy` fails (per-call recovery)."""
    pipeline: str = "default"
    kind: Literal["harness", "react", "bare"] = "harness"
    profile: str = "offline"
    send_back_reasoning: bool = False
    """Send `reasoning_content` of tool turns back, which some servers demand."""
    text_calls: bool = True
    """See `ChatRequest.text_calls`."""
    overlay: tuple[dict[str, Any], ...] = ()
    """Tools of a robustness item, beside those of the state; the executor `returns` runs them."""
    instructions: tuple[str, ...] = ()
    """Instructions of a robustness item, told at the end of the system prompt."""

    @cached_property
    def prepared(self) -> Prepared:
        """The state compiled for this agent, once: tool definitions, hooks, files of commands."""
        return prepare(self.state, kind=self.kind, pipeline=self.pipeline, overlay=self.overlay)
