"""Copies of this process, each at one piece of work: forked, waited for, none left behind."""

import os
import signal
import threading
from collections.abc import Callable

MOST = 8


def worth(amount: int, least: int) -> int:
    """How many processes an amount of work is worth, where `least` of it is worth one.

    Where threads run it is one: a copy of this process would hold their locks for ever.
    """
    return min(cores(), MOST, amount // least) if threading.active_count() == 1 else 1


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Children:
    """Copies of this process at work; leaving the block ends those that were not waited for."""

    def __init__(self) -> None:
        self._running: list[int] = []

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        while self._running:
            child = self._running.pop()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def start(self, work: Callable[[], object]) -> None:
        """Have a copy of this process do it. What it makes it leaves in files."""
        child = os.fork()
        if child:
            self._running.append(child)
            return
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)  # neither the caller's cleaning up nor its buffers are the child's

    def wait(self) -> list[bool]:
        """Wait for all of them; whether each did its work, in the order in which they began."""
        done = []
        while self._running:
            done.append(not os.waitpid(self._running[0], 0)[1])
            del self._running[0]
        return done
