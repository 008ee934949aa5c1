"""The tool calls of one answer: checked, run side by side, observed in the order of the calls."""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from harness_cli.errors import ToolError
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Route, StopReason, ToolCall, ToolErrorKind, ToolResult
from harness_cli.runtime.agent import Executor
from harness_cli.runtime.arguments import parse_arguments
from harness_cli.runtime.builtin_tools import call_builtin
from harness_cli.runtime.clock import within
from harness_cli.runtime.hooks.check_calls import schema_problem
from harness_cli.runtime.hooks.moment import Asked, Ruling
from harness_cli.runtime.hooks.run import refused
from harness_cli.runtime.messages import assistant_turn, tool_turn
from harness_cli.runtime.session import Ended, Session

T = TypeVar("T")
OURS = ("sandbox", "returns", "evidence")
"""Executors of this package that run in this process and let themselves be cancelled."""
WARM_S = 60.0
"""Above an executor's own limit for starting what a tool needs, which is no part of the call."""
CALLS_CAP = 16
"""Calls of one answer that are run (**choice**); the others are answered *denied*."""
TOO_MANY = f"not called: one answer may hold {CALLS_CAP} calls"
CONTENT_CAP = 64_000
"""Characters of a result that the policy is shown."""


def read_calls(session: Session, reply: ChatReply) -> list[Asked]:
    """The calls of an answer, parsed and matched with the tools that are offered."""
    seen: set[str] = {c.id for c in session.calls}
    asked = []
    for index, raw in enumerate(reply.tool_calls):
        arguments, problem = parse_arguments(raw.arguments)
        asked.append(
            Asked(
                id=_unique(raw, seen, f"call_{len(session.steps)}_{index}"),
                name=raw.name,
                arguments_raw=raw.arguments,
                arguments=arguments,
                problem=problem,
                tool=session.prepared.tools.get(raw.name),
            )
        )
    return asked


def _unique(raw: RawToolCall, seen: set[str], otherwise: str) -> str:
    """The call's own id, or one of ours where it is missing or stands twice."""
    chosen = raw.id if raw.id and raw.id not in seen else otherwise
    seen.add(chosen)
    return chosen


async def run_calls(session: Session, asked: list[Asked], denied: Mapping[int, str]) -> None:
    """Run all calls of the open turn at once and put them and their results into the history.

    `denied` holds the calls that a hook refused, by position. Nothing here raises for what a tool
    does; a hook that ends the rollout does so once every call of the answer has its result.
    """
    first = session.tool_calls
    session.tool_calls += len(asked)
    denied = {**dict.fromkeys(range(CALLS_CAP, len(asked)), TOO_MANY), **denied}
    work = [_one_call(session, call, first + i, denied.get(i)) for i, call in enumerate(asked)]
    outcomes = [await work[0]] if len(work) == 1 else await together(work)
    turn = session.turn
    assert turn is not None
    ending: Ruling | None = None
    for call, rulings in outcomes:
        turn.calls.append(call)
        session.calls.append(call)
        session.see("tool", call)
        for ruling in rulings:
            session.keep_hooks(ruling, of_step=True)
            if ruling.action in ("fallback", "suppress"):
                ending = ending or ruling
    reasoning = session.agent.send_back_reasoning
    session.messages.append(assistant_turn(turn.reply, turn.calls, reasoning=reasoning))
    session.messages.extend(tool_turn(c) for c in turn.calls)
    if ending is not None:
        raise ended_by(ending)


