"""Whether to go on: advice with its reasons, never a decision (METHODS §8, TR App. B).

The tool advises to stop when (a) no failure cluster is both large and systematic, or (b) the last
`k` stages did not help: none improved on what was selected before it, or it bought one metric with
another beyond noise. The selected stage is the last one that passed, not the newest.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from harness_cli.records.diagnosis import Cluster

Outcome = Literal["better", "same", "worse", "unknown"]
K = 2
"""Stages without help after which stopping is advised (METHODS §8, choice)."""
Z = 1.96


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One measured harness of the loop, in the order in which they were made."""

    name: str
    kind: Literal["baseline", "base", "evolution"] = "evolution"
    """Only evolutions count as stages; baselines are what they are measured against."""
    scores: dict[str, float | None] = {}
    """Metric → mean as a share of 1; None or absent when the record lacks it."""
    n: int | None = None
    """Items behind each mean."""
    outcomes: dict[str, Outcome] = {}
    """Metric → what a paired comparison with the selected stage said: it goes before `scores`."""
    clusters: tuple[Cluster, ...] | None = None
    """The diagnosis of this stage; None when there is none."""
    run: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage did against the stage that was selected before it."""

    stage: str
    against: str | None
    outcomes: dict[str, Outcome]
    improved: bool
    traded: bool
    """Improved one metric and regressed another, both beyond noise."""
    passed: bool
    gains: dict[str, float] = {}
    """Metric → mean difference, as a share of 1, where both stages have it."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """`action` is advice: promotion, rollback, another stage or stopping is a person's choice."""

    action: Literal["continue", "stop"]
    selected: str | None
    reasons: tuple[str, ...]
    stages: tuple[Judgement, ...] = ()
    k: int = K


def advise(
    stages: Sequence[Stage], *, k: int = K, clusters: Sequence[Cluster] | None = None
) -> Advice:
    """Advice after the last of `stages`; `clusters` is its diagnosis when it carries none."""
    judged, selected = judge_stages(stages)
    found = stages[-1].clusters if stages and clusters is None else clusters
    a_stop, a_reason = _clusters_left(found)
    tried = [j for j, stage in zip(judged, stages, strict=True) if stage.kind == "evolution"]
    b_stop, b_reason = _stages_helped(tried, k)
    reasons = [r for r in (a_reason, b_reason) if r]
    if selected is not None:
        newest = stages[-1].name
        note = "" if selected == newest else f", not the newest, `{newest}`"
        reasons.append(f"the selected stage is the last that passed: `{selected}`{note}")
    return Advice(
        action="stop" if a_stop or b_stop else "continue",
        selected=selected,
        reasons=tuple(reasons),
        stages=tuple(judged),
        k=k,
    )


def judge_stages(stages: Sequence[Stage]) -> tuple[list[Judgement], str | None]:
    """Each stage against the one selected before it, and the name of the one selected in the end.

    A stage passes when no metric is worse beyond noise and it improved: some metric is better
    beyond noise, or the mean over the metrics is higher. A first stage passes for want of another.
    """
    judged: list[Judgement] = []
    selected: Stage | None = None
    for stage in stages:
        judgement = _judge(stage, selected)
        judged.append(judgement)
        if judgement.passed:
            selected = stage
    return judged, selected.name if selected else None


def _judge(stage: Stage, incumbent: Stage | None) -> Judgement:
    if incumbent is None:
        return Judgement(
            stage=stage.name, against=None, outcomes={}, improved=True, traded=False, passed=True
        )
    outcomes = {**_outcomes(stage, incumbent), **stage.outcomes}
    better = "better" in outcomes.values()
    worse = "worse" in outcomes.values()
    higher = _mean_gain(stage, incumbent) > 0
    return Judgement(
        stage=stage.name,
        against=incumbent.name,
        outcomes=outcomes,
        improved=(better or higher) and not worse,
        traded=better and worse,
        passed=(better or higher) and not worse,
        gains=_gains(stage, incumbent),
    )


def _outcomes(stage: Stage, incumbent: Stage) -> dict[str, Outcome]:
    return {
        metric: compare(stage.scores.get(metric), old, stage.n, incumbent.n)
        for metric, old in incumbent.scores.items()
    }


def compare(new: float | None, old: float | None, n_new: int | None, n_old: int | None) -> Outcome:
    """Two means told apart without pairs: |Δ| against 1.96 binomial standard errors.

    A bounded score with mean p has at most the variance p(1 − p), so this calls too few
    differences, never too many; a paired comparison in `Stage.outcomes` is sharper.
    """
    if new is None or old is None:
        return "unknown"
    noise = 0.0
    if n_new and n_old:
        noise = Z * math.sqrt(new * (1 - new) / n_new + old * (1 - old) / n_old)
    if abs(new - old) <= noise:
        return "same"
    return "better" if new > old else "worse"


def _mean_gain(stage: Stage, incumbent: Stage) -> float:
    gains = _gains(stage, incumbent).values()
    return sum(gains) / len(gains) if gains else 0.0


def _gains(stage: Stage, incumbent: Stage) -> dict[str, float]:
    return {
        metric: new - old
        for metric, old in incumbent.scores.items()
        if old is not None and (new := stage.scores.get(metric)) is not None
    }


def _clusters_left(clusters: Sequence[Cluster] | None) -> tuple[bool, str]:
    if clusters is None:
        return False, ""
    large = [c for c in clusters if c.systematic]
    if not large:
        return True, "(a) no failure cluster is both large and systematic: what is left is sparse"
    named = ", ".join(f"`{c.id}` ({c.size}, {c.share:.0%})" for c in large[:3])
    return False, f"systematic clusters are left: {named}"


def _stages_helped(tried: Sequence[Judgement], k: int) -> tuple[bool, str]:
    last = tried[-k:]
    if len(last) < k:
        return False, ""
    if any(stage.improved for stage in last):
        helped = [s for s in last if s.improved]
        return False, f"of the last {k} stages {len(helped)} helped: {_listed(helped)}"
    return True, f"(b) the last {k} stages did not help: {_listed(last)}"


def _listed(stages: Sequence[Judgement]) -> str:
    return "; ".join(f"`{s.stage}` {_told(s)}" for s in stages)


def _told(stage: Judgement) -> str:
    told = []
    for metric, outcome in stage.outcomes.items():
        gain = stage.gains.get(metric)
        told.append(f"{metric} {outcome}" + ("" if gain is None else f" ({100 * gain:+.2f})"))
    return ", ".join(told) or "no change"


def as_data(advice: Advice) -> dict[str, Any]:
    """The advice as it stands in `diagnosis.json`."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(advice))
    return plain
