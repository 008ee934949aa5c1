"""Numbers as the demo tells them."""

from typing import Any


def percent(value: float | None) -> str:
    """A share in percent."""
    return "–" if value is None else f"{100 * value:.2f}"


def points(value: float | None) -> str:
    """A difference in percentage points."""
    return "–" if value is None else f"{100 * value:+.2f}"


def interval(found: Any) -> str:
    """An interval in percent."""
    return "–" if found is None else f"[{100 * found.low:.2f}, {100 * found.high:.2f}]"
