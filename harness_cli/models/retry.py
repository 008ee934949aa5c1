"""Ask again, within a budget: one loop for every client."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from harness_cli.errors import ProviderError
from harness_cli.models.base import Deadline
from harness_cli.records.chat import ChatReply

log = logging.getLogger("harness.models")
FIRST_S = 0.25
LONGEST_S = 8.0


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How often, and how long one attempt may take."""

    max_attempts: int = 5
    attempt_s: float = 60.0


Attempt = Callable[[float], Awaitable[ChatReply]]
"""One try within the given seconds; raises `ProviderError`."""


async def with_retries(
    attempt: Attempt, rules: RetryRules, deadline: Deadline, rng: random.Random
) -> ChatReply:
    """The first good answer, with `attempts` and `retry_reasons` filled in.

    Waits as long as the server asks (Retry-After), else 0.25 s doubling to 8 s, of which a random
    half (`rng`) is taken off so that clients do not come back in step. A wait that would outlast
    the deadline is not begun: the error that asked for it is raised at once.
    """
    reasons: list[str] = []
    while True:
        try:
            reply = await _one(attempt, rules.attempt_s, deadline)
        except ProviderError as error:
            reasons.append(error.kind)
            pause = _pause(error, len(reasons), rules, deadline, rng)
            about = {"error": error.kind, "reason": str(error), "attempt": len(reasons)}
            if pause is None:
                log.warning("model call failed", extra=about)
                raise _after(error, reasons) from error
            log.info("model call is tried again", extra={**about, "pause_s": round(pause, 3)})
            await asyncio.sleep(pause)
        else:
            if not reasons:
                return reply
            return msgspec.structs.replace(
                reply, attempts=len(reasons) + 1, retry_reasons=tuple(reasons)
            )


async def _one(attempt: Attempt, attempt_s: float, deadline: Deadline) -> ChatReply:
    left = deadline.left()
    seconds = attempt_s if left is None else min(left, attempt_s)
    if seconds <= 0:
        raise ProviderError.of("timeout", "no time is left for the call", retryable=False)
    try:
        async with asyncio.timeout(seconds):
            return await attempt(seconds)
    except TimeoutError as exc:
        raise ProviderError.of(
            "timeout", f"no answer within {seconds:.3g} s", retryable=True
        ) from exc


def _pause(
    error: ProviderError,
    failed: int,
    rules: RetryRules,
    deadline: Deadline,
    rng: random.Random,
) -> float | None:
    """Seconds until the next attempt; None when there shall be none."""
    if not error.retryable or failed >= rules.max_attempts:
        return None
    pause = error.retry_after_s
    if pause is None:
        pause = min(LONGEST_S, FIRST_S * 2.0 ** (failed - 1)) * rng.uniform(0.5, 1.0)
    left = deadline.left()
    return None if left is not None and pause >= left else pause


def _after(error: ProviderError, reasons: list[str]) -> ProviderError:
    """The last error, saying how many attempts came before it."""
    if len(reasons) == 1:
        return error
    last = ProviderError.of(
        error.kind,
        f"{error} (attempt {len(reasons)}; before: {', '.join(reasons[:-1])})",
        retryable=error.retryable,
        status=error.status,
        retry_after_s=error.retry_after_s,
    )
    last.hint = error.hint
    return last
