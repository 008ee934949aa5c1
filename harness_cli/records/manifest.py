"""The release manifest: an in-toto Statement v1 that binds everything a release consists of."""

from typing import Any

import msgspec

from harness_cli.records.gates import Gate, GateResult

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://harness-evolution.dev/manifest/v1"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A name and its digests."""

    name: str
    digest: dict[str, str]


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One skill, tool or hook of the inventory."""

    kind: str
    name: str
    version: str
    sha256: str


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a gate rests on, by digest."""

    run: str
    role: str = "candidate"
    """candidate, or incumbent or base where the comparison needed its own run."""
    gates: tuple[str, ...] = ()
    """Names of the gates decided on it."""
    evalset: str
    evalset_digest: str = ""
    split: str | None = None
    judge_id: str = ""
    n: int
    """Planned results: items × repeats."""
    repeat: int = 1
    need: int | None = None
    """Passes that an item needs of its repeats; None: more than half."""
    report_sha256: str
    """Of `report.canonical.json`."""
    evidence_sha256: str = ""
    """Of its lines in `evidence/<id>.jsonl.zst`."""
    started: str = ""
    fresh: bool = True
    """False where answers were replayed: nothing is timed on such a run."""
    concurrency: tuple[int, ...] = ()
    """Requests at a time of each process that worked on it; older manifests have none."""


class EvidenceLine(msgspec.Struct, frozen=True, kw_only=True):
    """One item of one evidence run: what gates are recomputed from, without the texts."""

    run: str
    item_id: str
    repeat: int = 0
    category: str = ""
    tags: tuple[str, ...] = ()
    state: str
    scores: dict[str, float | None] = {}
    route: str = "normal"
    fell_back: bool = False
    wall_s: float | None = None
    ttft_s: float | None = None
    verdict_sha256: str = ""
    trajectory_sha256: str = ""


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A named person who said yes, and to what."""

    by: str
    at: str
    subject: str
    """Digest of what was approved (candidate pair)."""
    comment: str = ""
    signature: str = ""
    """Armoured SSH signature over the rest of this record, in the namespace `harness-approval`."""


class Predicate(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest binds."""

    id: str
    created: str
    policy: dict[str, Any]
    harness: dict[str, Any]
    """commit, tree, digests of judges."""
    inventory: tuple[Module, ...]
    tools_sha256: str
    mcp_lock_sha256: str
    thresholds: dict[str, Any]
    """Limits and fallback settings."""
    evalsets: dict[str, str]
    catalogue_sha256: str
    judge: dict[str, Any]
    gates_sha256: str
    """Of `gate_settings` in canonical form."""
    gate_settings: tuple[Gate, ...] = ()
    evidence: tuple[Evidence, ...]
    evidence_file_sha256: str = ""
    """Of `evidence/<id>.jsonl.zst` itself; empty in manifests of older versions."""
    gates: tuple[GateResult, ...]
    approvals: tuple[Approval, ...]
    authors: tuple[str, ...] | None = None
    """Who made the edit since the incumbent, by git; None in manifests of older versions."""
    incumbent: str | None = None
    versions: dict[str, str] = {}


class Manifest(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"type_": "_type", "predicate_type": "predicateType"},
):
    """`manifests/<id>.json`."""

    type_: str = STATEMENT
    subject: tuple[Subject, ...]
    predicate_type: str = PREDICATE
    predicate: Predicate


class SwitchEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a channel's history."""

    at: str
    by: str
    action: str
    """promote, rollback."""
    policy: str | None
    harness: str | None
    reason: str = ""


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """`channels/<channel>.json`: two switches, each naming the manifest it comes from."""

    schema: int = 1
    name: str
    policy: str | None = None
    harness: str | None = None
    history: tuple[SwitchEvent, ...] = ()
