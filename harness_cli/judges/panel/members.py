"""Members of a panel: a policy in the judge's harness, and the grounded judge as one vote."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from harness_cli.judges.panel.case import AnyCase, Case
from harness_cli.judges.panel.evidence import EvidenceExecutor
from harness_cli.judges.panel.submission import Read, graded, read_vote
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.harness import HarnessState
from harness_cli.records.verdict import Evidence, Vote
from harness_cli.runtime.agent import Agent, CallLog
from harness_cli.runtime.loop import rollout

if TYPE_CHECKING:
    from harness_cli.judges.grounded.judge import GroundedJudge


class Member(Protocol):
    """One voice of a panel."""

    name: str
    cacheable: bool

    @property
    def id(self) -> str:
        """Of what answers: part of the panel's own id."""
        ...

    async def vote(self, case: Case, log: CallLog) -> Vote:
        """Its vote; what goes wrong leaves it unscored, with the reason."""
        ...

    async def close(self) -> None:
        """Give back what it holds."""
        ...


@dataclass
class AgentMember:
    """A policy that judges as an agent in the judge's harness."""

    name: str
    agent: Agent
    answers: frozenset[str]
    """Names of the tools whose call is the verdict."""
    cacheable: bool = True

    @property
    def id(self) -> str:
        """The policy's."""
        return self.agent.policy.id

    async def vote(self, case: Case, log: CallLog) -> Vote:
        """One rollout in the judge's harness."""
        return await self.answer(case, graded(case), log)

    async def answer(self, case: AnyCase, read: Read, log: CallLog) -> Vote:
        """One rollout on a case of any kind, read as that kind is."""
        agent = replace(
            self.agent, world=case.world, executors={"evidence": EvidenceExecutor(case)}
        )
        # What is compiled depends on the state alone, which all cases share.
        agent.__dict__["prepared"] = self.agent.prepared
        trajectory = await rollout(
            case.request, agent, request_id=f"{self.name}:{case.item.id}", log=log
        )
        return read_vote(trajectory, read, voter=self.name, answers=self.answers)

    async def close(self) -> None:
        """The policy's connections."""
        await self.agent.policy.close()


def _grounded() -> "GroundedJudge":
    """Loaded for the panels that have it: its 300 patterns take as long as all else at start."""
    from harness_cli.judges.grounded.judge import GroundedJudge

    return GroundedJudge()


@dataclass
class GroundedMember:
    """The deterministic judge as one vote: it checks claims against the catalogue, no more."""

    judge: "GroundedJudge" = field(default_factory=_grounded)
    name: str = "grounded"
    cacheable: bool = False

    @property
    def id(self) -> str:
        """The grounded judge's own."""
        return self.judge.id

    async def vote(self, case: Case, log: CallLog) -> Vote:  # noqa: ARG002  it calls nothing
        """Its verdict as a vote. Rubrics in words are beyond it."""
        verdict = self.judge.verdict(case.item, case.trajectory, case.world)
        known: dict[str, float | None] = {m: s for m, s in verdict.scores.items() if s is not None}
        vote = Vote(
            voter=self.name,
            policy=self.judge.id,
            scores=known,
            findings=verdict.findings,
            evidence=tuple(Evidence(ref=f.evidence, says=f.detail) for f in verdict.findings),
        )
        if known:
            return vote
        return Vote(
            voter=self.name, policy=self.judge.id, unscored=verdict.unscored_reason or "no score"
        )

    async def close(self) -> None:
        """Nothing is held."""


class Slots:
    """Model calls of judges side by side: at most `most`, and of one member at most its own."""

    def __init__(self, most: int, own: Mapping[str, int]) -> None:
        self._all = asyncio.Semaphore(most)
        self._own = {name: asyncio.Semaphore(n) for name, n in own.items()}

    def log(self, member: str, inner: CallLog) -> CallLog:
        """A call log of that member (of one of its orders, `member/1`) that waits for its turn."""
        return _Slotted(self._own.get(member.partition("/")[0]), self._all, inner)


class _Slotted:
    """Waits for a slot around every model call of a log."""

    def __init__(
        self, own: asyncio.Semaphore | None, everyone: asyncio.Semaphore, inner: CallLog
    ) -> None:
        self._own, self._all, self._inner = own, everyone, inner
        self.tool = inner.tool

    async def model(
        self, index: int, request: ChatRequest, call: Callable[[], Awaitable[ChatReply]]
    ) -> ChatReply:
        """As the log has it, once there is a slot."""
        if self._own is None:
            async with self._all:
                return await self._inner.model(index, request, call)
        # The member's own slot first: who waits for a slow member takes no slot from the others.
        async with self._own, self._all:
            return await self._inner.model(index, request, call)


def answering_tools(state: HarnessState) -> frozenset[str]:
    """Names of a judge's tools whose call ends its rollout with an answer."""
    return frozenset(
        t.name for t in state.tools if t.executor == "builtin" and t.operation == "answer"
    )
