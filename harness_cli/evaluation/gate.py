"""What may still be asked: budgets and the stop signal, checked before every model call."""

import math
import time
from dataclasses import dataclass

from harness_cli.errors import UsageError
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.config import Price


class RunStopped(BaseException):
    """Ends a rollout before its next call; never leaves the engine.

    Like `CancelledError` it is no `Exception`: the boundaries of a rollout that turn failures into
    data must let it pass, since the rollout goes on when the run is resumed.
    """


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one run: US dollars, tokens (in and out), seconds. None is unbounded."""

    cost: float | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse `nan`: it bounds nothing."""
        for name in ("cost", "seconds"):
            if (bound := getattr(self, name)) is not None and math.isnan(bound):
                raise UsageError(f"a budget of {name} is a number, not `nan`")

    def check(self, policy: str, price: Price | None, *, free: bool) -> None:
        """Refuse a bound on money that nobody could hold."""
        if self.cost is not None and price is None and not free:
            raise UsageError(
                f"the price of `{policy}` is unknown, so its cost cannot be bounded",
                hint="set `price` in harness.yaml, or bound it with --max-tokens",
            )


@dataclass(slots=True)
class Spending:
    """What a run has used so far. Unknown is counted, never taken for 0."""

    calls: int = 0
    in_flight: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_tokens: int = 0
    """Of calls whose server reported no usage: a quarter of their characters, for the bound."""
    cost: float = 0.0
    unknown_usage: int = 0
    unknown_cost: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in and out, with estimates where the server said nothing."""
        return self.input_tokens + self.output_tokens + self.estimated_tokens

    def add(self, reply: ChatReply, request: ChatRequest | None) -> None:
        """Count one answer."""
        self.calls += 1
        usage = reply.usage
        if usage.input_tokens is None or usage.output_tokens is None:
            self.unknown_usage += 1
            self.estimated_tokens += _estimate(reply, request)
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        if reply.cost is None:
            self.unknown_cost += 1
        else:
            self.cost += reply.cost


class Gate:
    """Stands before every call. What is in flight counts with the mean of what has come back."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spending = Spending()
        self.stopped: str | None = None
        """`interrupted`, or the budget that is spent: `cost`, `tokens`, `seconds`."""
        self._end = None if budget.seconds is None else time.monotonic() + budget.seconds

    def stop(self, reason: str) -> None:
        """No new call from now on; the first reason counts."""
        self.stopped = self.stopped or reason

    def before_call(self) -> None:
        """Let one call through, or raise `RunStopped`."""
        if self.stopped is None:
            self.stopped = self._reached()
        if self.stopped is not None:
            raise RunStopped(self.stopped)
        self.spending.in_flight += 1

    def after_call(self, reply: ChatReply | None, request: ChatRequest) -> None:
        """The call came back, with an answer or without."""
        self.spending.in_flight -= 1
        if reply is not None:
            self.spending.add(reply, request)

    def _reached(self) -> str | None:
        spent, bound = self.spending, self.budget
        if self._end is not None and time.monotonic() >= self._end:
            return "seconds"
        expected = (spent.in_flight + 1) / spent.calls if spent.calls else 0.0
        if bound.tokens is not None and spent.tokens * (1 + expected) > bound.tokens:
            return "tokens"
        if bound.cost is not None and spent.cost * (1 + expected) > bound.cost:
            return "cost"
        return None


def _estimate(reply: ChatReply, request: ChatRequest | None) -> int:
    texts = [reply.content or "", reply.reasoning or ""]
    texts += [call.arguments for call in reply.tool_calls]
    if request is not None:
        texts += [str(message.get("content") or "") for message in request.messages]
    return sum(len(text) for text in texts) // 4
