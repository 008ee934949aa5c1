"""Batch lines by the thousand: a line that was read once makes the pattern of those like it.

Within one log the keys of a line hardly change. So the first line of a kind is read with care
(`lines.read_line`), and a regular expression of its very words reads the rest, a block of lines at
a time; what does not match is read with care again. This is what makes 200,000 lines a second.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness_cli.serving.engine_logs.lines import BATCH, KEYS, PAIR, PREFIX, STAMP, Line

WANTED: Final = (
    "running",
    "queue",
    "accept_len",
    "accept_rate",
    "throughput",
    "input_throughput",
)
"""What the series are made of, in the order of the table's columns."""
LOOSE: Final = r"[0-9.]++"
"""Of a number that nobody needs. Possessive: a line that does not match is not tried otherwise."""
EXACT: Final = r"[0-9]++(?:\.[0-9]++)?+"
ANSWERED: Final = (
    r"(?:\[\d{4}-\d\d-\d\d[ T][\d:.,]++(?: [A-Z][^\]]*+)?\] )?"
    r"INFO: ++\S++ - \"[A-Z]++ [^\s\"]++ HTTP/[\d.]++\" (\d{3})(?: [^\[\n]*)?$"
)
"""uvicorn's line of an answer."""
_TIME: Final = r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:.,]++)"
_TAGS: Final = r"( [A-Z][^\]]*+|)"


@dataclass(frozen=True, slots=True)
class Shape:
    """The pattern of a line and what its groups are: time, tags, then `names`."""

    pattern: str
    names: tuple[str, ...]
    decode: bool
    label: str

    @property
    def width(self) -> int:
        """Its groups."""
        return 2 + len(self.names)


def shape_of(raw: str, line: Line) -> Shape | None:
    """The shape of a batch line that was read; None for what is better read line by line.

    Lines with another logger's words in front, and those with a time at the end, are rare.
    """
    found = BATCH.search(raw)
    prefix = PREFIX.match(raw)
    if found is None or prefix is None or prefix.end() != found.start() or line.values is None:
        return None
    body = raw[found.end() :].rstrip()
    if STAMP in body:
        return None
    number = r" \[\d+\]" if found.group(2) else ""
    parts = [
        r"\[" if raw.startswith("[") else "",
        _TIME,
        _TAGS,
        r"\] ",
        f"{found.group(1)} batch{number}{re.escape(found.group(3))} ",
    ]
    names = []
    at = 0
    while at < len(body) and (pair := PAIR.match(body, at)) and pair.end() > at:
        name = KEYS.get(pair.group(1).strip(), "")
        value = "(?:True|False)" if pair.group(2) in ("True", "False") else _value(pair.group(2))
        if name in WANTED:
            names.append(name)
            value = f"({EXACT})" if value == LOOSE else f"({value})"
        parts.append(re.escape(body[at : pair.start(2)]) + value)
        parts.append(re.escape(body[pair.end(2) : pair.end()]))
        at = pair.end()
    parts.append(" *+$")
    return Shape("".join(parts), tuple(names), line.kind == "decode", label_of(line))


def pattern_of(shapes: Sequence[Shape]) -> re.Pattern[str]:
    """One pattern for whole texts, a match for each line: by its shape; the status of an access
    line; or, last group, the line as it is."""
    parts = [*(s.pattern for s in shapes), ANSWERED, "(.*)$"]
    return re.compile("^(?:" + "|".join(parts) + ")", re.M)


def _value(text: str) -> str:
    return LOOSE + ("%" if text.endswith("%") else "")


def label_of(line: Line) -> str:
    """Which versions write a line like this, as near as the line tells."""
    values = line.values or {}
    if "cache_hit_rate" in values:
        return "0.3.6 to 0.4.3: cache hit rate"
    if line.numbered:
        return "iteration numbers (0.5.4, or SGLANG_LOG_FORWARD_ITERS)"
    if "cap_len" in values or "block_accept_len" in values:
        return "0.5.16 and later: cap len"
    if line.dotted:
        if "accept_rate" in values:
            return "0.5.3 post-releases: accept rate behind a full stop"
        return "0.4.10 to 0.5.3: comma at the end" if line.trailing else "until 0.4.9"
    if line.kind == "prefill":
        if "pending_tokens" in values:
            return "0.5.11 and later: pending tokens"
        return "0.5.9 to 0.5.10" if "input_throughput" in values else "0.5.4 to 0.5.8"
    return "0.5.4 to 0.5.8: comma at the end" if line.trailing else "0.5.9 and later"
