"""What a served policy counted, as Prometheus reads it (text exposition format 0.0.4)."""

from collections import Counter
from typing import Final, Protocol

from harness_cli.records.chat import Usage

BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0)
CONTENT_TYPE: Final = "text/plain; version=0.0.4"


class Meters:
    """Counts since the start of the process."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()
        self._tokens: Counter[str] = Counter()
        self._unknown = 0
        self._buckets = [0] * (len(BUCKETS_S) + 1)
        self._sum_s = 0.0

    def answered(self, status: int, seconds: float, usage: Usage | None = None) -> None:
        """One request ended; a success of unknown usage is counted as such, not as 0 tokens."""
        self.answers[status] += 1
        self._buckets[next((n for n, b in enumerate(BUCKETS_S) if seconds <= b), -1)] += 1
        self._sum_s += seconds
        if usage is None:
            return
        if usage.input_tokens is None or usage.output_tokens is None:
            self._unknown += 1
            return
        self._tokens["prompt"] += usage.input_tokens
        self._tokens["generation"] += usage.output_tokens
        self._tokens["cached"] += usage.cached_tokens or 0

    def text(self, *, model: str, running: int, waiting: int, refused: int) -> str:
        """The page behind `/metrics`."""
        label = f'model_name="{model}"'
        lines = [
            *_one("num_running_reqs", "gauge", label, running),
            *_one("num_queue_reqs", "gauge", label, waiting),
            *_one("num_refused_requests_total", "counter", label, refused),
            *_one("prompt_tokens_total", "counter", label, self._tokens["prompt"]),
            *_one("generation_tokens_total", "counter", label, self._tokens["generation"]),
            *_one("cached_tokens_total", "counter", label, self._tokens["cached"]),
            *_one("requests_without_usage_total", "counter", label, self._unknown),
            "# TYPE harness:num_requests_total counter",
            *(
                f'harness:num_requests_total{{{label},status="{status}"}} {count}'
                for status, count in sorted(self.answers.items())
            ),
            *self._histogram(label),
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, label: str) -> list[str]:
        name = "harness:e2e_request_latency_seconds"
        lines, below = [f"# TYPE {name} histogram"], 0
        for bound, count in zip((*BUCKETS_S, "+Inf"), self._buckets, strict=True):
            below += count
            lines.append(f'{name}_bucket{{{label},le="{bound}"}} {below}')
        return [
            *lines,
            f"{name}_sum{{{label}}} {self._sum_s:.6f}",
            f"{name}_count{{{label}}} {below}",
        ]


def _one(name: str, kind: str, label: str, value: int) -> list[str]:
    return [f"# TYPE harness:{name} {kind}", f"harness:{name}{{{label}}} {value}"]


class Drafted(Protocol):
    """What a policy that drafts counts (`models.checkpoint_drafting.DraftCounts`)."""

    passes: int
    drafted: int
    accepted: int


def drafting_text(model: str, counts: Drafted | None) -> str:
    """The counters of speculation, empty where nothing is drafted."""
    if counts is None:
        return ""
    label = f'model_name="{model}"'
    lines = [
        *_one("spec_verify_calls_total", "counter", label, counts.passes),
        *_one("spec_draft_tokens_total", "counter", label, counts.drafted),
        *_one("spec_accepted_tokens_total", "counter", label, counts.accepted),
    ]
    return "\n".join(lines) + "\n"
