"""How a judge was calibrated, and the candidate replies that calibrate one.

A calibration set holds no items of its own: it names an evalset whose items it shares by id and
gives, for each of them, replies whose labels follow from how they were made.
"""

from typing import Any, Literal

import msgspec

from harness_cli.records.run import Interval

CORRUPTIONS = (
    "wrong_price",
    "unsupported_claim",
    "false_promise",
    "human_identity",
    "wrong_link",
    "partial",
    "missed_comment",
    "over_refusal",
)
"""What is done to a correct reply; the words of docs/judging.md."""

Origin = Literal["construction", "team", "human", "unstated"]
"""Where labels come from. Only `human` is an annotation by people who did not build the judge."""
Standing = Literal["current", "changed", "absent"]


class LabelledCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call that the reply rests on."""

    name: str
    arguments: dict[str, Any] = {}
    result: Any = None
    ok: bool = True


class CandidateReply(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One reply to an item, with the labels that follow from how it was made."""

    id: str
    reply: str
    accuracy: Literal[0, 1]
    effectiveness: float
    """0, 0.5 or 1."""
    corruption: str = ""
    """One of `CORRUPTIONS`; empty for the correct reply."""
    change: str = ""
    """What was changed, for a reader: `699 → 559`."""


class CandidateLine(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One line of `candidates.jsonl`: an item by id, its tool results, and replies to it."""

    item_id: str
    category: str
    calls: tuple[LabelledCall, ...] = ()
    """True results, also where the reply says something else."""
    replies: tuple[CandidateReply, ...]


class JudgeIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything whose change makes another judge of it."""

    name: str
    """Its entry in `harness.yaml`."""
    id: str
    """name@digest, as runs record it."""
    kind: str = "panel"
    tree: str | None = None
    """Git tree id of the judge's own harness; None for the grounded judge, which is code."""
    panel: dict[str, str] = {}
    """Policy that votes → its identity."""
    rule: str = ""


class MetricAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """A judge against the reference on one metric."""

    raw: float
    """Share graded alike of all; an unscored reply is one that is not."""
    raw_interval: Interval
    kappa: float | None
    kappa_interval: Interval | None
    weights: str
    labels: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Row: the label; column: what the judge gave, in the order of `labels`."""
    invalid: tuple[int, ...] = ()
    """Label → unscored replies; empty where all were scored."""


class KindCount(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of corruption."""

    kind: str
    n: int
    caught: int
    """Graded below full marks."""
    alike: int
    """Graded exactly as labelled on both metrics."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """`manifests/calibration/<judge>.json`: bound to one judge, one set and one day."""

    schema: int = 1
    judge: JudgeIdentity
    evalset: str
    split: str | None
    evalset_digest: str
    """Binds the replies, their labels and the items."""
    catalogue_digest: str
    labels: Origin
    source: str = ""
    """The labels file, relative to the project; empty for the calibration set."""
    annotators: tuple[str, ...] = ()
    n: int
    unscored: int
    accuracy: MetricAgreement
    effectiveness: MetricAgreement
    kinds: tuple[KindCount, ...] = ()
    at: str
    by: str
    versions: dict[str, str] = {}

    @property
    def agreement(self) -> dict[str, float]:
        """Metric → raw agreement, which the floors of a gate are held against."""
        return {"accuracy": self.accuracy.raw, "effectiveness": self.effectiveness.raw}
