"""Assertions of an item, decided without a model: promptfoo's names, each negatable by `not-`.

What cannot be decided (a rubric, an unknown price, a value that makes no sense) is neither passed
nor failed: it is None, with its reason, and the item becomes unscored rather than wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from harness_cli.errors import JudgeError
from harness_cli.judges import text_checks, trajectory_checks
from harness_cli.judges.ifeval.assertion import ifeval
from harness_cli.judges.naturalness import RUBRIC, naturalness
from harness_cli.judges.outcome import Outcome
from harness_cli.records.item import Assertion, Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult

Check = Callable[[Assertion, Trajectory], Outcome]
Rubrics = Mapping[str, Outcome]
_NONE: Rubrics = {}

NEEDS_PANEL = ("llm-rubric", "select-best")
CHECKS: Mapping[str, Check] = {
    "contains": text_checks.contains,
    "contains-all": text_checks.contains,
    "contains-any": text_checks.contains,
    "icontains": text_checks.contains,
    "icontains-all": text_checks.contains,
    "icontains-any": text_checks.contains,
    "regex": text_checks.regex,
    "equals": text_checks.equals,
    "is-json": text_checks.is_json,
    "levenshtein": text_checks.levenshtein,
    "word-count": text_checks.word_count,
    "latency": text_checks.latency,
    "cost": text_checks.cost,
    "finish-reason": text_checks.finish_reason,
    "is-refusal": text_checks.is_refusal,
    "ifeval": ifeval,
    "naturalness": naturalness,
    "skill-used": trajectory_checks.skill_used,
    "tool-call-f1": trajectory_checks.tool_call_f1,
    "trajectory:tool-used": trajectory_checks.tool_used,
    "trajectory:tool-args-match": trajectory_checks.tool_args_match,
    "trajectory:tool-sequence": trajectory_checks.tool_sequence,
    "trajectory:step-count": trajectory_checks.step_count,
}
ASSERTION_TYPES = frozenset({*CHECKS, *NEEDS_PANEL, "assert-set"})
"""Every name that may follow `type:`, with or without `not-` before it."""


def check_assertions(
    item: Item, trajectory: Trajectory, rubrics: Rubrics = _NONE
) -> tuple[AssertionResult, ...]:
    """The result of each of the item's assertions, in order.

    `rubrics` holds what a panel made of the item's `llm-rubric`s, by their text.
    """
    return tuple(check_assertion(assertion, trajectory, rubrics) for assertion in item.assert_)


def check_assertion(
    assertion: Assertion, trajectory: Trajectory, rubrics: Rubrics = _NONE
) -> AssertionResult:
    """The result of one assertion."""
    kind = assertion.type.removeprefix("not-")
    try:
        outcome = _outcome(kind, assertion, trajectory, rubrics)
    except JudgeError as exc:
        return AssertionResult(type=assertion.type, passed=None, reason=str(exc))
    negate = assertion.type.startswith("not-")
    passed = _negated(outcome) if negate else outcome.passed
    score = None if passed is None else float(passed)
    if outcome.score is not None:
        # tool-call-f1 keeps its F1 as score; an assert-set its weighted mean.
        score = outcome.score
    return AssertionResult(type=assertion.type, passed=passed, reason=outcome.reason, score=score)


def _negated(outcome: Outcome) -> bool | None:
    if outcome.passed is None:
        return None
    return not outcome.passed if outcome.negated is None else outcome.negated


def _outcome(kind: str, assertion: Assertion, trajectory: Trajectory, rubrics: Rubrics) -> Outcome:
    if kind in NEEDS_PANEL:
        return rubrics.get(str(assertion.value)) or Outcome(None, "needs a panel judge")
    if kind == "assert-set":
        return _set(assertion.assert_, assertion.threshold, trajectory, rubrics)
    if kind == "naturalness" and RUBRIC in rubrics and trajectory.reply.strip():
        return rubrics[RUBRIC]  # a panel was to say it, in place of the rules
    check = CHECKS.get(kind)
    if check is None:
        near = get_close_matches(kind, sorted(ASSERTION_TYPES), n=1)
        meant = f", did you mean `{near[0]}`?" if near else ""
        raise JudgeError(f"no assertion named `{kind}`{meant}")
    return check(assertion, trajectory)


def _set(
    members: Sequence[Assertion],
    threshold: float | None,
    trajectory: Trajectory,
    rubrics: Rubrics,
) -> Outcome:
    """All members pass; with a threshold, their weighted mean score reaches it.

    Undecided members leave the set undecided only where they could still change its outcome.
    """
    if not members:
        raise JudgeError("assert-set needs members under `assert`")
    results = [check_assertion(m, trajectory, rubrics) for m in members]
    total = sum(m.weight for m in members)
    if total <= 0:
        raise JudgeError("assert-set: the weights sum to 0")
    known = [(m.weight, r) for m, r in zip(members, results, strict=True) if r.passed is not None]
    sure = sum(w * (r.score or 0.0) for w, r in known) / total
    open_share = 1 - sum(w for w, _ in known) / total
    failed = [r for _, r in known if not r.passed]
    undecided = len(known) < len(members)
    score = None if undecided else sure
    if threshold is not None:
        reached = sure >= threshold - 1e-9
        if undecided and not reached and sure + open_share >= threshold - 1e-9:
            return Outcome(None, "members that need a panel judge decide it")
        return Outcome(reached, f"score {sure:.3f} of {threshold:g}", score=score)
    if failed:
        return Outcome(False, f"{failed[0].type}: {failed[0].reason}", score=score)
    if undecided:
        return Outcome(None, "members that need a panel judge decide it")
    return Outcome(True, "all passed", score=score)
