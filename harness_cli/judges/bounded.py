"""Regular expressions of an evalset, bounded by a clock: a pattern is data and may be hostile."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from harness_cli.errors import JudgeError

MAX_PATTERN = 2_000
MAX_TEXT = 100_000
STEPS = 20_000_000
"""Character comparisons that run in this process (about 0.2 s); beyond them a child decides."""
CHILD_S = 2.0

_CHILD = (
    "import json,re,sys\n"
    "pattern,text=json.loads(sys.stdin.read())\n"
    "print(int(re.search(pattern,text) is not None))\n"
)


def search(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text.

    A pattern that may backtrack for longer than `STEPS` runs in a process of its own, which is
    ended after `CHILD_S`. Raises `JudgeError` for one that is no pattern, too long or too slow.
    """
    if len(pattern) > MAX_PATTERN or len(text) > MAX_TEXT:
        raise JudgeError(f"pattern or text is too long (over {MAX_PATTERN} or {MAX_TEXT})")
    compiled, degree = _compiled(pattern)
    if degree is not None and float(len(text) + 1) ** (degree + 1) <= STEPS:
        return compiled.search(text) is not None
    return _in_child(pattern, text)


def _in_child(pattern: str, text: str) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=json.dumps([pattern, text]),
            capture_output=True,
            text=True,
            timeout=CHILD_S,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise JudgeError(f"the pattern ran longer than {CHILD_S:g} s") from None
    except subprocess.CalledProcessError as exc:
        raise JudgeError(f"the pattern failed: {exc.stderr.strip()[-200:]}") from exc
    return done.stdout.strip() == "1"


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> tuple[re.Pattern[str], int | None]:
    """The compiled pattern and the degree of its worst case; None when that is exponential."""
    try:
        return re.compile(pattern), _degree(pattern)
    except (re.error, RecursionError, OverflowError) as exc:
        raise JudgeError(f"`{pattern[:80]}` is no regular expression: {exc}") from exc


def _degree(pattern: str) -> int | None:
    """How many open repeats follow each other; None when one stands within another."""
    # The parse tree is not public, but nothing else tells a repeat from a literal star.
    parsed = re._parser.parse(pattern)  # type: ignore[attr-defined]
    return _count(parsed, inside=False)


def _count(nodes: Iterable[Any], *, inside: bool) -> int | None:
    total = 0
    for operator, argument in nodes:
        name = str(operator)
        open_ended = "REPEAT" in name and argument[1] > 20
        # Within an open repeat a choice or another repeat lets one text be read in many ways.
        if inside and ("REPEAT" in name or "BRANCH" in name):
            return None
        if "GROUPREF" in name:
            return None
        total += open_ended
        for part in _parts(argument):
            inner = _count(part, inside=inside or open_ended)
            if inner is None:
                return None
            total += inner
    return total


def _parts(argument: Any) -> list[Any]:
    """Every sub-pattern within an operator's argument."""
    if type(argument).__name__ == "SubPattern":
        return [argument]
    if isinstance(argument, list | tuple):
        return [found for part in argument for found in _parts(part)]
    return []
