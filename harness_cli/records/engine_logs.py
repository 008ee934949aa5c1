"""What `harness serve logs --stats` reads out of a server's log and its metrics."""

from typing import Literal

import msgspec

Convention = Literal["accept_len/drafts", "(accept_len-1)/(drafts-1)"]
"""What *accept rate* means: SGLang 0.5.4 to 0.5.10 count the bonus token, 0.5.11 on do not."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A series of log lines: every line counts once, or as long as it held."""

    lines: int
    mean: float
    p50: float
    p95: float
    max: float
    time_mean: float | None = None
    """Weighted by the seconds until the next line of the same rank; None where no time passed."""
    time_p50: float | None = None
    time_p95: float | None = None
    seconds: float = 0.0
    """What the weights add up to."""


class LogStats(msgspec.Struct, frozen=True, kw_only=True):
    """The diagnostics of one log (TR Table 20)."""

    schema: int = 1
    log: str
    lines: int
    prefill: int = 0
    decode: int = 0
    repeated: int = 0
    """Batch lines of further ranks of one data-parallel group, which say the same again."""
    other: int = 0
    """Lines of the server that are no batch: start, access, shutdown."""
    foreign: int = 0
    """Lines that are none of the server's: tracebacks, progress bars, text of others."""
    mangled: int = 0
    """Batch lines that were cut or mixed with another; counted, and left out of the series."""
    mangled_at: tuple[int, ...] = ()
    """Line numbers of the first of them."""
    begins: str | None = None
    ends: str | None = None
    backwards: int = 0
    """Times the clock went back: such a step has no weight."""
    ranks: tuple[str, ...] = ()
    """Tags of the processes that logged batches; empty where there is one, which tags nothing."""
    formats: tuple[str, ...] = ()
    """Variants of the line that were met, with the versions that write them."""
    running: Spread | None = None
    queue: Spread | None = None
    accept_len: Spread | None = None
    accept_rate: Spread | None = None
    """As logged."""
    throughput: Spread | None = None
    """Generated tokens a second, without first lines after idle time."""
    prefill_throughput: Spread | None = None
    idle_lines: int = 0
    """First decode lines after idle time: their throughput counts the idle time in."""
    convention: Convention | None = None
    """None where the log has no accept rate, or the two fit equally well."""
    drafts: int | None = None
    """Draft tokens a pass that the rates speak of (`--speculative-num-draft-tokens`)."""
    rate_old: float | None = None
    """Mean of accept length / drafts."""
    rate_new: float | None = None
    """Mean of (accept length − 1) / (drafts − 1)."""
    retractions: int = 0
    retracted: int = 0
    """Requests that were thrown back into the queue because the cache was full."""
    ready: int = 0
    """Times the server said that it is ready."""
    health_failures: int = 0
    statuses: dict[str, int] = {}
    """HTTP status → answers, of access lines."""
    capacity: dict[str, int] = {}
    """What the server says of itself: max_total_num_tokens, max_running_requests, context_len …"""
    server: dict[str, str] = {}
    """Options in its `server_args=` line that matter here."""
    warnings: tuple[str, ...] = ()


class MetricsStats(msgspec.Struct, frozen=True, kw_only=True):
    """Token-weighted numbers of a Prometheus page, or between two of them."""

    source: str
    seconds: float | None = None
    """Between the two; None for one page, whose counters count from the server's start."""
    engine: Literal["sglang", "vllm", "harness"]
    generated: float | None = None
    passes: float | None = None
    """Verifications of drafts."""
    accept_len: float | None = None
    """generated / passes: every token counts once, so long answers count as they should."""
    accept_rate: float | None = None
    """Accepted / drafted tokens, where the server counts them."""
    prompts: float | None = None
    gauges: dict[str, float] = {}
    """Last values: running, queue, throughput."""
