"""Facts that a trajectory shows by itself: calls, loops, hooks, boundaries, routes."""

from collections import Counter
from collections.abc import Iterator

from harness_cli.evolution.failure import Observation
from harness_cli.records.diagnosis import Side
from harness_cli.records.trajectory import Route, StopReason, ToolErrorKind, Trajectory

LOOP = 3
"""The same call with the same arguments so often is a loop."""

_TOOL_SIDE: dict[ToolErrorKind, Side] = {
    ToolErrorKind.TIMEOUT: "tool",
    ToolErrorKind.UNAVAILABLE: "tool",
    ToolErrorKind.MALFORMED: "tool",
    ToolErrorKind.NOT_FOUND: "policy",
    ToolErrorKind.INVALID_ARGUMENTS: "policy",
    ToolErrorKind.DENIED: "harness",
}
_BOUNDARY_SIDE: dict[str, Side] = {
    "provider": "policy",
    "policy": "policy",
    "tool": "tool",
    "hook": "harness",
    "judge": "judge",
    "simulator": "simulator",
    "item": "evalset",
}


def observe_steps(trajectory: Trajectory) -> Iterator[Observation]:
    """Everything the steps show, in no particular order."""
    yield from _calls(trajectory)
    yield from _loops(trajectory)
    yield from _hooks(trajectory)
    yield from _end(trajectory)


def _calls(trajectory: Trajectory) -> Iterator[Observation]:
    for step in trajectory.steps:
        for call in step.calls:
            if call.arguments is None:
                yield Observation(
                    kind="malformed_call",
                    detail=call.name,
                    step=step.index,
                    side="policy",
                    note=f"arguments `{call.arguments_raw[:80]}`",
                )
            elif not call.result.ok:
                error = call.result.error or ToolErrorKind.UNAVAILABLE
                yield Observation(
                    kind="tool_error",
                    detail=f"{call.name}:{error.value}",
                    step=step.index,
                    side=_TOOL_SIDE[error],
                    note=call.result.content[:120],
                )
        if step.error is not None:
            yield Observation(
                kind="provider_error", step=step.index, side="policy", note=step.error[:120]
            )


def _loops(trajectory: Trajectory) -> Iterator[Observation]:
    counts: Counter[tuple[str, str]] = Counter()
    for step in trajectory.steps:
        for call in step.calls:
            counts[(call.name, call.arguments_raw)] += 1
            if counts[(call.name, call.arguments_raw)] == LOOP:
                yield Observation(
                    kind="loop",
                    detail=call.name,
                    step=step.index,
                    side="policy",
                    note="the same call again and again",
                )


def _hooks(trajectory: Trajectory) -> Iterator[Observation]:
    events = [*trajectory.hooks, *(event for step in trajectory.steps for event in step.hooks)]
    seen: set[tuple[str, str]] = set()
    for event in events:
        if event.outcome == "allow" or (event.hook, event.outcome) in seen:
            continue
        seen.add((event.hook, event.outcome))
        yield Observation(
            kind="hook_failed" if event.outcome == "failed" else "hook",
            detail=event.hook if event.outcome == "failed" else f"{event.hook}:{event.outcome}",
            step=event.step if event.step is not None else last_step(trajectory),
            note=event.reason[:160],
        )


def _end(trajectory: Trajectory) -> Iterator[Observation]:
    last = last_step(trajectory)
    if trajectory.errored:
        boundary = (trajectory.error or "policy").partition(":")[0].strip()
        yield Observation(
            kind="errored",
            detail=boundary,
            step=last,
            side=_BOUNDARY_SIDE.get(boundary, "policy"),
            note=(trajectory.error or "")[:160],
        )
    elif trajectory.stop in (
        StopReason.MAX_ROUNDS,
        StopReason.TIMEOUT,
        StopReason.GATE_FAILED,
        StopReason.LOOP,
    ):
        yield Observation(kind="stopped", detail=trajectory.stop.value, step=last)
    if trajectory.route in (Route.COMPACT, Route.CONSERVATIVE):
        yield Observation(kind="fallback", detail=trajectory.route.value, step=last)


def last_step(trajectory: Trajectory) -> int | None:
    """The step in which the reply was made, or should have been."""
    return trajectory.steps[-1].index if trajectory.steps else None
