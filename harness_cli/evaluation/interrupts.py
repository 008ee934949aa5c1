"""^C once: finish what is in flight. Twice: stop now. A TERM (cron, a container) is a ^C."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts(first: Callable[[], None]) -> Iterator[None]:
    """While inside, the first signal calls `first`, the second cancels the current task.

    Outside the main thread signals cannot be taken over; then nothing changes.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    seen = 0

    def arrived() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            first()
        elif task is not None:
            task.cancel()

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.getsignal(number)
            loop.add_signal_handler(number, arrived)
    except (ValueError, NotImplementedError, RuntimeError):
        before.clear()
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
