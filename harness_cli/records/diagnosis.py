"""Failure classes, the diagnosis of a run, and proposals to edit the harness."""

from typing import Any, Literal

import msgspec

Side = Literal["harness", "policy", "tool", "judge", "evalset", "simulator"]


class FailureClass(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`failure_classes/<id>.md`: owned by people, versioned with the harness."""

    id: str
    name: str
    definition: str
    decision_rule: str = ""
    """For people (and a model): when a failure belongs here."""
    facts: str = ""
    """The same for a program, in the small language of `evolution.classes`."""
    side: Side = "harness"
    examples: tuple[str, ...] = ()
    body: str = ""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A representative failure, citing the step where it shows."""

    item_id: str
    step: int | None
    comment: str
    reply: str
    why: str


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Failures of one kind."""

    id: str
    class_id: str | None = None
    """A known failure class, or None for a new one."""
    label: str
    size: int
    share: float
    """Of all failures."""
    systematic: bool
    """Large enough and concentrated enough that one edit may help; else sparse."""
    side: Side
    suspected_modules: tuple[str, ...] = ()
    root_cause: str = ""
    cases: tuple[Case, ...] = ()
    item_ids: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    explanation: str = ""
    """A model's words for what happens; empty where no model sorted."""
    citations: tuple[str, ...] = ()
    """`item:step` that a model cites for the root cause; each exists."""


class ClassChange(msgspec.Struct, frozen=True, kw_only=True):
    """What became of classes since the diagnosis before."""

    kind: Literal["same", "renamed", "merged", "split", "new", "gone", "fixed"]
    before: tuple[str, ...]
    after: tuple[str, ...]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """`diagnosis.json`."""

    schema: int = 1
    run: str
    harness_id: str
    evalset: str
    failures: int
    of: int
    clusters: tuple[Cluster, ...]
    unexplained: float
    """Share of failures in no class and no cluster."""
    by: str = "facts and KMeans"
    """Who sorted what no human-owned class holds: a policy's id where a model did."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how it was made."""
    changes: tuple[ClassChange, ...] = ()
    """Against the diagnosis before on the same evalset."""
    advice: dict[str, Any] = {}


class Decision(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What a person (or a script, which is said) decided about one hunk."""

    state: Literal["pending", "accept", "modify", "reject"] = "pending"
    reason: str = ""
    by: str = ""
    at: str = ""
    script: bool = False


class Op(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change to one file. Which fields matter depends on `op`."""

    op: Literal[
        "replace", "write", "delete", "move", "set-frontmatter", "json-pointer", "unified-diff"
    ]
    path: str
    search: str | None = None
    expected_count: int = 1
    text: str | None = None
    to: str | None = None
    key: str | None = None
    pointer: str | None = None
    value: Any = None
    remove: bool = False
    """`set-frontmatter` and `json-pointer`: take the entry away instead of setting it."""
    placed: float | None = None
    """Likeness (0–1) by which a model's hunk was placed where its text is not exactly; such a hunk
    is a suggestion that a person must accept by name. None: exact."""
    decision: Decision = Decision()


class Edit(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A reasoned set of operations on one module."""

    id: str
    module: str
    ops: tuple[Op, ...]
    rationale: str
    classes: tuple[str, ...] = ()
    predicted_fixes: tuple[str, ...] = ()
    risks: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`proposal.yaml`: bound to its base, good for one use."""

    schema: int = 1
    id: str
    base: str
    """Harness id (tree id) it was made for."""
    base_commit: str | None = None
    nonce: str
    diagnosis: str
    proposer: str
    created: str = ""
    note: str = ""
    """What a reader should know of the whole: why it holds no edits, where it holds none."""
    edits: tuple[Edit, ...] = ()
