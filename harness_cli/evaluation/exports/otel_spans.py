"""Rollouts as OpenTelemetry spans, in the names of the GenAI semantic conventions.

Source: semantic-conventions 1.41, `gen-ai/gen-ai-agent-spans.md` and `gen-ai-spans.md` (status:
development). A rollout is an `invoke_agent` span; below it each model call is a `chat` span, each
tool call an `execute_tool` span and each hook that had something to say a `hook` span. What the
conventions have no name for, hooks among it, is under `harness.`. A trajectory holds durations and
no clock times, so spans are laid one behind another from the moment at which the rollout is known
to have begun or ended.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from harness_cli.evaluation.exports.otel_messages import answer, as_json, message
from harness_cli.records.trajectory import HookEvent, Step, ToolCall, Trajectory

Values = dict[str, Any]
INTERNAL, CLIENT = 1, 3
"""Span kinds."""
ERROR = 2
"""Status code."""
PROVIDER = "harness"
"""`gen_ai.provider.name`: which telemetry flavour this is; the model stands beside it."""
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Exported:
    """A rollout and what is known beside it."""

    trajectory: Trajectory
    source: str
    """Where it comes from (a run's id, a log's line): with the item it makes the trace id."""
    end_ns: int
    """Unix time in nanoseconds at which it ended."""
    run: str | None = None
    state: str | None = None
    scores: dict[str, float | None] = field(default_factory=dict)


def spans(one: Exported, *, content: bool) -> list[Values]:
    """All spans of a rollout in OTLP's JSON form, the root first.

    `content`: also what was said, called and answered, which the conventions leave to an opt-in.
    Trace and span ids follow from the source, so exporting again gives the same ones.
    """
    done = one.trajectory
    trace = _id(16, one.source, done.item_id or done.request_id, str(done.repeat))
    end = one.end_ns
    start = end - _nanos(done.wall_s)
    root = _span(trace, "root", "", f"invoke_agent {done.agent}", INTERNAL, start, end)
    root["attributes"] = attributes(_root(one))
    if done.errored:
        root["status"] = {"code": ERROR, "message": str(done.stop)}
    row = _Row(trace, root["spanId"], start, end, content)
    for number, event in enumerate(e for e in done.hooks if e.event == "request"):
        _hook(row, event, f"hook request {number}")
    for step in done.steps:
        _step(row, step, one)
    for number, event in enumerate(e for e in done.hooks if e.event != "request"):
        _hook(row, event, f"hook {number}")
    made = [root, *row.made]
    last = next((s for s in reversed(made) if s["kind"] == CLIENT), root)
    last["events"] += [_score(name, value, end) for name, value in one.scores.items()]
    return made


def _root(one: Exported) -> Values:
    done = one.trajectory
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.agent.name": done.agent,
        "gen_ai.agent.version": done.harness_id,
        "gen_ai.request.model": _model(done),
        "gen_ai.conversation.id": done.request_id if one.run else None,
        "gen_ai.usage.input_tokens": _total(done, "input_tokens"),
        "gen_ai.usage.output_tokens": _total(done, "output_tokens"),
        "error.type": str(done.stop) if done.errored else None,
        "harness.policy.id": done.policy_id,
        "harness.run": one.run,
        "harness.item": done.item_id,
        "harness.repeat": done.repeat,
        "harness.state": one.state,
        "harness.route": str(done.route),
        "harness.stop": str(done.stop),
        "harness.profile": done.profile,
        "harness.channel": done.channel,
        "harness.skills": list(done.skills_loaded),
    }


@dataclass(slots=True)
class _Row:
    """The children of one root, laid one behind another."""

    trace: str
    parent: str
    at: int
    """When the newest of them ended, Unix nanoseconds."""
    end: int
    """When the rollout ended: no child lasts longer."""
    content: bool
    made: list[Values] = field(default_factory=list)

    def add(self, where: str, name: str, kind: int, seconds: float, told: Values) -> Values:
        """The next child. `where` names it within the trace: its id follows from it."""
        stop = min(self.at + _nanos(seconds), self.end)
        span = _span(self.trace, where, self.parent, name, kind, self.at, stop)
        span["attributes"] = attributes(told)
        self.made.append(span)
        self.at = stop
        return span


_AHEAD, _CALLING = ("before_model",), ("after_model", "before_tool")
"""Events of hooks that run before the model is called, and before tools are."""


def _step(row: _Row, step: Step, one: Exported) -> None:
    """A model call, the tool calls that it asked for, and the hooks around them."""
    hooks = list(enumerate(step.hooks))
    for number, event in hooks:
        if event.event in _AHEAD:
            _hook(row, event, f"hook {step.index} {number}", step.index)
    name = f"chat {_model(one.trajectory)}"
    told = _chat(step, one, row.content)
    chat = row.add(f"chat {step.index}", name, CLIENT, step.reply.latency_s, told)
    if step.error:
        chat["status"] = {"code": ERROR, "message": step.error.partition(":")[0]}
    for number, event in hooks:
        if event.event in _CALLING:
            _hook(row, event, f"hook {step.index} {number}", step.index)
    for number, call in enumerate(step.calls):
        told = {**_tool(call, row.content), "harness.step": step.index}
        name = f"execute_tool {call.name}"
        tool = row.add(f"tool {step.index} {number}", name, INTERNAL, call.latency_s, told)
        if not call.result.ok:
            tool["status"] = {"code": ERROR, "message": str(call.result.error or "_OTHER")}
    for number, event in hooks:
        if event.event not in (*_AHEAD, *_CALLING):
            _hook(row, event, f"hook {step.index} {number}", step.index)


def _chat(step: Step, one: Exported, content: bool) -> Values:
    reply, usage, done = step.reply, step.reply.usage, one.trajectory
    told: Values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": _model(done),
        "gen_ai.response.model": reply.model or reply.policy or None,
        "gen_ai.response.finish_reasons": [reply.finish_reason],
        "gen_ai.response.time_to_first_chunk": reply.ttft_s,
        "gen_ai.conversation.id": done.request_id if one.run else None,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "error.type": step.error.partition(":")[0] if step.error else None,
        "harness.fallback": step.fallback or None,
        "harness.attempts": reply.attempts if reply.attempts > 1 else None,
        "harness.replayed": reply.cached or None,
        "harness.step": step.index,
    }
    if content:
        said = [message(m) for m in step.messages]
        told["gen_ai.input.messages"] = as_json(said)
        told["gen_ai.output.messages"] = as_json([answer(reply)])
    return told


def _tool(call: ToolCall, content: bool) -> Values:
    failed = None if call.result.ok else str(call.result.error or "_OTHER")
    told: Values = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call.id,
        "error.type": failed,
        "harness.executor": call.executor or None,
    }
    if content:
        told["gen_ai.tool.call.arguments"] = call.arguments_raw
        told["gen_ai.tool.call.result"] = call.result.content
    return told


def _hook(row: _Row, event: HookEvent, where: str, step: int | None = None) -> None:
    """A hook's decision. One that broke is an error; an objection is its work."""
    broke = event.outcome == "failed"
    told: Values = {
        "harness.hook": event.hook,
        "harness.hook.event": event.event,
        "harness.hook.outcome": event.outcome,
        "harness.hook.check": event.check,
        "harness.hook.reason": event.reason or None if row.content else None,
        "harness.step": event.step if step is None else step,
        "error.type": "hook_failed" if broke else None,
    }
    span = row.add(where, f"hook {event.hook}", INTERNAL, event.latency_s, told)
    if broke:
        span["status"] = {"code": ERROR, "message": "hook_failed"}


