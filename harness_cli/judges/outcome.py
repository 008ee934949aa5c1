"""What one check of an assertion comes to, before it is negated or weighed."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from harness_cli.errors import JudgeError
from harness_cli.records.counting import counted


@dataclass(frozen=True, slots=True)
class Outcome:
    """Passed, failed, or (None) not decidable; `negated` where `not-` is more than the opposite."""

    passed: bool | None
    reason: str
    score: float | None = None
    negated: bool | None = None


def matches(name: str, wanted: dict[str, Any]) -> bool:
    """A tool or skill name against `name` (exact) and `pattern` (shell pattern, case ignored)."""
    if "name" in wanted and name != wanted["name"]:
        return False
    pattern = wanted.get("pattern")
    return pattern is None or fnmatchcase(name.lower(), str(pattern).lower())


def named(value: Any, what: str) -> dict[str, Any]:
    """A matcher from a name or from `{name | pattern, …}`."""
    if isinstance(value, str) and value.strip():
        return {"name": value.strip()}
    if isinstance(value, dict) and (value.get("name") or value.get("pattern")):
        return value
    raise JudgeError(f"{what} needs a name, or a mapping with `name` or `pattern`")


def number(value: Any, what: str) -> float:
    """A number from a number or its text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise JudgeError(f"{what} needs a number")
    try:
        return float(value)
    except ValueError:
        raise JudgeError(f"{what} needs a number, not `{value}`") from None


def within(count: float, low: Any, high: Any, what: str) -> bool:
    """Whether a count lies in a range, either end of which may be missing."""
    if low is None and high is None:
        raise JudgeError(f"{what} needs `min` or `max`")
    return (low is None or count >= number(low, what)) and (
        high is None or count <= number(high, what)
    )


def used(names: list[str], value: Any, what: str, *, least: int = 1) -> Outcome:
    """`skill-used` and `trajectory:tool-used`: one name, all of a list, or a counted matcher.

    Negated, a list passes only when none of it was used (promptfoo).
    """
    seen = ", ".join(names) or "none"
    if isinstance(value, dict):
        wanted = named(value, what)
        count = sum(matches(n, wanted) for n in names)
        low = value.get("min", 0 if "max" in value and least == 0 else 1)
        label = wanted.get("name") or wanted.get("pattern")
        return Outcome(
            within(count, low, value.get("max"), what),
            f"`{label}` used {counted(count, 'time')}, used: {seen}",
        )
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise JudgeError(f"{what} needs at least one name")
    hits = [w for w in (named(v, what) for v in listed) if any(matches(n, w) for n in names)]
    return Outcome(len(hits) == len(listed), f"used: {seen}", negated=not hits)
