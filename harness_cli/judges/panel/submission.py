"""From a judge's finished rollout to its vote: only what travelled as a call of its tool counts."""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from harness_cli.judges.panel.case import Case
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.trajectory import StopReason, ToolCall, Trajectory
from harness_cli.records.verdict import Evidence, Finding, RubricVote, Vote
from harness_cli.runtime.stages import ENDED_HERE

GRADES: dict[str, tuple[float, ...]] = {"accuracy": (0.0, 1.0), "effectiveness": (0.0, 0.5, 1.0)}
"""Metric → the grades it knows (METHODS §2)."""
SHOWN = 160
"""Characters of an answer that a reason quotes."""


class Cited(msgspec.Struct, frozen=True, kw_only=True):
    """One finding as submitted."""

    kind: str
    detail: str = ""
    quote: str = ""
    ref: str = ""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the verdict tool: what is relied on, whatever its schema in the harness says."""

    accuracy: float
    effectiveness: float
    reasons: dict[str, str] = {}
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Cited, ...] = ()
    rubrics: tuple[RubricVote, ...] = ()


Read = Callable[[Vote, Any], Vote]
"""From a vote without scores and the submitted arguments to the vote, scored or not.

Raises `msgspec.ValidationError` for arguments that are no submission.
"""


def read_vote(trajectory: Trajectory, read: Read, *, voter: str, answers: Collection[str]) -> Vote:
    """The vote of one member; `answers` names its verdict tools.

    Anything but exactly one valid call leaves the vote unscored, with the reason.
    """
    steps = trajectory.steps
    replies = [step.reply for step in steps]
    vote = Vote(
        voter=voter,
        policy=trajectory.policy_id,
        trajectory_sha256=trajectory_digest(trajectory),
        looked_up=tuple(
            f"{c.name}({c.arguments_raw[:SHOWN]})"
            for c in trajectory.calls
            if c.executor == "evidence"
        ),
        calls=len(steps),
        input_tokens=_total([r.usage.input_tokens for r in replies]),
        output_tokens=_total([r.usage.output_tokens for r in replies]),
        cost=_total([r.cost for r in replies]),
    )
    calls = [c for c in (steps[-1].calls if steps else ()) if c.name in answers and c.result.ok]
    if len(calls) != 1 or trajectory.stop is not StopReason.COMPLETED:
        reason = f"{len(calls)} verdicts in one answer" if len(calls) > 1 else None
        vote = msgspec.structs.replace(vote, failed=_provider_failed(trajectory))
        return _unscored(vote, reason or _why_none(trajectory, answers))
    try:
        return read(vote, calls[0].arguments)
    except msgspec.ValidationError as exc:
        return _unscored(vote, f"the verdict cannot be read: {exc}")


def graded(case: Case) -> Read:
    """How a verdict on one reply is read."""
    return lambda vote, arguments: _scored(vote, msgspec.convert(arguments, Submission), case)


def _scored(vote: Vote, submitted: Submission, case: Case) -> Vote:
    given = {metric: getattr(submitted, metric) for metric in GRADES}
    for metric, grade in given.items():
        if grade not in GRADES[metric]:
            known = ", ".join(f"{g:g}" for g in GRADES[metric])
            return _unscored(vote, f"{metric} {grade:g} is no grade, which are {known}")
    asked = {rubric.id for rubric in case.rubrics}
    return msgspec.structs.replace(
        vote,
        scores={**given, "avg": (given["accuracy"] + given["effectiveness"]) / 2},
        reasons={k: v for k, v in submitted.reasons.items() if k in GRADES},
        evidence=submitted.evidence,
        findings=tuple(_finding(f, case.trajectory.reply) for f in submitted.findings),
        rubrics=_answered(submitted.rubrics, asked),
    )


def _finding(cited: Cited, reply: str) -> Finding:
    """A finding; words that the reply does not hold are not shown as its words."""
    quote, detail = cited.quote, cited.detail
    if quote and quote not in reply:
        quote, detail = "", f"{detail} (the words quoted are not in the reply)".strip()
    return Finding(kind=cited.kind, detail=detail, quote=quote, evidence=cited.ref)


def _answered(given: tuple[RubricVote, ...], asked: Collection[str]) -> tuple[RubricVote, ...]:
    """Rubrics that were asked for and answered one way."""
    ways: dict[str, set[bool]] = {}
    for rubric in given:
        ways.setdefault(rubric.id, set()).add(rubric.passed)
    kept: dict[str, RubricVote] = {}
    for rubric in given:
        if rubric.id in asked and len(ways[rubric.id]) == 1:
            kept.setdefault(rubric.id, rubric)
    return tuple(kept.values())


def _provider_failed(trajectory: Trajectory) -> bool:
    return trajectory.stop in (StopReason.PROVIDER_ERROR, StopReason.TIMEOUT)


def _why_none(trajectory: Trajectory, answers: Collection[str]) -> str:
    """Why a rollout came to no verdict."""
    if trajectory.errored or trajectory.stop is StopReason.TIMEOUT:
        return trajectory.error or trajectory.stop.value
    if trajectory.stop is StopReason.REFUSED:
        reasons = [c.arguments or {} for c in trajectory.calls if _refusal(c)]
        said = str(reasons[-1].get("reason", "")) if reasons else ""
        return f"abstained: {said}" if said else "abstained"
    last = trajectory.steps[-1].reply if trajectory.steps else None
    if last is not None and last.finish_reason == "content_filter":
        return f"refused to judge: {_quoted(last.content)}"
    rejected = [
        c
        for c in trajectory.calls
        if c.name in answers and not c.result.ok and c.result.content != ENDED_HERE
    ]
    if rejected:
        # Sent again unchanged, it is refused for being a repetition: the first time says why.
        first = next(c for c in rejected if c.arguments_raw == rejected[-1].arguments_raw)
        return f"no valid verdict: {_quoted(first.result.content)}"
    if last is not None and last.content and not last.tool_calls:
        return f"no verdict, only text: {_quoted(last.content)}"
    if last is not None and not last.tool_calls:
        return "no verdict: an empty answer"
    return f"no verdict: {trajectory.error or trajectory.stop.value}{_unknown_tools(trajectory)}"


def _unknown_tools(trajectory: Trajectory) -> str:
    known = set(trajectory.tools_offered)
    unknown = sorted({c.name for c in trajectory.calls if c.name not in known})
    return f"; called unknown tools: {_quoted(', '.join(unknown))}" if unknown else ""


def _quoted(text: str | None) -> str:
    plain = " ".join((text or "").split())
    return f"`{plain[:SHOWN]}…`" if len(plain) > SHOWN else f"`{plain}`"


def _unscored(vote: Vote, reason: str) -> Vote:
    return msgspec.structs.replace(vote, unscored=reason)


def _refusal(call: ToolCall) -> bool:
    structured = call.result.structured
    return isinstance(structured, dict) and structured.get("refused") is True


def _total(values: list[Any]) -> Any:
    """The sum; None, unknown, when any part is unknown or there is none."""
    return None if not values or any(value is None for value in values) else sum(values)
