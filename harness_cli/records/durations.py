"""Durations as people write them in options and crontabs: `90s`, `15m`, `3h`, `7d`, `2w`."""

import re

_WRITTEN = re.compile(r"(\d{1,6})\s*(s|m|h|d|w)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds_of(text: str) -> int | None:
    """A duration in seconds; None where the text is none."""
    found = _WRITTEN.fullmatch(text.strip())
    return int(found[1]) * _SECONDS[found[2]] if found else None
