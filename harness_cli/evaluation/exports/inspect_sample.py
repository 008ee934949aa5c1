"""One rollout as a sample of an inspect log: messages, output, scores, and ours beside them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.evaluation.report import why_failed
from harness_cli.records.chat import ChatReply, Message
from harness_cli.records.item import Item
from harness_cli.records.run import Report
from harness_cli.records.trajectory import Step, StopReason, ToolErrorKind, Trajectory
from harness_cli.records.verdict import ItemResult

ERRORS = {
    ToolErrorKind.TIMEOUT: "timeout",
    ToolErrorKind.MALFORMED: "parsing",
    ToolErrorKind.INVALID_ARGUMENTS: "parsing",
    ToolErrorKind.DENIED: "permission",
}
"""Typed tool error → inspect's; any other one is `unknown`."""
STOPS = {"length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
LIMITS = {StopReason.TIMEOUT: "time", StopReason.MAX_ROUNDS: "message"}


def sample_of(
    trajectory: Trajectory,
    result: ItemResult,
    item: Item | None,
    *,
    run: str,
    report: Report,
) -> dict[str, Any]:
    """The sample; its id is the item's, its epoch the repeat counted from 1."""
    uuid = f"{run}-{result.item_id}-{result.repeat}"
    messages = _messages(trajectory)
    for number, message in enumerate(messages):
        message["id"] = f"{uuid}-{number}"
    usage = _usage(result)
    sample: dict[str, Any] = {
        "id": result.item_id,
        "epoch": result.repeat + 1,
        "input": _input(trajectory, item),
        "target": _target(item),
        "messages": messages,
        "output": _output(trajectory, result, usage),
        "scores": _scores(result, report),
        "metadata": _metadata(trajectory, result),
        "store": {},
        "events": [],
        "model_usage": {trajectory.policy_id: usage} if usage else {},
        "uuid": uuid,
    }
    if result.wall_s is not None:
        sample["total_time"] = result.wall_s
    if result.state == "errored":
        told = result.error or result.stop
        sample["error"] = {"message": told, "traceback": told, "traceback_ansi": told}
    elif trajectory.stop in LIMITS:
        sample["limit"] = {"type": LIMITS[trajectory.stop], "limit": 0}
    return sample


def _messages(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The whole conversation: every step's new messages, the last answer, and the tail."""
    names = {call.id: call.name for call in trajectory.calls}
    failed = {c.id: c.result for c in trajectory.calls if not c.result.ok}
    found: list[Message] = [m for step in trajectory.steps for m in step.messages]
    if trajectory.steps:
        found += _answered(trajectory.steps[-1])
    found += trajectory.tail
    made = []
    for message in found:
        one = _message(message, names)
        error = failed.get(str(message.get("tool_call_id")))
        if one["role"] == "tool" and error is not None and error.error is not None:
            kind = ERRORS.get(error.error, "unknown")
            one["error"] = {"type": kind, "message": error.content[:500]}
        made.append(one)
    return made


def _answered(step: Step) -> list[Message]:
    """The last answer as a message, and what its calls gave back."""
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_raw},
        }
        for call in step.calls
    ]
    answer: Message = {"role": "assistant", "content": step.reply.content or ""}
    if step.reply.reasoning:
        answer["reasoning_content"] = step.reply.reasoning
    if calls:
        answer["tool_calls"] = calls
    results = [
        {"role": "tool", "tool_call_id": c.id, "content": c.result.content} for c in step.calls
    ]
    return [answer, *results]


