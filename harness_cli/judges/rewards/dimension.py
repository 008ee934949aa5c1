"""What a reward is: one dimension of one trajectory in [0, 1], with what it rests on."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness_cli.records.verdict import Finding

DIMENSIONS = {
    "accuracy": "nothing in the reply is wrong or unsupported",
    "effectiveness": "everything that was asked for is covered",
    "tool_rationality": "the tools that were needed, called rightly, and no others",
    "skill_selection": "the skills that fit what the viewer wants, and no others",
    "rule_compliance": "no rule of the harness had to be enforced, no rule of conduct was broken",
    "length": "as short as a live host speaks",
}
"""Dimension → what 1 means (TR §3.3, AR "Reward design")."""
TOOL = ("tool_rationality", "skill_selection")
"""D_tool of METHODS §6."""
REPLY = ("accuracy", "effectiveness")
"""D_reply of METHODS §6."""


@dataclass(frozen=True, slots=True)
class Reward:
    """One dimension. Without a score it has a reason: unscored is never 0."""

    dimension: str
    score: float | None
    evidence: tuple[Finding, ...] = ()
    unscored: str = ""


def scored(dimension: str, score: float, evidence: Iterable[Finding] = ()) -> Reward:
    """A reward with a score, kept within [0, 1]."""
    return Reward(dimension, min(1.0, max(0.0, score)), tuple(evidence))


def note(
    dimension: str, detail: str, *, quote: str = "", evidence: str = "", step: int | None = None
) -> Finding:
    """What a reward rests on, as a finding of its dimension."""
    return Finding(kind=dimension, detail=detail, quote=quote, evidence=evidence, step=step)
