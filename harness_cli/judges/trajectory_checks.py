"""Assertions on skills, tools and steps of a trajectory (promptfoo's names and meanings)."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from harness_cli.errors import JudgeError
from harness_cli.judges.outcome import Outcome, matches, named, used, within
from harness_cli.judges.text_checks import listed
from harness_cli.records.canonical import canonical_json
from harness_cli.records.counting import counted
from harness_cli.records.item import Assertion
from harness_cli.records.trajectory import Trajectory


def tool_names(trajectory: Trajectory) -> list[str]:
    """Every tool that was called, in order."""
    return [call.name for call in trajectory.calls]


def skill_used(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The skills were loaded."""
    return used(list(trajectory.skills_loaded), assertion.value, "skill-used", least=0)


def tool_used(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The tools were called."""
    return used(tool_names(trajectory), assertion.value, "trajectory:tool-used")


def tool_call_f1(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """F1 of the set of called tools against the expected ones reaches the threshold (1)."""
    wanted = {str(v).strip() for v in listed(assertion.value, "tool-call-f1")}
    score = f1(wanted, set(tool_names(trajectory)))
    least = 1.0 if assertion.threshold is None else assertion.threshold
    return Outcome(score >= least, f"F1 {score:.3f}, at least {least:g}", score=score)


def f1(wanted: set[str], got: set[str]) -> float:
    """2·|both| / (|wanted| + |got|); 0 when both are empty, as promptfoo has it."""
    return 2 * len(wanted & got) / (len(wanted) + len(got)) if wanted or got else 0.0


def tool_args_match(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """One call of the tool has these arguments: `{name, args, mode: partial|exact, …}`.

    `ignore` names arguments (shell patterns) left out of the comparison, `defaults` values that an
    argument may have without being expected.
    """
    value = assertion.value
    wanted = named(value, assertion.type) if isinstance(value, dict) else {}
    expected = wanted.get("args", wanted.get("arguments"))
    mode = wanted.get("mode", "partial")
    if expected is None or mode not in ("partial", "exact"):
        raise JudgeError(
            "trajectory:tool-args-match needs `name` and `args`, `mode` partial or exact"
        )
    ignore = wanted.get("ignore", [])
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    defaults = wanted.get("defaults", {})
    seen = [c for c in trajectory.calls if matches(c.name, wanted)]
    right = any(
        same_arguments(expected, c.arguments, mode, ignored, defaults)
        for c in seen
        if c.arguments is not None
    )
    got = "; ".join(c.arguments_raw for c in seen) or "no such call"
    return Outcome(right, "matched" if right else f"called with: {got}")


def same_arguments(
    expected: Any,
    actual: Mapping[str, Any],
    mode: str,
    ignored: Sequence[str],
    defaults: Mapping[str, Any],
) -> bool:
    """Whether a call's arguments are the expected ones."""
    kept = {
        key: value
        for key, value in actual.items()
        if not _ignored(key, ignored) and not (key in defaults and equal(defaults[key], value))
    }
    if isinstance(expected, dict):
        expected = {k: v for k, v in expected.items() if not _ignored(k, ignored)}
    return equal(expected, kept) if mode == "exact" else included(expected, kept)


def equal(a: Any, b: Any) -> bool:
    """The same JSON value (1 and 1.0 are one, true and 1 are not)."""
    return canonical_json(a) == canonical_json(b)


def included(expected: Any, actual: Any) -> bool:
    """Every key of `expected` stands in `actual` with its value; lists match element by element."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            k in actual and included(v, actual[k]) for k, v in expected.items()
        )
    if isinstance(expected, list | tuple):
        return (
            isinstance(actual, list | tuple)
            and len(actual) == len(expected)
            and all(included(e, a) for e, a in zip(expected, actual, strict=True))
        )
    return equal(expected, actual)


def _ignored(key: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(key, p) for p in patterns)


def tool_sequence(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The tools in this order: a list, or `{steps, mode: in_order|exact}`."""
    value = assertion.value
    mode, steps = "in_order", value
    if isinstance(value, dict):
        mode, steps = value.get("mode", "in_order"), value.get("steps")
    if not isinstance(steps, list) or not steps or mode not in ("in_order", "exact"):
        raise JudgeError("trajectory:tool-sequence needs a list of tools, `mode` in_order or exact")
    wanted = [named(s, assertion.type) for s in steps]
    names = tool_names(trajectory)
    passed = in_order(wanted, names)
    if mode == "exact":
        passed = len(names) == len(wanted) and passed
    return Outcome(passed, f"called: {', '.join(names) or 'none'}")


def in_order(wanted: Sequence[Mapping[str, Any]], names: Sequence[str]) -> bool:
    """The wanted names occur one after another, others may stand between."""
    left = iter(names)
    return all(any(matches(name, dict(w)) for name in left) for w in wanted)


def step_count(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """So many steps: `{min, max, type?, pattern?}`; types are `tool` and `model`, default both.

    promptfoo's `span`, `message` and `reasoning` steps count as model calls here.
    """
    value = assertion.value
    if not isinstance(value, dict):
        raise JudgeError("trajectory:step-count needs `min` or `max`")
    kinds = value.get("type", ["tool", "model"])
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    names = tool_names(trajectory) if "tool" in kinds else []
    if kinds & {"model", "span", "message", "reasoning"}:
        names += ["model"] * len(trajectory.steps)
    if "name" in value or "pattern" in value:
        names = [n for n in names if matches(n, value)]
    passed = within(len(names), value.get("min"), value.get("max"), assertion.type)
    return Outcome(passed, f"{counted(len(names), 'step')}")
