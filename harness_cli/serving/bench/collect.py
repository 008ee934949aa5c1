"""A run's journal as requests: every call, its times, its tokens and where those come from."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness_cli.records.bench import BenchCall, BenchRequest, BenchTool
from harness_cli.records.chat import ChatReply
from harness_cli.records.journal import CallError, ItemRecord, ModelRecord, TrajectoryRecord
from harness_cli.records.trajectory import ToolErrorKind, Trajectory
from harness_cli.store.journal import scan

MALFORMED = (ToolErrorKind.MALFORMED, ToolErrorKind.INVALID_ARGUMENTS)
_model = msgspec.json.Decoder(ModelRecord).decode
_trajectory = msgspec.json.Decoder(TrajectoryRecord).decode
_item = msgspec.json.Decoder(ItemRecord).decode


@dataclass(slots=True)
class _Open:
    """What the journal has said so far of a request that has not ended."""

    calls: dict[int, BenchCall] = field(default_factory=dict)
    trajectory: Trajectory | None = None


def requests_of(journal: Path, *, warm: frozenset[str]) -> list[BenchRequest]:
    """Every finished request in the order in which they ended; `warm` are the ids of warm-ups.

    Calls of a request that a killed process left half done are no part of the one made anew.
    """
    return list(_finished(journal, warm)) if journal.exists() else []


def _finished(journal: Path, warm: frozenset[str]) -> Iterator[BenchRequest]:
    open_: defaultdict[str, _Open] = defaultdict(_Open)
    for line in scan(journal):
        match line.kind:
            case "note":
                open_.clear()
            case "model":
                record = _model(line.data)
                open_[record.item].calls[record.index] = call_of(record)
            case "trajectory":
                made = _trajectory(line.data)
                open_[made.item].trajectory = made.trajectory
            case "item":
                item = _item(line.data).item
                found = open_.pop(item, None)
                if found is not None and found.trajectory is not None:
                    yield _request(item, found, found.trajectory, warm=item in warm)


def _request(item: str, found: _Open, trajectory: Trajectory, *, warm: bool) -> BenchRequest:
    calls = trajectory.calls
    return BenchRequest(
        item=item,
        warm_up=warm,
        success=not trajectory.errored,
        stop=str(trajectory.stop),
        route=str(trajectory.route),
        fell_back=trajectory.fell_back,
        wall_s=trajectory.wall_s,
        calls=tuple(found.calls[index] for index in sorted(found.calls)),
        tools=tuple(
            BenchTool(
                name=call.name,
                latency_s=call.latency_s,
                ok=call.result.ok,
                error=str(call.result.error) if call.result.error else None,
            )
            for call in calls
        ),
        malformed_calls=sum(call.result.error in MALFORMED for call in calls),
        error=trajectory.error,
    )


def call_of(record: ModelRecord) -> BenchCall:
    """One journaled model call."""
    if record.reply is None:
        error = record.error or CallError(kind="transport", message="")
        return BenchCall(index=record.index, latency_s=error.seconds, error=error.kind)
    reply = record.reply
    before = _before_the_last_attempt(reply)
    usage = reply.usage
    return BenchCall(
        index=record.index,
        latency_s=None if reply.cached else reply.latency_s,
        ttft_s=None if reply.ttft_s is None else before + reply.ttft_s,
        first_delta_s=None if reply.first_delta_s is None else before + reply.first_delta_s,
        attempts=reply.attempts,
        retry_reasons=reply.retry_reasons,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        tokens_from="none" if usage.output_tokens is None else "usage",
        finish_reason=reply.finish_reason,
        tool_calls=len(reply.tool_calls),
        policy=reply.policy,
    )


def _before_the_last_attempt(reply: ChatReply) -> float:
    """Seconds that failed attempts and the pauses after them took.

    Of a single attempt none: its end is read a moment after the stream's, which is no wait.
    """
    if reply.attempts <= 1 or reply.attempt_s is None:
        return 0.0
    return max(0.0, reply.latency_s - reply.attempt_s)
