"""SIGINT and SIGTERM while a job trains: its own handler, and the one before put back."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def on_signals(arrived: Callable[[int, Any], None]) -> Iterator[None]:
    """`arrived` hears of ^C and TERM; in a thread beside the main one signals are another's."""
    before: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[int(number)] = signal.signal(number, arrived)
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for taken, handler in before.items():
            signal.signal(taken, handler)
