"""Evalsets: items, what is expected of them, and the header that describes the set."""

from typing import Any, Literal

import msgspec

from harness_cli.records.request import Request


class ExpectedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool the item needs; `arguments` are the ones that must match, others are free."""

    name: str
    arguments: dict[str, Any] = {}


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of information the reply must carry, true in the bound catalogue."""

    product: str | None = None
    field: str
    """A catalogue field: price, list_price, stock, ship_within, an attribute name, promotion.… ."""
    value: Any
    answer: str = ""
    """The entry of `answers` that this fact serves."""
    forms: tuple[str, ...] = ()
    """Accepted wordings beside the literal value, any one suffices (case is ignored)."""


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """What a good answer does. The policy never sees it."""

    skills: tuple[str, ...] = ()
    tools: tuple[ExpectedTool, ...] = ()
    order: tuple[str, ...] = ()
    """Tool names that must occur in this order (others may stand between)."""
    facts: tuple[Fact, ...] = ()
    forbidden: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """What the viewer asks for: coverage units of Effectiveness (words: docs/judging.md)."""


class Assertion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One promptfoo assertion; `not-` before the type negates it."""

    type: str
    value: Any = None
    threshold: float | None = None
    weight: float = 1.0
    metric: str | None = None
    assert_: tuple["Assertion", ...] = msgspec.field(default=(), name="assert")
    """Members of an `assert-set`."""


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """Tools and instructions of a robustness item, laid over the harness state."""

    tools: tuple[dict[str, Any], ...] = ()
    instructions: tuple[str, ...] = ()


class HumanLabel(msgspec.Struct, frozen=True, kw_only=True):
    """One annotator's labels of one reply."""

    annotator: str
    accuracy: Literal[0, 1] | None = None
    effectiveness: float | None = None


class Item(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One thing to do, with what is known about doing it well."""

    id: str
    split: str = "dev"
    category: str = "uncategorised"
    mode: Literal["single", "multi"] = "single"
    request: Request
    expect: Expect = Expect()
    assert_: tuple[Assertion, ...] = msgspec.field(default=(), name="assert")
    overlay: Overlay = Overlay()
    tool_returns: dict[str, Any] = {}
    state: str | None = None
    human: tuple[HumanLabel, ...] = ()
    tags: tuple[str, ...] = ()
    """multi, noisy, adversarial, zh, anaphora …: for tables, never seen by the policy."""
    origin: dict[str, Any] = {}
    """The task as another tool's file has it, where the item was imported: for readers alone."""


class Seal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Splits that only the store opens, after it has logged who, when and why."""

    splits: tuple[str, ...] = ()


class EvalsetHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`evalset.yaml`."""

    schema: int = 1
    name: str
    version: str = "1"
    licence: str = "unstated"
    provenance: str = "unstated"
    agent: Literal["harness", "bare"] = "harness"
    role: Literal["policy", "judge"] = "policy"
    """`judge`: replies that calibrate judges. No policy is ever evaluated on it."""
    items_of: str | None = None
    """The evalset whose items it shares by id: of a `judge` set, or of one with `states`."""
    states: str | None = None
    """Folder of augmentation maps: the items of `items_of` under augmented harness states."""
    filtered_by: tuple[str, ...] = ()
    """Ids of policies that wrote or chose the items: never in the headline of one of them."""
    splits: dict[str, int] = {}
    """Split name → number of items, checked on load."""
    metrics: tuple[str, ...] = ("accuracy", "effectiveness", "avg")
    judge: str = "grounded"
    seal: Seal = Seal()
    catalogue: str | None = "catalogue"
    """Folder beside the evalset that facts come from; its digest is bound by runs and manifests."""
    notes: str = ""
    digests: dict[str, str] = {}
    """Frozen content digest per split (SHA-256 of canonical JSON of its items), checked on load."""
