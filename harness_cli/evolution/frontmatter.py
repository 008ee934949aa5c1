"""The frontmatter of a SKILL.md or a failure class: find it, change one key of it."""

import re
from typing import Any, NamedTuple

from harness_cli.errors import BadFile
from harness_cli.evolution.pointer import change_at
from harness_cli.evolution.text_file import Splice
from harness_cli.records.reader import load_yaml

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)


class Span(NamedTuple):
    """Offsets of the YAML between the fences, and of the body behind them."""

    start: int
    end: int
    body: int


def find_frontmatter(text: str, *, name: str) -> Span:
    """Where the frontmatter lies: it ends at the first fence that leaves a whole YAML mapping.

    A line `---` inside a quoted value leaves the quote open and is passed over; a rule in the body
    is never reached.
    """
    opening = _FENCE.match(text, len(text) - len(text.lstrip("\n")))
    if opening is None:
        raise BadFile(f"{name}:1: no frontmatter", hint="the file begins with a line `---`")
    start = min(opening.end() + 1, len(text))
    problem: BadFile | None = None
    for fence in _FENCE.finditer(text, start):
        try:
            value = load_yaml(text[start : fence.start()], name=name)
        except BadFile as exc:
            problem = problem or exc
            continue
        if isinstance(value, dict):
            return Span(start, fence.start(), min(fence.end() + 1, len(text)))
    raise problem or BadFile(f"{name}: the frontmatter has no end", hint="close it with `---`")


def set_frontmatter(text: str, key: str, value: Any, *, remove: bool, name: str) -> Splice:
    """The splice that sets one key. `metadata.x.y` is the key `x.y` under `metadata`."""
    span = find_frontmatter(text, name=name)
    head, _, rest = key.partition(".")
    front = text[span.start : span.end]
    tokens = ["metadata", rest] if head == "metadata" and rest else [key]
    if len(tokens) == 2 and not remove and "metadata" not in load_yaml(front, name=name):
        tokens, value = ["metadata"], {rest: value}
    made = change_at(front, tokens, value, remove=remove, name=name)
    return Splice(made.start + span.start, made.end + span.start, made.new)
