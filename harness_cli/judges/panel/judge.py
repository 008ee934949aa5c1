"""The panel: k members vote side by side, and the rule of the configuration makes a verdict."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from harness_cli.judges.base import DirectCalls, JudgeCalls
from harness_cli.judges.naturalness import RUBRIC
from harness_cli.judges.panel.cache import VoteCache
from harness_cli.judges.panel.case import Case
from harness_cli.judges.panel.members import Member, Slots
from harness_cli.judges.panel.submission import GRADES
from harness_cli.judges.panel.tally import Rule, decide, shared_findings, tally_rubrics
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult, Verdict, Vote
from harness_cli.runtime.agent import CallLog
from harness_cli.runtime.toolbox import together

log = logging.getLogger("harness.judges")


@dataclass(frozen=True, slots=True)
class Voting:
    """What a panel is beside its members."""

    state: HarnessState
    """The judge's own harness."""
    pipeline: str
    rule: Rule
    slots: Slots
    votes: VoteCache | None = None
    fresh: bool = False
    """Take no vote from the cache."""
    natural: bool = False
    """Decide an item's `naturalness` as well."""

    async def vote(
        self,
        member: Member,
        key: Callable[[], str],
        calls: JudgeCalls,
        ask: Callable[[CallLog], Awaitable[Vote]],
        *,
        name: str = "",
    ) -> Vote:
        """A member's vote from the cache where it has said so before, else asked for and kept.

        One whose calls a journal already holds is gone on with, whatever the cache has. `name`:
        what its calls are filed under, where a member votes more than once.
        """
        name = name or member.name
        kept = self.votes if member.cacheable else None
        at = "" if kept is None else key()
        if kept is not None and not self.fresh and not calls.begun(name):
            found = kept.get(at)
            if found is not None:
                return msgspec.structs.replace(found, voter=member.name, cached=True)
        vote = await ask(self.slots.log(name, calls.of(name)))
        if kept is not None and vote.unscored is None:
            calls.written()
            kept.put(at, vote)
        return vote


class PanelJudge:
    """Members that vote; one member alone is an agent as a judge."""

    def __init__(self, name: str, members: tuple[Member, ...], voting: Voting) -> None:
        self.name = name
        self.members = members
        self.voting = voting
        self.harness_id = voting.state.id
        self.dirty = voting.state.dirty
        rule = voting.rule
        self.id = "{}@{}".format(
            name,
            digest(
                {
                    "harness": voting.state.id,
                    "pipeline": voting.pipeline,
                    "members": [[m.name, m.id] for m in members],
                    "rule": [rule.rule, rule.split, rule.needed(len(members))],
                    "source": source_digest(),
                    **({"naturalness": RUBRIC} if voting.natural else {}),
                }
            )[:12],
        )

    async def judge(
        self,
        item: Item,
        trajectory: Trajectory,
        world: Catalogue,
        *,
        calls: JudgeCalls | None = None,
    ) -> Verdict:
        """Every member's vote, then the rule. A rollout that broke is not put before the panel."""
        if trajectory.errored:
            reason = trajectory.error or f"the rollout ended by {trajectory.stop.value}"
            return Verdict(judge=self.id, scores=_nothing(), unscored_reason=reason)
        case = Case(item, trajectory, world, natural=self.voting.natural)
        made = calls or DirectCalls()
        work = [self._vote(member, case, made) for member in self.members]
        votes = [await work[0]] if len(work) == 1 else await together(work)
        return verdict_of(self.id, tuple(votes), self.voting.rule, case)

    async def close(self) -> None:
        """Close the members and the cache."""
        await asyncio.gather(*(member.close() for member in self.members))
        if self.voting.votes is not None:
            self.voting.votes.close()

    async def _vote(self, member: Member, case: Case, calls: JudgeCalls) -> Vote:
        return await self.voting.vote(
            member, lambda: self._key(member, case), calls, lambda calls: member.vote(case, calls)
        )

    def _key(self, member: Member, case: Case) -> str:
        voting = self.voting
        return digest([voting.state.id, voting.pipeline, source_digest(), member.id, case.digest])


def verdict_of(judge: str, votes: tuple[Vote, ...], rule: Rule, case: Case) -> Verdict:
    """The verdict that follows from votes: grades by the rule, rubrics likewise."""
    decisions = {metric: decide(metric, votes, rule) for metric in GRADES}
    scores: dict[str, float | None] = {m: d.grade for m, d in decisions.items()}
    both = [s for s in scores.values() if s is not None]
    scores["avg"] = sum(both) / len(both) if len(both) == len(GRADES) else None
    open_ = [d.why for d in decisions.values() if d.grade is None]
    rubrics = tally_rubrics([r.id for r in case.rubrics], votes, rule)
    models = [v for v in votes if v.calls]
    return Verdict(
        judge=judge,
        scores=scores,
        findings=shared_findings(votes, scores),
        assertions=tuple(
            AssertionResult(
                type="llm-rubric",
                passed=rubrics[r.id].passed,
                reason=rubrics[r.id].reason,
                rubric=r.text,
            )
            for r in case.rubrics
        ),
        unscored_reason="; ".join([*open_, *_silent(votes)]) if open_ else None,
        votes=votes,
        cached=bool(models) and all(v.cached for v in models),
    )


def _silent(votes: tuple[Vote, ...]) -> list[str]:
    return [f"{v.voter}: {v.unscored}" for v in votes if v.unscored is not None]


def _nothing() -> dict[str, float | None]:
    return {**dict.fromkeys(GRADES), "avg": None}


@cache
def source_digest() -> str:
    """SHA-256 over this folder: how a case is put and a vote is read is part of the judge."""
    folder = Path(__file__).parent
    parts = [f"{p.name}:{sha256(p.read_bytes())}" for p in sorted(folder.glob("*.py"))]
    return sha256("\n".join(parts).encode())
