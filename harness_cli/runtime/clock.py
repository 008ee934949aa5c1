"""Time bounds, enforced by a clock outside whatever is bounded (METHODS §1).

`within` does not trust the callee: one that swallows its cancellation is left behind and the bound
still holds. Code that never yields to the event loop cannot be bounded from inside its process;
that is why hooks and tools of a harness run as processes, and why regular expressions run under
`hooks.patterns.bounded`.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from harness_cli.models.base import Deadline
from harness_cli.records.config import Limits

T = TypeVar("T")
GRACE_S = 0.05
"""How long a cancelled callee may take to clean up before it is left behind."""


async def within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns, or `TimeoutError` after `seconds`, whatever `work` does about it."""
    if seconds is None:
        return await work
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    # As asyncio.wait does it, without its sets: this stands around every model call.
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: Any = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    task.add_done_callback(wake)
    timer = loop.call_later(seconds, wake)
    try:
        await waiter
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=GRACE_S)
            task.add_done_callback(_forget)
            raise TimeoutError
    except asyncio.CancelledError:
        task.cancel()
        task.add_done_callback(_forget)
        raise
    finally:
        timer.cancel()
    return task.result()


def _forget(task: "asyncio.Future[Any]") -> None:
    """Take the outcome of a task that nobody waits for any more."""
    if not task.cancelled():
        task.exception()


class Meter:
    """The clocks of one rollout."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.monotonic()
        self.whole = Deadline.within(limits.trajectory_s)
        self.end = Deadline.within(limits.end_to_end_s if limits.enforce_end_to_end else None)

    def wall_s(self) -> float:
        """Seconds since the rollout began."""
        return time.monotonic() - self.started

    def spent(self) -> bool:
        """The whole-trajectory limit ran out."""
        return self.whole.left() == 0.0

    def model_s(self, *, first: bool) -> tuple[float, bool]:
        """Seconds for one model call, and whether the profile (not the ceiling) sets them."""
        own = self.limits.first_call_s if first else self.limits.later_call_s
        left = self.whole.left()
        bounds = [b for b in (own, left) if b is not None]
        return (min(bounds), True) if bounds else (self.limits.call_ceiling_s, False)

    def within_whole(self, seconds: float) -> float:
        """`seconds`, or less where less of the trajectory is left."""
        left = self.whole.left()
        return seconds if left is None else min(seconds, left)

    def fallback_s(self) -> float:
        """Seconds for the compact fallback route, within end-to-end where that is enforced."""
        left = self.end.left()
        return self.limits.fallback_s if left is None else min(self.limits.fallback_s, left)
