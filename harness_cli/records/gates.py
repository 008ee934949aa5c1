"""`gates.yaml` and what came of each gate."""

from typing import Any, Literal

import msgspec

from harness_cli.records.bounds import AtLeastOne, Count, Positive, Share
from harness_cli.records.calibration import Origin

GateKind = Literal[
    "latency", "regression", "capability", "judge", "tools", "provenance", "approvals"
]
Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE", "ERROR", "PENDING", "DRIFT"]


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One gate: its kind, its bounds and what it measures on."""

    name: str
    kind: GateKind
    mode: Literal["enforce", "dry_run"] = "enforce"
    evalset: str | None = None
    split: str | None = None
    metric: str = "avg"
    minimum_n: AtLeastOne = 30
    margin: Share = 0.02
    """Non-inferiority margin on `metric`, as a share."""
    floor: float | None = None
    """Least mean of `metric`, whatever the incumbent reaches."""
    bound_s: Positive = 15.0
    attainment: Share = 0.99
    p95_s: Positive | msgspec.UnsetType = msgspec.UNSET
    """Bound of a latency gate on the 95th percentile, held by the upper end of its interval."""
    warm_up: Count = 10
    concurrency: AtLeastOne | msgspec.UnsetType = msgspec.UNSET
    """Requests at a time that a latency gate is declared for; unset: one. Runs of any other number
    say nothing of it."""
    max_age_days: Positive | msgspec.UnsetType = msgspec.UNSET
    """Evidence that is older when the gate decides does not pass: the run of a measured gate, the
    calibration of a `judge` gate. Decided as of the day of the manifest, for ever."""
    must_pass: tuple[str, ...] = ()
    """Tags, categories or ids of items that have to pass: none may fail, with an incumbent or
    without one, and none may get worse."""
    base_policy: str | msgspec.UnsetType = msgspec.UNSET
    """A policy of harness.yaml that a `capability` gate compares with beside the incumbent: what
    the candidate's policy was trained from."""
    max_regressed: Count | None = None
    accept_judges: tuple[str, ...] = ()
    agreement: dict[str, Share] = {}
    """Metric → agreement floor of a `judge` gate, and `kinds` → least share of each corruption
    that is marked down; none at all: accuracy 0.90, effectiveness 0.80, kinds 0.80."""
    labels: tuple[Origin, ...] | msgspec.UnsetType = msgspec.UNSET
    """Origins of the labels that a judge may be calibrated on; unset: construction and human."""
    approvals: AtLeastOne = 1
    approvers: tuple[str, ...] = ()
    public: bool | msgspec.UnsetType = msgspec.UNSET
    """A public channel: `approvals` is two at least, each by signature."""
    max_unscored: Share = 0.02
    max_errored: Share = 0.02


def declared(gate: Gate) -> int:
    """Requests at a time that a latency gate is decided at."""
    return 1 if gate.concurrency is msgspec.UNSET else gate.concurrency


class GatesFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`gates.yaml`."""

    schema: int = 1
    gates: tuple[Gate, ...]


class GateResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one gate said, with its numbers."""

    name: str
    kind: str
    mode: str = "enforce"
    outcome: Outcome
    summary: str
    numbers: dict[str, Any] = {}
    needs: str = ""
    """What would decide it: an n, a run, an approval."""
