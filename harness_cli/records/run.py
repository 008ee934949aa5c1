"""A run's folder: what was asked, the journal's records, and the report."""

from typing import Any

import msgspec

from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.config import Limits
from harness_cli.records.verdict import ItemResult

RESPONSES = "responses"
"""Name of the policy of a run that scores given answers."""


class EvalsetRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which items a run covers."""

    name: str
    split: str | None
    digest: str
    n: int
    catalogue_digest: str = ""


class ImportedFrom(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run came from that was made elsewhere: it may be compared, never promoted."""

    kind: str
    """tau-bench, tau2, inspect, openai-chat, otel, jsonl, csv."""
    file: str
    """Its name, without folders."""
    sha256: str
    user_simulator: str = ""
    """What played the user, as far as the file or the caller said."""
    rescored: bool = False
    """Scored by a judge of ours in place of the recorded scores."""
    notes: tuple[str, ...] = ()


class RoleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One role and who plays it."""

    role: str
    name: str
    """A policy or judge of harness.yaml; empty where nobody does."""
    plays: tuple[str, ...] = ()
    """The policies behind the name (the members of a panel), each as name@digest."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`: everything that must be equal for a resume, and what to compare by."""

    schema: int = 1
    id: str
    evalset: EvalsetRef
    limit: int | None = None
    only: tuple[str, ...] = ()
    """Item ids it was restricted to: such a run answers one question and is nobody's newest run."""
    repeat: int = 1
    need: int | None = None
    """Passes that an item needs of its repeats; None: more than half."""
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
    judge_harness: str | None = None
    """Tree id of a panel's own harness."""
    judge_dirty: bool = False
    """That tree was not committed when the run began."""
    roles: tuple[RoleRow, ...] = ()
    """Who plays what, as harness.yaml said it (TR App. E.1)."""
    profile: str = "offline"
    limits: Limits = Limits()
    pipeline: str = "default"
    started: str = ""
    command: tuple[str, ...] = ()
    versions: dict[str, str] = {}
    excluded: str | None = None
    """Why this run stands in no headline: its policy wrote or filtered the evalset."""
    fresh: bool = True
    """False when answers were replayed: such a run is never timed."""
    imported: ImportedFrom | None = None
    """Set when another tool made the rollouts."""
    augmentation: AugmentationMap | None = None
    """Names of the augmented harness folder that the run was made in, where it was one."""
    rescored_of: str | None = None
    """The run whose rollouts were scored again here."""
    rejudged: str | None = None
    """Id of the judge that run had, where another one judged its rollouts anew here."""


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


class FlakyItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that some of its repeats pass and others fail."""

    item_id: str
    category: str
    passed: int
    of: int
    verdict: str
    """passed, failed, unscored, errored or missing: what k of n make of it."""


class RepeatVariance(msgspec.Struct, frozen=True, kw_only=True):
    """Where the spread of one metric over repeats of items comes from."""

    within: float | None
    """Variance of one rollout around its item's mean."""
    between: float | None
    """Variance of the items' true means."""
    icc: float | None
    """between / (between + within); None where nothing varies."""
    design_effect: float | None
    """How many rollouts count as one independent item's: intervals take items for that reason."""


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Items first: each gets one verdict from its n repeats, then the suite counts items."""

    need: int
    of: int
    """An item passes when `need` of its `of` repeats do."""
    items: dict[str, int]
    """passed, failed, unscored, errored, missing: items by verdict."""
    begun: int
    """Items with at least one finished repeat."""
    pass_rate: float | None = None
    """Passed of the items with a verdict."""
    interval: Interval | None = None
    flaky: tuple[FlakyItem, ...] = ()
    variance: dict[str, RepeatVariance] = {}


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
    repeats: Repeats | None = None
    """Verdicts per item; None in a run without repeats."""
