"""A run's folder: what was asked, the journal's records, and the report."""

from typing import Any

import msgspec

from harness_cli.records.config import Limits
from harness_cli.records.verdict import ItemResult


class EvalsetRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which items a run covers."""

    name: str
    split: str | None
    digest: str
    n: int
    catalogue_digest: str = ""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: everything that must be equal for a resume, and what to compare by."""

    schema: int = 1
    id: str
    evalset: EvalsetRef
    limit: int | None = None
    only: tuple[str, ...] = ()
    """Item ids it was restricted to: such a run answers one question and is nobody's newest run."""
    repeat: int = 1
    seed: int = 0
    agent: str = "harness"
    harness_id: str
    harness_commit: str | None = None
    dirty: bool = False
    harness_ref: str | None = None
    """`refs/harness/runs/<id>`, which keeps an uncommitted tree alive."""
    policy: str
    policy_id: str
    policy_settings: dict[str, Any] = {}
    fallback_id: str | None = None
    """Identity of the per-call fallback policy."""
    judge: str
    judge_id: str
    profile: str = "offline"
    limits: Limits = Limits()
    pipeline: str = "default"
    started: str = ""
    command: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    fresh: bool = True
    """False when answers were replayed: such a run is never timed."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A 95 % interval and how it was made."""

    low: float
    high: float
    method: str


class MetricSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over a run: mean over the scored, and how many those are of N."""

    metric: str
    mean: float | None
    interval: Interval | None = None
    scored: int
    of: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`report.json`; `report.canonical.json` is it without clocks, pids and latencies."""

    schema: int = 1
    run: RunConfig
    status: str
    """complete, interrupted, budget, failed."""
    counts: dict[str, int]
    """passed, failed, unscored, errored, missing: they sum to `planned`."""
    planned: int
    metrics: tuple[MetricSummary, ...]
    categories: dict[str, tuple[MetricSummary, ...]] = {}
    items: tuple[ItemResult, ...] = ()
    usage: dict[str, Any] = {}
    timing: dict[str, Any] = {}
    incidents: dict[str, int] = {}
    """Guardrail hits, retries, fallbacks, suppressed replies."""
    pass_hat: dict[str, float | None] = {}
    """k → pass^k over the items (T2); None is undefined."""