def _score(name: str, value: float | None, at: int) -> Values:
    told = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
    return {
        "timeUnixNano": str(at),
        "name": "gen_ai.evaluation.result",
        "attributes": attributes(told),
    }


def attributes(values: Values) -> list[Values]:
    """Plain values as OTLP's; None and empty lists are left out: nothing was said."""
    kept = {k: v for k, v in values.items() if v is not None and v != [] and v != ""}
    return [{"key": key, "value": _typed(value)} for key, value in kept.items()]


def _typed(value: Any) -> Values:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(v) for v in value]}}
    return {"stringValue": str(value)}


def _span(
    trace: str, where: str, parent: str, name: str, kind: int, start: int, end: int
) -> Values:
    made: Values = {
        "traceId": trace,
        "spanId": _id(8, trace, where),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": [],
        "events": [],
    }
    return {**made, "parentSpanId": parent} if parent else made


def _id(size: int, *parts: str) -> str:
    """Hex of `size` bytes; never all zeros, which would be no id."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[: 2 * size]


def _model(done: Trajectory) -> str:
    return done.policy_id.partition("@")[0] or "unknown"


def _total(done: Trajectory, name: str) -> int | None:
    known = [getattr(step.reply.usage, name) for step in done.steps]
    return None if None in known or not known else sum(known)


def _nanos(seconds: float) -> int:
    return max(0, round(seconds * NANO))
