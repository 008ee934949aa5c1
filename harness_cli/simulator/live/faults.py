"""Injected failures of tools: typed as the real ones are, at set rates, at no cost of wall time.

Whether a call fails follows from the seed of the rollout and the call itself (tool, arguments, how
often it was made), not from the order in which calls run side by side. A call made again is drawn
again, so there is something to recover to.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness_cli.errors import ToolError
from harness_cli.records.canonical import canonical_json
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolErrorKind, ToolResult, Trajectory
from harness_cli.runtime.agent import Executor
from harness_cli.simulator.live.settings import Faults
from harness_cli.simulator.scenarios.draws import generator

INJECTED = (ToolErrorKind.TIMEOUT, ToolErrorKind.MALFORMED, ToolErrorKind.DENIED)


class Faulty:
    """An executor some of whose calls fail."""

    def __init__(self, inner: Executor, faults: Faults, seed: object, *, tool_s: float) -> None:
        self._inner = inner
        self._faults = faults
        self._seed = seed
        self._tool_s = tool_s
        self._made: Counter[str] = Counter()
        self.injected: Counter[str] = Counter()

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:
        """The inner executor's result, or a typed `ToolError`."""
        kind = self._drawn(tool, arguments)
        if kind is None:
            return await self._inner.call(tool, arguments, request)
        self.injected[kind] += 1
        raise ToolError.of(kind, self._words(kind, tool.name))

    async def close(self) -> None:
        """The inner executor's."""
        await self._inner.close()

    def _drawn(self, tool: Tool, arguments: dict[str, Any]) -> str | None:
        key = f"{tool.operation}:{canonical_json(arguments).decode()}"
        self._made[key] += 1
        place = generator(self._seed, "fault", key, self._made[key]).random()
        for kind in INJECTED:
            share = getattr(self._faults, kind.value)
            if place < share:
                return kind.value
            place -= share
        return None

    def _words(self, kind: str, name: str) -> str:
        """What the real executors say of such a failure."""
        return {
            "timeout": f"`{name}` gave no result in {self._tool_s:g} s",
            "malformed": f"`{name}` answered broken JSON: the text ends within a string",
            "denied": f"`{name}` was not permitted: the service answered 403",
        }[kind]


def faulty(
    executors: dict[str, Executor], faults: Faults, seed: object, *, tool_s: float
) -> dict[str, Executor]:
    """Every executor with failures; the same ones where no rate is above 0."""
    if not faults.total:
        return executors
    return {
        kind: Faulty(executor, faults, f"{seed}/{kind}", tool_s=tool_s)
        for kind, executor in executors.items()
    }


def observed(trajectories: Iterable[Trajectory]) -> tuple[Faults, int]:
    """The rates at which calls failed in recorded rollouts, and the calls they are measured on.

    Only calls that reached an executor count: one that the loop itself or a hook refused says
    nothing about the service. Without any call the rates are 0.
    """
    counts: Counter[str] = Counter()
    total = 0
    for trajectory in trajectories:
        for call in trajectory.calls:
            if call.executor in ("", "builtin") or _ours(call.result):
                continue
            total += 1
            counts[call.result.error.value if call.result.error else "ok"] += 1
    shares = {k.value: counts[k.value] / total if total else 0.0 for k in INJECTED}
    return Faults(**shares), total


def _ours(result: ToolResult) -> bool:
    """Refused before it reached the service: bad arguments, or a denial in a hook's words."""
    if result.error is ToolErrorKind.INVALID_ARGUMENTS:
        return True
    return result.error is ToolErrorKind.DENIED and "403" not in result.content
