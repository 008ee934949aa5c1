"""`bench.json`: one latency run at one concurrency, bound to what made it (TR App. H.3)."""

from typing import Any, Literal

import msgspec

from harness_cli.records.chat import Generation
from harness_cli.records.config import CheckpointRef, Limits
from harness_cli.records.serve_job import MtpServing, Parallelism

BENCH_FILE = "bench.json"
"""In the folder of the run whose journal has the rest."""


class BenchCall(msgspec.Struct, frozen=True, kw_only=True):
    """One model call as the client saw it. Times are seconds of a monotonic clock."""

    index: int
    latency_s: float | None = None
    """Dispatch → end of the answer, or the error, retries included."""
    ttft_s: float | None = None
    """Dispatch → first streamed chunk, retries included; None when nothing was streamed."""
    first_delta_s: float | None = None
    """The same to the first chunk with content, reasoning or a tool call in it."""
    attempts: int = 1
    retry_reasons: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    tokens_from: Literal["usage", "none"] = "none"
    """`usage`: what the server counted; `none`: it did not say, and nothing is guessed."""
    finish_reason: str = ""
    tool_calls: int = 0
    policy: str = ""
    error: str | None = None
    """Kind of the provider error it ended in."""

    @property
    def decode_tps(self) -> float | None:
        """Completion tokens / (call latency − TTFT), of the attempt that answered (TR App. F)."""
        if self.output_tokens is None or self.latency_s is None or self.ttft_s is None:
            return None
        seconds = self.latency_s - self.ttft_s
        return self.output_tokens / seconds if seconds > 0 else None


class BenchTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call."""

    name: str
    latency_s: float
    ok: bool
    error: str | None = None


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One complete request of the agent."""

    item: str
    warm_up: bool = False
    success: bool
    """The agent returned normally; says nothing about what it said (TR App. F)."""
    stop: str
    """Final status: completed, refused, max_rounds, timeout, gate_failed, provider_error, …"""
    route: str = "normal"
    fell_back: bool = False
    """Another policy, the compact route or silence stood in: a miss in attainment."""
    wall_s: float
    """Client dispatch → final reply."""
    calls: tuple[BenchCall, ...] = ()
    tools: tuple[BenchTool, ...] = ()
    malformed_calls: int = 0
    """Tool calls whose arguments were no JSON object or did not fit the schema."""
    error: str | None = None


class ServingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What answered, where a serving job says it."""

    job: str
    engine: str
    version: str | None = None
    digest: str = ""
    """Of the job's settings."""
    model: str = ""
    replicas: int = 1
    gpu: str | None = None
    gpus: int | None = None
    """Of all replicas; None where the engine has none."""
    parallelism: Parallelism = Parallelism()
    dtype: str = ""
    mtp: MtpServing | None = None
    per_replica: int | None = None
    """Requests a replica takes at once."""
    queue: int | None = None
    scheduler: dict[str, Any] = {}
    """More options of the engine, as the job sets them."""


class BenchContract(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is bound to: two runs with equal contracts measured the same thing."""

    run: str
    group: str
    """Runs of one `harness bench replay`."""
    repeat: int = 0
    """Which of several runs at this concurrency."""
    arm: str = ""
    """What is compared, as `mtp off`, `mtp on`: the serving facts say it where nobody does."""
    policy: str
    policy_id: str
    checkpoint: CheckpointRef | None = None
    harness_id: str
    harness_commit: str | None = None
    dirty: bool = False
    evalset: str
    split: str | None = None
    evalset_digest: str
    cases: int
    cases_digest: str
    """Of the item ids in their order: the sampled-case manifest."""
    warm_up: tuple[str, ...]
    """Ids of the cases that are left out."""
    route: str
    """The endpoint, or `in process`."""
    streamed: bool = True
    concurrency: int
    generation: Generation
    profile: str = "replay"
    limits: Limits
    bound_s: float = 15.0
    client_region: str
    start: str
    end: str | None = None
    clock_jump_s: float | None = None
    """Seconds by which the wall clock and the monotonic one differ over the run; every latency is
    of the monotonic one."""
    status: str = "running"
    """running, complete, interrupted, budget, failed, killed."""
    versions: dict[str, str] = {}
    serving: ServingFacts | None = None


class BenchRun(msgspec.Struct, frozen=True, kw_only=True):
    """`bench.json`."""

    schema: int = 1
    contract: BenchContract
    planned: int
    requests: tuple[BenchRequest, ...] = ()

    @property
    def measured(self) -> list[BenchRequest]:
        """All but the warm-ups."""
        return [request for request in self.requests if not request.warm_up]
