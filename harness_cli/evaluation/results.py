"""What one rollout came to: its state, its scores, and the digest of its trajectory."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_cli.evaluation.metrics import item_scores
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult, ItemResult, State, Verdict


def item_result(
    item: Item,
    trajectory: Trajectory,
    verdict: Verdict | None,
    assertions: Sequence[AssertionResult],
    *,
    judge_error: str | None = None,
    timed: bool = True,
    digest: str = "",
) -> ItemResult:
    """The line of a report for one rollout; `timed` is False when it was partly replayed.

    `digest` is `trajectory_digest` of its compact form (`evaluation.texts`).
    """
    judged = verdict.scores if verdict else {}
    scores = {} if trajectory.errored else item_scores(item, trajectory, judged, assertions)
    reason = judge_error or (verdict.unscored_reason if verdict else None)
    state, why = outcome(trajectory, verdict, assertions, reason)
    replies = [step.reply for step in trajectory.steps]
    fresh = timed and not any(reply.cached for reply in replies)
    return ItemResult(
        item_id=item.id,
        repeat=trajectory.repeat,
        category=item.category,
        tags=item.tags,
        state=state,
        scores=scores,
        reply=trajectory.reply,
        route=str(trajectory.route),
        stop=str(trajectory.stop),
        error=why,
        findings=verdict.findings if verdict else (),
        assertions=tuple(assertions),
        skills_loaded=trajectory.skills_loaded,
        tools_called=tuple(call.name for call in trajectory.calls),
        hooks_fired=hooks_fired(trajectory),
        rounds=len(trajectory.steps),
        fell_back=trajectory.fell_back,
        input_tokens=_total([reply.usage.input_tokens for reply in replies]),
        output_tokens=_total([reply.usage.output_tokens for reply in replies]),
        cost=_total([reply.cost for reply in replies]),
        trajectory_sha256=digest,
        wall_s=trajectory.wall_s if fresh else None,
        ttft_s=replies[0].ttft_s if fresh and replies else None,
    )


def outcome(
    trajectory: Trajectory,
    verdict: Verdict | None,
    assertions: Sequence[AssertionResult],
    reason: str | None,
) -> tuple[State, str | None]:
    """passed, failed, unscored or errored, and why it is one of the last two.

    A definite failure (accuracy 0, an assertion that does not hold) decides even where something
    else could not be scored; a pass needs everything to be scored.
    """
    if trajectory.errored:
        return "errored", trajectory.error or str(trajectory.stop)
    units = _units(verdict, assertions)
    if any(unit is False for unit in units):
        return "failed", reason
    if reason is not None or any(unit is None for unit in units):
        return "unscored", reason or _undecided(verdict, assertions)
    if not units:
        return "unscored", "neither the judge nor an assertion has anything to score by"
    return "passed", None


def hooks_fired(trajectory: Trajectory) -> tuple[str, ...]:
    """Hooks that did something else than allow, in order, once a time."""
    events = [*trajectory.hooks, *(event for step in trajectory.steps for event in step.hooks)]
    return tuple(f"{e.hook}:{e.outcome}" for e in events if e.outcome != "allow")


def _units(verdict: Verdict | None, assertions: Sequence[AssertionResult]) -> list[bool | None]:
    units: list[bool | None] = [assertion.passed for assertion in assertions]
    scores: Mapping[str, float | None] = verdict.scores if verdict else {}
    headline = [name for name in ("accuracy", "effectiveness") if name in scores] or list(scores)
    for name in headline:
        score = scores[name]
        units.append(None if score is None else score >= 1.0)
    return units


def _undecided(verdict: Verdict | None, assertions: Sequence[AssertionResult]) -> str:
    for assertion in assertions:
        if assertion.passed is None:
            return f"assertion `{assertion.type}`: {assertion.reason or 'not decided'}"
    names = [name for name, score in (verdict.scores if verdict else {}).items() if score is None]
    return f"not scored: {', '.join(names)}"


def _total(values: Sequence[Any]) -> Any:
    """The sum; None, unknown, when any part is unknown or there is none."""
    return None if not values or None in values else sum(values)