async def together(work: list[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; when one raises (a run's budget is spent) the others are cancelled."""
    tasks = [asyncio.ensure_future(w) for w in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def ended_by(ruling: Ruling) -> Ended:
    """The end of a rollout that hooks asked for."""
    stop = StopReason.LOOP if ruling.check == "loop_stop" else StopReason.GATE_FAILED
    routes = {"suppress": Route.SUPPRESSED, "deny": Route.CONSERVATIVE}
    return Ended(stop, ruling.message, route=routes.get(ruling.action, Route.COMPACT))


async def _one_call(
    session: Session, asked: Asked, index: int, denial: str | None
) -> tuple[ToolCall, list[Ruling]]:
    started = time.monotonic()
    rulings: list[Ruling] = []
    cached = False
    if denial is not None:
        result = refused(ToolErrorKind.DENIED, denial)
    else:
        result, cached = await _checked(session, asked, index, rulings)
    tool = asked.tool
    call = ToolCall(
        id=asked.id,
        name=asked.name,
        arguments_raw=asked.arguments_raw,
        arguments=asked.arguments,
        executor=executor_of(session, tool) if tool else "",
        result=result,
        latency_s=time.monotonic() - started,
        cached=cached,
    )
    return call, rulings


async def _checked(
    session: Session, asked: Asked, index: int, rulings: list[Ruling]
) -> tuple[ToolResult, bool]:
    """Hooks before, the call, hooks after."""
    if asked.tool is None:
        return _no_tool(session, asked.name), False
    ruling, _ = await session.ask_hooks("before_tool", call=asked)
    rulings.append(ruling)
    problem = schema_problem(asked)
    if ruling.action != "allow":
        kind = ToolErrorKind.INVALID_ARGUMENTS if problem else ToolErrorKind.DENIED
        return refused(kind, ruling.message), False
    if problem or asked.arguments is None:
        return refused(ToolErrorKind.INVALID_ARGUMENTS, problem), False
    result, cached = await _run(session, asked.tool, asked.arguments, index)
    ruling, moment = await session.ask_hooks("after_tool", call=asked, result=result)
    rulings.append(ruling)
    if ruling.action != "allow":
        return refused(ToolErrorKind.MALFORMED, ruling.message), cached
    return moment.result or result, cached


async def _run(
    session: Session, tool: Tool, arguments: dict[str, Any], index: int
) -> tuple[ToolResult, bool]:
    kind = executor_of(session, tool)
    if kind == "builtin":
        return call_builtin(session, tool, arguments), False
    names = tool.argument_names
    theirs = {names.get(k, k): v for k, v in arguments.items()} if names else arguments
    meter, limits = session.meter, session.agent.limits

    async def call() -> ToolResult:
        return await run_tool(
            session.agent.executors,
            tool,
            theirs,
            session.request,
            meter.within_whole(limits.tool_s),
            kind=kind,
            warm_s=meter.within_whole(WARM_S),
        )

    return await session.log.tool(index, tool.name, theirs, call)


async def run_tool(
    executors: Mapping[str, Executor],
    tool: Tool,
    arguments: dict[str, Any],
    request: Request,
    seconds: float,
    *,
    kind: str | None = None,
    warm_s: float = WARM_S,
) -> ToolResult:
    """One executor call by our clock; whatever goes wrong is a typed result."""
    kind = kind or tool.executor
    executor = executors.get(kind)
    if executor is None:
        return refused(ToolErrorKind.UNAVAILABLE, f"nothing here runs `{kind}` tools")
    warm = getattr(executor, "warm", None)
    try:
        if warm is not None:
            await within(warm_s, warm(tool))
        work = executor.call(tool, arguments, request)
        if kind in OURS:
            async with asyncio.timeout(seconds):
                return _capped(await work)
        return _capped(await within(seconds, work))
    except TimeoutError:
        return refused(ToolErrorKind.TIMEOUT, f"`{tool.name}` gave no result in {seconds:g} s")
    except ToolError as exc:
        return refused(_kind(exc), str(exc))
    except Exception as exc:  # noqa: BLE001  the boundary to executors: theirs is an observation
        return refused(ToolErrorKind.UNAVAILABLE, f"`{tool.name}` broke: {type(exc).__name__}")


def _kind(exc: ToolError) -> ToolErrorKind:
    known = {k.value for k in ToolErrorKind}
    return ToolErrorKind(exc.kind) if exc.kind in known else ToolErrorKind.UNAVAILABLE


def executor_of(session: Session, tool: Tool) -> str:
    """The kind that runs a tool; those of the lock belong to their servers."""
    if tool.executor == "sandbox" and session.prepared.served(tool.name):
        return "mcp"
    return tool.executor


def _no_tool(session: Session, name: str) -> ToolResult:
    known = ", ".join(sorted(session.prepared.tools))
    return refused(ToolErrorKind.NOT_FOUND, f"no tool named `{name}`; known: {known or 'none'}")


def _capped(result: ToolResult) -> ToolResult:
    if len(result.content) <= CONTENT_CAP:
        return result
    return ToolResult(
        ok=result.ok,
        content=result.content[:CONTENT_CAP] + " … (cut)",
        structured=None,
        error=result.error,
    )
