"""A judge over many replies within bounds of money, tokens and time; what was voted is kept.

The bound stands before each reply, not before each call: a reply that is put before a panel gets
all its votes, so that nothing asked is lost and a budget however small makes progress. What is in
flight counts with the mean of what has come back; until something has, replies go one by one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from harness_cli.errors import BudgetReached, HarnessError, Interrupted, JudgeError
from harness_cli.evaluation.gate import Budget, Spending
from harness_cli.evaluation.interrupts import interrupts
from harness_cli.judges.base import Judge
from harness_cli.judges.labels import Case
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.counting import counted
from harness_cli.records.verdict import Verdict
from harness_cli.runtime.agent import CallLog, Direct

SIDE_BY_SIDE = 8
"""Replies; a panel bounds its model calls itself, and each reply has a vote of every member."""


class CountedCalls:
    """`JudgeCalls` that add up what a judge's calls take."""

    def __init__(self, spending: Spending) -> None:
        self.spending = spending
        self.answers = 0

    def of(self, member: str) -> CallLog:  # noqa: ARG002  all members pay into one
        """A log that counts."""
        return _Counted(self)

    def begun(self, member: str) -> bool:  # noqa: ARG002
        """Nothing was recorded: the votes are kept by the judge's cache."""
        return False

    def written(self) -> None:
        """Nothing is."""


class _Counted(Direct):
    def __init__(self, into: CountedCalls) -> None:
        self._into = into

    async def model(
        self, index: int, request: ChatRequest, call: Callable[[], Awaitable[ChatReply]]
    ) -> ChatReply:
        """A fresh answer, counted."""
        reply = await super().model(index, request, call)
        self._into.answers += 1
        self._into.spending.add(reply, request)
        return reply


@dataclass(slots=True)
class Bounds:
    """What may still be put before a judge."""

    budget: Budget = field(default_factory=Budget)
    spending: Spending = field(default_factory=Spending)
    stopped: str | None = None
    """`interrupted`, or the budget that is spent; the first reason counts."""
    running: int = 0
    paid: int = 0
    """Replies that are done and took a call; those from the cache took none."""
    _began: float = field(default_factory=time.monotonic)

    def stop(self, reason: str) -> None:
        """Nothing new from now on."""
        self.stopped = self.stopped or reason

    @property
    def unsure(self) -> bool:
        """One reply is out and nobody knows yet what one takes."""
        bounded = self.budget.cost is not None or self.budget.tokens is not None
        return bounded and not self.paid and self.running > 0

    def open(self) -> bool:
        """Whether one more reply may be asked about."""
        if self.stopped is None:
            self.stopped = self._reached()
        return self.stopped is None

    def _reached(self) -> str | None:
        spent, bound = self.spending, self.budget
        if bound.seconds is not None and time.monotonic() - self._began >= bound.seconds:
            return "seconds"
        ahead = 1 + ((self.running + 1) / self.paid if self.paid else 0.0)
        if bound.tokens is not None and spent.tokens * ahead > bound.tokens:
            return "tokens"
        if bound.cost is not None and spent.cost * ahead > bound.cost:
            return "cost"
        return None


async def judge_within(
    judge: Judge, cases: Sequence[Case], world: Catalogue, bounds: Bounds
) -> list[Verdict | None]:
    """The judge's verdict on every case in their order, None for those a bound left out.

    A `JudgeError` leaves a case unscored. ^C once lets what is being judged finish; twice raises
    `Interrupted` at once.
    """
    verdicts: list[Verdict | None] = [None] * len(cases)
    waiting = iter(enumerate(cases))
    changed = asyncio.Condition()

    async def worker() -> None:
        while True:
            async with changed:
                await changed.wait_for(lambda: not bounds.unsure)
                number, case = next(waiting, (-1, None)) if bounds.open() else (-1, None)
                if case is None:
                    return
                bounds.running += 1
            calls = CountedCalls(bounds.spending)
            try:
                verdicts[number] = await _verdict(judge, case, world, calls)
            finally:
                async with changed:
                    bounds.running -= 1
                    bounds.paid += calls.answers > 0
                    changed.notify_all()

    tasks: list[asyncio.Task[None]] = []
    try:
        with interrupts(lambda: bounds.stop("interrupted")):
            tasks = [asyncio.ensure_future(worker()) for _ in range(min(SIDE_BY_SIDE, len(cases)))]
            await asyncio.gather(*tasks)
    except asyncio.CancelledError:
        raise Interrupted("stopped at once", hint=GO_ON) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return verdicts


GO_ON = "the same command goes on: votes that were given are kept, only the others are asked for"


def all_of(verdicts: Sequence[Verdict | None], bounds: Bounds) -> list[Verdict]:
    """The verdicts where none is missing; else raises what stopped, with how far it came."""
    done = [v for v in verdicts if v is not None]
    if len(done) == len(verdicts):
        return done
    how = f"{len(done)} of {counted(len(verdicts), 'reply', 'replies')} are judged"
    spent = spent_words(bounds.spending)
    if bounds.stopped == "interrupted":
        raise Interrupted(f"interrupted: {how} ({spent})", hint=GO_ON)
    if bounds.stopped is None:
        raise HarnessError(f"{how}, and nothing says why")
    raise BudgetReached(f"the budget of {bounds.stopped} is reached: {how} ({spent})", hint=GO_ON)


def spent_words(spending: Spending) -> str:
    """Calls, tokens and money; what no server said is said to be unknown."""
    words = [counted(spending.calls, "model call")]
    if spending.calls:
        known = f"{spending.input_tokens} + {spending.output_tokens} tokens"
        unknown = spending.unknown_usage
        words.append(f"{known} + unknown for {unknown} calls" if unknown else known)
        words.append("cost unknown" if spending.unknown_cost else f"${spending.cost:.4f}")
    return ", ".join(words)


async def _verdict(judge: Judge, case: Case, world: Catalogue, calls: CountedCalls) -> Verdict:
    try:
        return await judge.judge(*case, world, calls=calls)
    except JudgeError as exc:
        return Verdict(judge=judge.id, unscored_reason=str(exc))
