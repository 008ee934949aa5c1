"""What a run is made of: calls by their place, tools by name, and the shape of the workload."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median

import msgspec

from harness_cli.records.bench import BenchCall, BenchRequest
from harness_cli.stats.percentiles import percentile


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """The k-th model call of a request, over all requests that came so far."""

    index: int
    n: int
    latency_s: float | None
    ttft_s: float | None
    input_tokens: float | None
    cached_tokens: float | None
    output_tokens: float | None
    decode_tps: float | None
    """Median."""


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """One tool over all requests."""

    name: str
    n: int
    failed: int
    mean_s: float
    p95_s: float


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The workload that the run presented (TR Table 18): means over successful requests."""

    calls_per_request: float | None
    input_per_call: float | None
    output_per_call: float | None
    cached_share: float | None
    tools_per_request: float | None


def shape(good: Sequence[BenchRequest]) -> Shape:
    """Calls a request, tokens a call; of unknown counts nothing is guessed."""
    calls = [call for request in good for call in request.calls if call.error is None]
    inputs = [call.input_tokens for call in calls if call.input_tokens is not None]
    cached = [call.cached_tokens for call in calls if call.cached_tokens is not None]
    return Shape(
        calls_per_request=mean(len(request.calls) for request in good),
        input_per_call=mean(inputs),
        output_per_call=mean(c.output_tokens for c in calls),
        cached_share=sum(cached) / sum(inputs) if cached and sum(inputs) else None,
        tools_per_request=mean(len(request.tools) for request in good),
    )


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def median_speed(calls: Iterable[BenchCall]) -> float | None:
    """Median of the calls' own decode speeds."""
    speeds = [speed for call in calls if (speed := call.decode_tps)]
    return median(speeds) if speeds else None


def call_rows(requests: Sequence[BenchRequest]) -> Iterable[CallRow]:
    """One row for each place in the order of calls."""
    by_index: defaultdict[int, list[BenchCall]] = defaultdict(list)
    for request in requests:
        for place, call in enumerate(request.calls):
            by_index[place].append(call)
    for index, calls in sorted(by_index.items()):
        yield CallRow(
            index=index,
            n=len(calls),
            latency_s=mean(c.latency_s for c in calls),
            ttft_s=mean(c.ttft_s for c in calls),
            input_tokens=mean(c.input_tokens for c in calls),
            cached_tokens=mean(c.cached_tokens for c in calls),
            output_tokens=mean(c.output_tokens for c in calls),
            decode_tps=median_speed(calls),
        )


def tool_rows(requests: Sequence[BenchRequest]) -> Iterable[ToolRow]:
    """One row a tool, by name."""
    by_name: defaultdict[str, list[tuple[float, bool]]] = defaultdict(list)
    for request in requests:
        for tool in request.tools:
            by_name[tool.name].append((tool.latency_s, tool.ok))
    for name, found in sorted(by_name.items()):
        seconds = [s for s, _ in found]
        yield ToolRow(
            name=name,
            n=len(found),
            failed=sum(not ok for _, ok in found),
            mean_s=fmean(seconds),
            p95_s=percentile(seconds, 95) or 0.0,
        )


def seconds_of(good: Sequence[BenchRequest]) -> dict[str, float]:
    """Mean seconds of a request in models, in tools, and in neither."""
    if not good:
        return {}
    models = fmean(sum(c.latency_s or 0.0 for c in request.calls) for request in good)
    tools = fmean(sum(t.latency_s for t in request.tools) for request in good)
    wall = fmean(request.wall_s for request in good)
    return {"models": models, "tools": tools, "rest": wall - models - tools}
