"""Times of a run: TTFT, decode speed, attainment; of fresh, uninterrupted samples only."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.evaluation.metrics import attainment, decode_tps, mean_and_median
from harness_cli.records.chat import Usage
from harness_cli.records.journal import ItemRecord
from harness_cli.store.journal import Line


class _Reply(msgspec.Struct):
    """The part of a recorded answer that times it."""

    ttft_s: float | None = None
    latency_s: float = 0.0
    attempts: int = 1
    cached: bool = False
    usage: Usage = Usage()


class _Model(msgspec.Struct):
    """A model record without what it says."""

    index: int
    judge: str = ""
    reply: _Reply | None = None


_model = msgspec.json.Decoder(_Model).decode


def _doubles() -> "array[float]":
    return array("d")


@dataclass(slots=True)
class CallTimes:
    """TTFT and decode TPS of every fresh call, retries and failures of all."""

    first_ttft_s: "array[float]" = field(default_factory=_doubles)
    tps: "array[float]" = field(default_factory=_doubles)
    latency_s: "array[float]" = field(default_factory=_doubles)
    retries: int = 0
    failed: int = 0
    judge_failed: int = 0
    """Calls of judges are counted where they fail and never timed: the times are the policy's."""

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "CallTimes":
        """The times of a journal's model calls."""
        times = cls()
        for line in lines:
            if line.kind == "model":
                times.add(_model(line.data))
        return times

    def add(self, record: _Model) -> None:
        """One model call."""
        reply = record.reply
        if record.judge:
            self.judge_failed += reply is None
            return
        if reply is None:
            self.failed += 1
            return
        self.retries += reply.attempts - 1
        if reply.cached:
            return
        self.latency_s.append(reply.latency_s)
        if record.index == 0 and reply.ttft_s is not None:
            self.first_ttft_s.append(reply.ttft_s)
        speed = decode_tps(reply.usage.output_tokens, reply.latency_s, reply.ttft_s)
        if speed is not None:
            self.tps.append(speed)

    def timing(self, walls_s: Sequence[float | None], *, fresh: bool) -> dict[str, Any]:
        """The `timing` of a report. A run of replayed answers is never timed."""
        if not fresh:
            return {"fresh": False}
        known = [wall for wall in walls_s if wall is not None]
        return {
            "fresh": True,
            "item_wall_s": mean_and_median(known),
            "attainment_15s": attainment(walls_s),
            "measured": len(walls_s),
            "ttft_s": mean_and_median(self.first_ttft_s),
            "call_latency_s": mean_and_median(self.latency_s),
            "decode_tps": mean_and_median(self.tps),
        }

    def incidents(self) -> dict[str, int]:
        """Retries and failures of the provider."""
        found = {"provider retries": self.retries, "provider failures": self.failed}
        return {**found, "judge failures": self.judge_failed} if self.judge_failed else found


def item_timing(records: Sequence[ItemRecord]) -> list[float | None]:
    """Walls of the measured rollouts; None for a miss: a failure or another route (METHODS §1)."""
    walls: list[float | None] = []
    for record in records:
        result = record.result
        if record.resumed or (result.wall_s is None and result.state != "errored"):
            continue
        hit = result.state != "errored" and not result.fell_back
        walls.append(result.wall_s if hit else None)
    return walls
