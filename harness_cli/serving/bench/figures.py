"""What one latency run comes to. Nothing here looks at more than one run.

Prefill speed, time per output token and inter-token latency are not derived: under speculation one
chunk holds several tokens, so no client can tell them (TR App. F).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Final

import msgspec

from harness_cli.records.bench import BenchCall, BenchRequest, BenchRun
from harness_cli.records.run import Interval
from harness_cli.serving.bench.breakdown import (
    CallRow,
    Shape,
    ToolRow,
    call_rows,
    seconds_of,
    shape,
    tool_rows,
)
from harness_cli.stats.intervals import clopper_pearson, mean_interval
from harness_cli.stats.percentiles import percentile, percentile_interval

ROLE_CHUNK_S: Final = 0.05
"""The first chunk and the first one that says something may lie so far apart, not farther."""
SHORT_TOKENS: Final = 16
"""An answer of so few tokens makes a decode speed of timer noise (TR App. F: 9 tokens, 1 ms)."""
JUMP_S: Final = 1.0


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of n samples, percentiles by nearest rank with their distribution-free intervals."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p50_interval: tuple[float | None, float | None] = (None, None)
    p95_interval: tuple[float | None, float | None] = (None, None)
    """None for an end that n samples do not bound: 72 are needed for an upper one of P95."""
    longest: float | None = None


class Decode(msgspec.Struct, frozen=True, kw_only=True):
    """Decode speed of calls, tokens a second. Mean and median: short answers bend the mean."""

    n: int
    mean: float | None = None
    median: float | None = None
    mean_interval: Interval | None = None
    short: int = 0
    """Calls of fewer than 16 completion tokens among them."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One run in numbers."""

    planned: int
    measured: int
    warm_up: int
    missing: int
    """Requests that the run did not come to; they are in no denominator."""
    succeeded: int
    within: int
    """Requests within the bound that nothing stood in for, of all measured."""
    attainment: float | None
    attainment_interval: Interval | None
    wall: Timed
    ttft: Timed
    """First chunk of the first call."""
    first_delta: Timed
    """First content, reasoning or tool call of the first call."""
    decode: Decode
    failures: dict[str, int]
    """Why requests were no success, or were answered by something that stood in."""
    call_failures: dict[str, int]
    """Model calls by the error they ended in."""
    retries: int
    retry_reasons: dict[str, int]
    calls: int
    calls_without_usage: int
    malformed_calls: int
    tool_calls: int
    shape: Shape
    by_call: tuple[CallRow, ...]
    by_tool: tuple[ToolRow, ...]
    seconds: dict[str, float]
    """Mean seconds of a request in models, in tools, and in neither."""
    warnings: tuple[str, ...] = ()


def figures(run: BenchRun) -> Figures:
    """The numbers of one run, warm-ups left out."""
    measured = run.measured
    good = [request for request in measured if request.success]
    within = sum(_hit(request, run.contract.bound_s) for request in measured)
    calls = [call for request in measured for call in request.calls]
    answered = [call for call in calls if call.error is None]
    firsts = [request.calls[0] for request in measured if request.calls]
    n = len(measured)
    return Figures(
        planned=run.planned,
        measured=n,
        warm_up=len(run.requests) - n,
        missing=run.planned - len(run.requests),
        succeeded=len(good),
        within=within,
        attainment=within / n if n else None,
        attainment_interval=clopper_pearson(within, n) if n else None,
        wall=timed(request.wall_s for request in good),
        ttft=timed(call.ttft_s for call in firsts),
        first_delta=timed(call.first_delta_s for call in firsts),
        decode=decode(answered),
        failures=dict(Counter(filter(None, map(_reason, measured)))),
        call_failures=dict(Counter(call.error for call in calls if call.error)),
        retries=sum(call.attempts - 1 for call in calls),
        retry_reasons=dict(Counter(_word(r) for call in calls for r in call.retry_reasons)),
        calls=len(calls),
        calls_without_usage=sum(call.tokens_from == "none" for call in answered),
        malformed_calls=sum(request.malformed_calls for request in measured),
        tool_calls=sum(len(request.tools) for request in measured),
        shape=shape(good),
        by_call=tuple(call_rows(measured)),
        by_tool=tuple(tool_rows(measured)),
        seconds=seconds_of(good),
        warnings=tuple(_warnings(run, answered, firsts)),
    )


def timed(values: Iterable[float | None]) -> Timed:
    """Seconds; what is unknown is left out, and `n` says how many are left."""
    known = [value for value in values if value is not None]
    if not known:
        return Timed(n=0)
    return Timed(
        n=len(known),
        mean=fmean(known),
        p50=percentile(known, 50),
        p95=percentile(known, 95),
        p50_interval=percentile_interval(known, 50),
        p95_interval=percentile_interval(known, 95),
        longest=max(known),
    )


def decode(calls: Iterable[BenchCall]) -> Decode:
    """Mean and median of the calls' own ratios (TR Table 7 has the mean)."""
    pairs = [(speed, call.output_tokens or 0) for call in calls if (speed := call.decode_tps)]
    speeds = [speed for speed, _ in pairs]
    if not speeds:
        return Decode(n=0)
    return Decode(
        n=len(speeds),
        mean=fmean(speeds),
        median=median(speeds),
        mean_interval=mean_interval(speeds, bounds=None),
        short=sum(tokens < SHORT_TOKENS for _, tokens in pairs),
    )


def _hit(request: BenchRequest, bound_s: float) -> bool:
    return request.success and not request.fell_back and request.wall_s <= bound_s


def _reason(request: BenchRequest) -> str | None:
    if not request.success:
        kinds = [call.error for call in request.calls if call.error]
        return f"{request.stop}: {kinds[-1]}" if kinds else request.stop
    if request.fell_back:
        return (
            f"{request.stop}, answered by {request.route}"
            if request.route != "normal"
            else ("another policy answered a call")
        )
    return None


def _word(reason: str) -> str:
    """The kind of a retry's reason, without its particulars."""
    return reason.partition(":")[0].strip()[:40]


def _warnings(
    run: BenchRun, answered: Sequence[BenchCall], firsts: Sequence[BenchCall]
) -> Iterable[str]:
    apart = [
        call
        for call in firsts
        if call.ttft_s is not None
        and call.first_delta_s is not None
        and call.first_delta_s - call.ttft_s > ROLE_CHUNK_S
    ]
    if apart:
        yield (
            f"{len(apart)} of {len(firsts)} first calls said something more than 50 ms after their "
            "first chunk: something on the way sends the role at once, so TTFT measures that"
        )
    silent = sum(call.tokens_from == "none" for call in answered)
    if silent:
        yield f"{silent} of {len(answered)} calls report no usage: their tokens are unknown"
    jump = run.contract.clock_jump_s
    if jump is not None and abs(jump) > JUMP_S:
        yield f"the wall clock jumped by {jump:+.1f} s; latencies are of the monotonic clock"
    short = decode(answered)
    if short.n and short.short / short.n > 0.2:
        yield (
            f"{short.short} of {short.n} answers have fewer than {SHORT_TOKENS} tokens: read the "
            "median decode speed, the mean is timer noise"
        )
    missing = run.planned - len(run.requests)
    if missing:
        yield f"{missing} of {run.planned} requests are missing: the run is {run.contract.status}"
