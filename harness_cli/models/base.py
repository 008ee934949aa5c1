"""What every policy is: a wire request in, a finished answer out, within a deadline."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from harness_cli.records.chat import ChatReply, ChatRequest


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock; `None` never comes."""

    at: float | None = None

    @classmethod
    def within(cls, seconds: float | None) -> "Deadline":
        """The moment `seconds` from now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    def left(self) -> float | None:
        """Seconds left, never negative; None when there is no end."""
        return None if self.at is None else max(0.0, self.at - time.monotonic())

    def sooner(self, seconds: float | None) -> "Deadline":
        """The earlier of this deadline and `seconds` from now."""
        if seconds is None:
            return self
        other = time.monotonic() + seconds
        return Deadline(other if self.at is None else min(self.at, other))


class Policy(Protocol):
    """A model that acts. Clients, the embedded policies, replays and scripts all are one.

    `complete` raises `ProviderError` and nothing else for what goes wrong outside this program,
    and leaves no task behind when it is cancelled: the caller's clock may cancel it at any time.
    """

    name: str
    """As in `harness.yaml`."""
    id: str
    """name@digest: what a trajectory and a manifest record."""

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """One answer. Retries inside are the client's and count in `ChatReply.attempts`."""
        ...

    async def close(self) -> None:
        """Give connections and processes back."""
        ...


@runtime_checkable
class Telling(Protocol):
    """A policy that tells when the first token of an answer is there, as a server streams it."""

    tells_first_token: bool

    async def complete(
        self, request: ChatRequest, deadline: Deadline, *, began: Callable[[], None] = ...
    ) -> ChatReply:
        """As `Policy.complete`; `began` is called in the event loop with the first token."""
        ...
