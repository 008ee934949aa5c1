"""Requests that wait for a checkpoint, and how they are put together."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness_cli.errors import HarnessError, ProviderError
from harness_cli.records.chat import ChatRequest

if TYPE_CHECKING:
    from harness_cli.models.checkpoint_model import Row

BATCH_TOKENS: Final = 131_072
"""Prompt tokens of a batch, padding included."""


def unheard() -> None:
    """Nobody waits for a first token."""


@dataclass(slots=True)
class Waiting:
    """One request until it is answered."""

    request: ChatRequest
    began: Callable[[], None]
    given_up: threading.Event
    answer: "Future[dict[str, Any]]"


def in_parts(rows: Sequence[tuple[Waiting, "Row"]], most: int) -> list[list[tuple[Waiting, "Row"]]]:
    """Batches of at most so many rows and tokens, of rows by length."""
    parts: list[list[tuple[Waiting, Row]]] = []
    for pair in rows:
        last = parts[-1] if parts else None
        width = len(pair[1].prompt)  # the longest yet: rows come by length
        if last is None or len(last) >= most or (len(last) + 1) * width > BATCH_TOKENS:
            parts.append([pair])
        else:
            last.append(pair)
    return parts


def fail(one: Waiting, exc: Exception) -> None:
    """Have a request hear of what went wrong, in the words of a provider where it was a bug."""
    if one.answer.done():
        return
    if not isinstance(exc, HarnessError):
        message = f"the model broke: {type(exc).__name__}: {exc}"
        exc = ProviderError.of("server", message, retryable=False)
    one.answer.set_exception(exc)