def _message(message: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    role = message.get("role")
    role = role if role in ("system", "user", "assistant", "tool") else "user"
    content = message.get("content")
    made: dict[str, Any] = {"role": role, "content": content if isinstance(content, str) else ""}
    calls = [c for c in message.get("tool_calls") or () if isinstance(c, dict)]
    if role == "assistant":
        made["source"] = "generate"
        if message.get("reasoning_content"):
            thought = {"type": "reasoning", "reasoning": str(message["reasoning_content"])}
            made["content"] = [thought, {"type": "text", "text": made["content"]}]
        if calls:
            made["tool_calls"] = [_call(c) for c in calls]
    elif role == "tool":
        call_id = str(message.get("tool_call_id") or "")
        made |= {"tool_call_id": call_id, "function": names.get(call_id, "")}
    elif calls:  # a simulated user may call tools of its own; inspect's users cannot
        said = [f"{_call(c)['function']}({c.get('function', {}).get('arguments')})" for c in calls]
        made["content"] = "\n".join([*filter(None, [made["content"]]), *said])
    return made


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    raw = function.get("arguments")
    made = {
        "id": str(call.get("id") or ""),
        "function": str(function.get("name") or ""),
        "arguments": {},
        "type": "function",
    }
    try:
        arguments = msgspec.json.decode(raw) if isinstance(raw, str) else raw
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        arguments = None
    if isinstance(arguments, dict):
        made["arguments"] = arguments
    else:
        made["parse_error"] = f"no JSON object: {str(raw)[:200]}"
    return made


def _input(trajectory: Trajectory, item: Item | None) -> str:
    """What was asked, in words; the whole prompt stands among the messages."""
    if item is not None:
        request = item.request
        return "\n".join(c.text for c in request.comments) or request.prompt or ""
    asked = [
        str(m.get("content") or "")
        for step in trajectory.steps[:1]
        for m in step.messages
        if m.get("role") == "user"
    ]
    return asked[-1] if asked else ""


def _target(item: Item | None) -> str | list[str]:
    """What a good answer has, as far as words can say it."""
    if item is None:
        return ""
    told = item.origin.get("target")
    if isinstance(told, list) and told:
        return [str(t) for t in told]
    words = [str(f.value) for f in item.expect.facts]
    words += [str(a.value) for a in item.assert_ if a.type in ("equals", "contains", "icontains")]
    return words or list(item.expect.answers) or ""


def _output(
    trajectory: Trajectory, result: ItemResult, usage: dict[str, int] | None
) -> dict[str, Any]:
    last: ChatReply | None = trajectory.steps[-1].reply if trajectory.steps else None
    output: dict[str, Any] = {
        "model": (last.model if last else "") or trajectory.policy_id,
        "choices": [
            {
                "message": {"role": "assistant", "content": result.reply, "source": "generate"},
                "stop_reason": STOPS.get(last.finish_reason, "stop") if last else "unknown",
            }
        ],
        "completion": result.reply,
    }
    if usage:
        output["usage"] = usage
    return output


def _scores(result: ItemResult, report: Report) -> dict[str, Any]:
    """Every metric that was scored; the state as inspect's letters under `passed`."""
    why = why_failed(result) if result.state == "failed" else ""
    scores = {
        name: {"value": value, "answer": result.reply, "explanation": why}
        for name, value in result.scores.items()
        if value is not None
    }
    if result.state in ("passed", "failed") and "passed" in {m.metric for m in report.metrics}:
        letter = "C" if result.state == "passed" else "I"
        scores["passed"] = {"value": letter, "answer": result.reply, "explanation": why}
    return scores


def _metadata(trajectory: Trajectory, result: ItemResult) -> dict[str, Any]:
    return {
        "state": result.state,
        "category": result.category,
        "tags": list(result.tags),
        "route": result.route,
        "stop": result.stop,
        "skills": list(result.skills_loaded),
        "tools": list(result.tools_called),
        "hooks": list(result.hooks_fired),
        "actions": list(trajectory.actions),
        "findings": [msgspec.to_builtins(f) for f in result.findings],
        "assertions": [msgspec.to_builtins(a) for a in result.assertions],
    }


def _usage(result: ItemResult) -> dict[str, int] | None:
    """Token counts where all are known: unknown is not 0."""
    asked, said = result.input_tokens, result.output_tokens
    if asked is None or said is None:
        return None
    return {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}
