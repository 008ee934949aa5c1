"""Rollouts as OpenTelemetry spans, in the names of the GenAI semantic conventions.

Source: semantic-conventions 1.41, `gen-ai/gen-ai-agent-spans.md` and `gen-ai-spans.md` (status:
development). A rollout is an `invoke_agent` span; below it each model call is a `chat` span and
each tool call an `execute_tool` span. What the conventions have no name for is under `harness.`.
A trajectory holds durations and no clock times, so spans are laid one behind another from the
moment at which the rollout is known to have begun or ended.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.records.chat import ChatReply
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
    root["events"] = [_hook(event, start, content) for event in done.hooks]
    if done.errored:
        root["status"] = {"code": ERROR, "message": str(done.stop)}
    made, at = [root], start
    for step in done.steps:
        chat, tools, at = _step(step, trace, root["spanId"], at, end, one, content)
        made += [chat, *tools]
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


def _step(
    step: Step, trace: str, parent: str, at: int, end: int, one: Exported, content: bool
) -> tuple[Values, list[Values], int]:
    """A model call, the tool calls that it asked for, and when the last of them ended."""
    reply = step.reply
    answered = min(at + _nanos(reply.latency_s), end)
    name = f"chat {_model(one.trajectory)}"
    chat = _span(trace, f"chat {step.index}", parent, name, CLIENT, at, answered)
    chat["attributes"] = attributes(_chat(step, one, content))
    chat["events"] = [_hook(event, answered, content) for event in step.hooks]
    if step.error:
        chat["status"] = {"code": ERROR, "message": step.error.partition(":")[0]}
    tools, last = [], answered
    for number, call in enumerate(step.calls):
        stop = min(last + _nanos(call.latency_s), end)
        where = f"tool {step.index} {number}"
        tool = _span(trace, where, parent, f"execute_tool {call.name}", INTERNAL, last, stop)
        tool["attributes"] = attributes(_tool(call, content))
        if not call.result.ok:
            tool["status"] = {"code": ERROR, "message": str(call.result.error or "_OTHER")}
        tools.append(tool)
        last = stop
    return chat, tools, last


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
    }
    if content:
        said = [_message(m) for m in step.messages]
        told["gen_ai.input.messages"] = _json(said)
        told["gen_ai.output.messages"] = _json([_answer(reply)])
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


def _hook(event: HookEvent, at: int, content: bool) -> Values:
    told: Values = {
        "harness.hook": event.hook,
        "harness.hook.event": event.event,
        "harness.hook.outcome": event.outcome,
        "harness.hook.check": event.check,
        "harness.hook.reason": event.reason or None if content else None,
    }
    return {"timeUnixNano": str(at), "name": "harness.hook", "attributes": attributes(told)}


def _score(name: str, value: float | None, at: int) -> Values:
    told = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value}
    return {
        "timeUnixNano": str(at),
        "name": "gen_ai.evaluation.result",
        "attributes": attributes(told),
    }


def _message(message: Values) -> Values:
    """An OpenAI message as the conventions have it: a role and parts."""
    text = message.get("content")
    shown = text if isinstance(text, str) else _json(text)
    if message.get("role") == "tool":
        part = {
            "type": "tool_call_response",
            "id": str(message.get("tool_call_id") or ""),
            "response": shown,
        }
        return {"role": "tool", "parts": [part]}
    parts: list[Values] = [{"type": "text", "content": shown}] if text else []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        parts.append(_asked(call.get("id"), function.get("name"), function.get("arguments")))
    return {"role": str(message.get("role")), "parts": parts}


def _answer(reply: ChatReply) -> Values:
    parts: list[Values] = []
    if reply.reasoning:
        parts.append({"type": "reasoning", "content": reply.reasoning})
    if reply.content:
        parts.append({"type": "text", "content": reply.content})
    parts += [_asked(call.id, call.name, call.arguments) for call in reply.tool_calls]
    return {"role": "assistant", "parts": parts, "finish_reason": reply.finish_reason}


def _asked(call_id: Any, name: Any, arguments: Any) -> Values:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


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


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
