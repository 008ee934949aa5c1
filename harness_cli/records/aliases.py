"""YAML aliases that stand for more than a file can mean."""

from typing import Any

from harness_cli.errors import BadFile

MOST = 1_000_000
"""A few lines can nest aliases for billions of values; no file a person edits has so many."""


def refuse_many(value: Any, *, name: str) -> None:
    """Raise `BadFile` where `value` holds more than `MOST` values once aliases are written out."""
    if _written_out(value, {}) > MOST:
        raise BadFile(
            f"{name}: its aliases (`*name`) stand for more than {MOST:,} values",
            hint="write the values out",
        )


def _written_out(value: Any, known: dict[int, int]) -> int:
    """The number of values; a shared one is walked once and counted as often as it stands."""
    if not isinstance(value, dict | list | tuple):
        return 1
    if id(value) not in known:
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_written_out(one, known) for one in inside)
    return known[id(value)]
