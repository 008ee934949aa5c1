"""Whether a reply says a value, and where a tool's result holds it."""

import re
from collections.abc import Iterator
from typing import Any

from harness_cli.records.item import Fact
from harness_cli.records.trajectory import Trajectory


def says(reply: str, fact: Fact) -> bool:
    """The reply carries the fact's value, or one of its accepted wordings."""
    text = reply.casefold()
    return any(form.casefold() in text for form in fact.forms) or _has(text, fact.value)


def _has(text: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, int | float):
        return _number(value).search(text.replace(",", "")) is not None
    if isinstance(value, list | tuple):
        return bool(value) and all(_has(text, part) for part in value)
    return bool(str(value).strip()) and str(value).casefold() in text


def _number(value: float) -> re.Pattern[str]:
    whole = f"{value:g}" if float(value).is_integer() else f"{value:.4f}".rstrip("0")
    return re.compile(rf"(?<![\d.]){re.escape(whole)}(?:\.0+)?(?!\d|\.\d)")


def find_value(trajectory: Trajectory, value: Any) -> tuple[int, str, str] | None:
    """(step, tool, field path) of the first tool result that holds the value."""
    for step in trajectory.steps:
        for call in step.calls:
            for path, found in leaves(call.result.structured):
                if _same(found, value):
                    return step.index, call.name, path
    return None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a structured result with its dotted path; list places are not named."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path, value


def _same(found: Any, value: Any) -> bool:
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, int | float) and isinstance(value, int | float):
        return abs(found - value) < 1e-9
    return str(found).casefold() == str(value).casefold()
