"""Regular expressions of hooks, bounded: a pattern that backtracks without end is stopped.

Texts are looked at in windows of `WINDOW` characters, which alone bounds a pattern with at most one
unbounded repeat (quadratic, a tenth of a second at worst). One with more, or with a repeat or a
choice inside one, may take for ever: on the main thread a virtual interval timer (CPU seconds of
this process, so a loaded machine costs nothing) interrupts the `re` engine, which looks for signals
while it matches; elsewhere no timer can, and a child process matches under a wall clock. The timer
is set when the first text comes that is long enough for its pattern to take `STEPS`: most comments
and replies are a line.
"""

import json
import math
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from harness_cli.errors import HookError

WINDOW = 4_000
OVERLAP = 200
BOUNDED = 64
"""Up to so many different lengths a repeat counts as bounded."""
NESTED = 10
"""What an unbounded repeat inside another counts: no power of the length bounds its time."""
STEPS = 2_000_000
"""Steps of the engine that need no timer: some hundredths of a second."""
LONGEST = 16_000
"""Beyond this nothing is read: no host speaks so long, and a check on it is a failed hook."""
_CHILD = (
    "import json,re,sys;p,t=json.load(sys.stdin);m=re.compile(p,re.I).search(t);"
    "print(json.dumps(m and m.span()))"
)


@lru_cache(maxsize=2048)
def compiled(text: str) -> re.Pattern[str]:
    """A pattern, case ignored; `HookError` when it is none."""
    try:
        return re.compile(text, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as exc:
        raise HookError(f"the pattern `{text}` is no regular expression: {exc}") from exc


class _Timer:
    """The time that the checks of one hook have, counted from their first slow search on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._armed = False
        self._before: Any = None

    def arm(self) -> None:
        """Let the time run."""
        if not self._armed:
            self._armed = True
            self._before = signal.signal(signal.SIGVTALRM, self._ring)
            signal.setitimer(signal.ITIMER_VIRTUAL, max(self._seconds, 0.001), 0.05)

    def disarm(self) -> None:
        """Stop it, and give the signal back."""
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            signal.signal(signal.SIGVTALRM, self._before)

    def _ring(self, *_: Any) -> None:
        if self._armed:
            raise HookError(f"a check took more than {self._seconds:g} s")


_running: list[_Timer] = []
"""The timer of the hook that runs now, on the main thread; checks never wait, so it is one."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Stop slow searches inside after `seconds` of CPU time with `HookError`, on the main thread.

    Only `find` and `find_any` start the clock; whatever runs after them is under it too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    timer = _Timer(seconds)
    _running.append(timer)
    try:
        yield
    finally:
        timer.disarm()
        _running.pop()


def find(pattern: re.Pattern[str], text: str, seconds: float = 2.0) -> str | None:
    """The first match of a pattern in a text, or None. `HookError` when it takes too long."""
    if len(text) <= WINDOW:
        return _search(pattern, text, seconds)
    if len(text) > LONGEST:
        raise HookError(f"a text of {len(text)} characters is too long to check")
    for start in range(0, len(text), WINDOW - OVERLAP):
        found = _search(pattern, text[start : start + WINDOW], seconds)
        if found is not None:
            return found
    return None


def find_any(patterns: Sequence[re.Pattern[str]], text: str, seconds: float = 2.0) -> str | None:
    """The first match of the first pattern that has one."""
    for pattern in patterns:
        found = find(pattern, text, seconds)
        if found is not None:
            return found
    return None


def _search(pattern: re.Pattern[str], text: str, seconds: float) -> str | None:
    if may_take(pattern.pattern, len(text)) > STEPS:
        if threading.current_thread() is not threading.main_thread():
            return _search_apart(pattern.pattern, text, seconds)
        if _running:
            _running[-1].arm()
    match = pattern.search(text)
    return match[0] if match else None


def _search_apart(pattern: str, text: str, seconds: float) -> str | None:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=json.dumps([pattern, text]),
            capture_output=True,
            text=True,
            timeout=max(seconds, 0.001),
            check=True,
            env={},
        )
        span = json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError) as exc:
        raise HookError(f"the pattern `{pattern}` took more than {seconds:g} s") from exc
    return text[span[0] : span[1]] if span else None


def may_spin(pattern: str) -> bool:
    """Whether matching can take more than quadratic time: two unbounded repeats, or one that holds
    a repeat or a choice."""
    return _spins(pattern)[0] > 1


def may_take(pattern: str, length: int) -> float:
    """Steps that matching a text of that length may take; 0 where quadratic time is the worst."""
    repeats, ways = _spins(pattern)
    if repeats < 2:
        return 0.0
    return math.inf if repeats >= NESTED else ways * float(length + 1) ** (repeats + 1)


@lru_cache(maxsize=2048)
def _spins(pattern: str) -> tuple[int, float]:
    """Unbounded repeats, and in how many ways the bounded ones can be read."""
    try:
        tree = re._parser.parse(pattern)  # type: ignore[attr-defined]  # the engine's own reading
    except re.error:
        return 0, 1.0  # a tool's name or a word, no pattern that could run
    return _repeats(list(tree)), _ways(list(tree))


def _repeats(items: Any) -> int:
    """Unbounded repeats on one path; one that holds another, or a choice, counts as many."""
    count = 0
    for item in items:
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]).endswith("REPEAT"):
            low, high, inner = item[1]
            unbounded = high - low > BOUNDED
            within = _repeats(list(inner))
            if unbounded and within == 0:
                within = int(_ambiguous(list(inner)))
            count += within + (1 + (NESTED - 1) * within if unbounded else 0)
        elif isinstance(item, tuple | list) or type(item).__name__ == "SubPattern":
            count += _repeats(list(item))
    return count


def _ambiguous(items: Any) -> bool:
    """Whether a text can be read in several ways: a choice, or a repeat of any length."""
    for item in items:
        if isinstance(item, tuple) and len(item) == 2:
            name = str(item[0])
            if name == "BRANCH" or (name.endswith("REPEAT") and item[1][0] != item[1][1]):
                return True
        inner = isinstance(item, tuple | list) or type(item).__name__ == "SubPattern"
        if inner and _ambiguous(list(item)):
            return True
    return False


def _ways(items: Any) -> float:
    """The lengths a bounded repeat can have, multiplied over all of them."""
    ways = 1.0
    for item in items:
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]).endswith("REPEAT"):
            low, high, inner = item[1]
            ways *= _ways(list(inner)) * (high - low + 1 if high - low <= BOUNDED else 1)
        elif isinstance(item, tuple | list) or type(item).__name__ == "SubPattern":
            ways *= _ways(list(item))
    return ways
