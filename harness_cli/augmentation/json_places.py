"""Where the names of a JSON object stand in its text, so that they can be put in its place."""

import json
import re
from collections.abc import Iterator

Place = tuple[int, int]
"""`text[start:end]`, quotes included."""
_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


def members(text: str) -> Iterator[tuple[Place, Place | None]]:
    """The places of each key of an object that can be read, and of its value where that is text."""
    at = _behind(text, 0) + 1
    while text[at := _behind(text, at)] != "}":
        _, end = _decode(text, at)
        key = at, end
        at = _behind(text, _behind(text, end) + 1)  # the colon
        value, end = _decode(text, at)
        yield key, (at, end) if isinstance(value, str) else None
        at = _behind(text, end)
        at += text[at] == ","


def _behind(text: str, at: int) -> int:
    """The first place from `at` on that is no white space."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
