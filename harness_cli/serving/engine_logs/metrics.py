"""A Prometheus page of a server → token-weighted numbers, of one page or between two.

A counter says what happened since the server's start, so two scrapes say what happened between
them: tokens generated / verifications is the accept length in which each token counts once. Gauges
are the last window's and are shown as they are.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal
from urllib.error import URLError
from urllib.request import urlopen

from harness_cli.errors import BadFile, UsageError
from harness_cli.records.engine_logs import MetricsStats

SAMPLE: Final = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$")
TIMEOUT_S: Final = 10.0
MOST_BYTES: Final = 64 << 20
Engine = Literal["sglang", "vllm", "harness"]

GENERATED: Final[dict[Engine, str]] = {
    "sglang": "sglang:generation_tokens_total",
    "vllm": "vllm:generation_tokens_total",
    "harness": "harness:generation_tokens_total",
}
PASSES: Final[dict[Engine, str]] = {
    "sglang": "sglang:spec_verify_calls_total",
    "vllm": "vllm:spec_decode_num_drafts_total",
    "harness": "harness:spec_verify_calls_total",
}
PROMPTS: Final[dict[Engine, str]] = {
    "sglang": "sglang:prompt_tokens_total",
    "vllm": "vllm:prompt_tokens_total",
    "harness": "harness:prompt_tokens_total",
}
DRAFTED: Final[dict[Engine, str]] = {
    "sglang": "",
    "vllm": "vllm:spec_decode_num_draft_tokens_total",
    "harness": "harness:spec_draft_tokens_total",
}
ACCEPTED: Final[dict[Engine, str]] = {
    "sglang": "",
    "vllm": "vllm:spec_decode_num_accepted_tokens_total",
    "harness": "harness:spec_accepted_tokens_total",
}
GAUGES: Final = (
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "sglang:gen_throughput",
    "sglang:spec_accept_length",
    "sglang:spec_accept_rate",
    "sglang:token_usage",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "harness:num_running_reqs",
    "harness:num_queue_reqs",
)


def fetch_metrics(place: str) -> str:
    """The page at a URL, or in a file. Raises `UsageError` when there is none."""
    if not place.startswith(("http://", "https://")):
        try:
            return Path(place).read_text(encoding="utf-8", errors="replace")
        except OSError as exc:
            raise BadFile(f"cannot read `{place}`: {exc.strerror}") from exc
    try:
        with urlopen(place, timeout=TIMEOUT_S) as answer:
            return str(answer.read(MOST_BYTES).decode("utf-8", "replace"))
    except (URLError, OSError, ValueError) as exc:
        raise UsageError(
            f"no metrics at `{place}`: {getattr(exc, 'reason', exc)}",
            hint="the server needs --enable-metrics; its page is /metrics",
        ) from exc


def totals(page: str) -> dict[str, float]:
    """Every series of a page, summed over its labels (ranks, models); buckets are left out."""
    found: dict[str, float] = {}
    for line in page.splitlines():
        if line.startswith("#") or not (sample := SAMPLE.match(line)):
            continue
        name, labels, text = sample.groups()
        if labels and 'le="' in labels:
            continue
        try:
            found[name] = found.get(name, 0.0) + float(text)
        except ValueError:
            continue
    return found


def metrics_stats(
    source: str, page: str, before: str | None = None, seconds: float | None = None
) -> MetricsStats:
    """The numbers of a page, or of what happened since `before`. Raises `BadFile`.

    A counter that went down was reset by a restart: what came since then is all there is.
    """
    now = totals(page)
    engine = _engine(now, source)
    then = totals(before) if before is not None else {}
    generated = _grown(now, then, GENERATED[engine])
    passes = _grown(now, then, PASSES[engine])
    drafted = _grown(now, then, DRAFTED[engine])
    accepted = _grown(now, then, ACCEPTED[engine])
    length = None
    if passes:
        if accepted is not None:
            length = 1 + accepted / passes
        elif generated is not None:
            length = generated / passes
    return MetricsStats(
        source=source,
        seconds=seconds,
        engine=engine,
        generated=generated,
        passes=passes,
        accept_len=length,
        accept_rate=accepted / drafted if drafted and accepted is not None else None,
        prompts=_grown(now, then, PROMPTS[engine]),
        gauges={name: now[name] for name in GAUGES if name in now},
    )


def _engine(found: Mapping[str, float], source: str) -> Engine:
    names: tuple[tuple[Engine, str], ...] = (
        ("sglang", "sglang:"),
        ("vllm", "vllm:"),
        ("harness", "harness:"),
    )
    for engine, prefix in names:
        if any(name.startswith(prefix) for name in found):
            return engine
    raise BadFile(
        f"`{source}` holds no metrics of SGLang, vLLM or this program's own server",
        hint="a Prometheus page, as /metrics gives it" if not found else "another server's page",
    )


def _grown(now: Mapping[str, float], then: Mapping[str, float], name: str) -> float | None:
    if not name or name not in now:
        return None
    grown = now[name] - then.get(name, 0.0)
    return grown if grown >= 0 else now[name]
