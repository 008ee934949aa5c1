"""Rewards by models: a panel of policies that judge in a harness of their own, `judges/reward`.

The machinery is that of every panel (fence, evidence tools, one verdict by a call, cache, slots).
Six numbers are not grades: the panel's reward is the mean of its scored votes, unscored below
quorum. The case shows the process beside the reply: steps, what hooks said, what was expected.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from harness_cli.errors import UsageError
from harness_cli.harness.parts import JUDGES
from harness_cli.judges.base import DirectCalls, JudgeCalls
from harness_cli.judges.panel.case import Case, judged_request
from harness_cli.judges.panel.fence import between_marks, fenced_json
from harness_cli.judges.panel.judge import Voting
from harness_cli.judges.panel.judge import source_digest as panel_digest
from harness_cli.judges.panel.members import AgentMember
from harness_cli.judges.panel.opening import GROUNDED, agent_member, offered_under, voting_in
from harness_cli.judges.rewards.dimension import DIMENSIONS, Reward, note
from harness_cli.judges.rewards.judge import source_digest, verdict_of
from harness_cli.records.canonical import digest
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.config import JudgeConfig
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Step, ToolCall, Trajectory
from harness_cli.records.verdict import Evidence, Finding, Verdict, Vote
from harness_cli.runtime.toolbox import together
from harness_cli.store.project import Project

DEFAULT = "reward"
"""The judge's harness that serves where a reward judge has none of its own."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of `submit_rewards`, whatever their schema in the harness says."""

    accuracy: float
    effectiveness: float
    tool_rationality: float
    skill_selection: float
    rule_compliance: float
    length: float
    reasons: dict[str, str] = {}
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class RewardCase:
    """One rollout to reward."""

    item: Item
    trajectory: Trajectory
    world: Catalogue

    @cached_property
    def document(self) -> dict[str, Any]:
        """Everything a reward judge is shown."""
        plain = Case(self.item, self.trajectory, self.world).document
        expect = self.item.expect
        process = {
            "ref": "process",
            "steps": [_step(s) for s in self.trajectory.steps],
            "ended": self.trajectory.stop.value,
            "expected_skills": list(expect.skills),
            "expected_tools": [msgspec.to_builtins(t) for t in expect.tools],
        }
        return {**{k: v for k, v in plain.items() if k != "rubrics"}, "process": process}

    @property
    def host_calls(self) -> dict[str, ToolCall]:
        """The host's tool calls by reference."""
        return {f"call:{n}": call for n, call in enumerate(self.trajectory.calls, 1)}

    @cached_property
    def request(self) -> Request:
        """The request of a judge's rollout."""
        return judged_request(self.item, between_marks(fenced_json(self.document)))

    @cached_property
    def digest(self) -> str:
        """Of all that a judge can see of the case."""
        results = [c.result.content for c in self.trajectory.calls]
        world = digest(self.world)  # a room's own catalogue moves and has no digest
        return digest([self.document, results, world])


def _step(step: Step) -> dict[str, Any]:
    shown: dict[str, Any] = {"calls": [c.name for c in step.calls]}
    objections = [h for h in step.hooks if h.outcome != "allow"]
    if objections:
        shown["hooks"] = [
            {"hook": h.hook, "event": h.event, "outcome": h.outcome, "reason": h.reason[:300]}
            for h in objections
        ]
    return shown


class RewardPanel:
    """Members that each give six rewards; their means count."""

    def __init__(self, name: str, members: tuple[AgentMember, ...], voting: Voting) -> None:
        if not members:
            raise UsageError(
                f"judge `{name}` has no model that could reward",
                hint="name policies under `panel`; without one, rewards go by rule",
            )
        self.name, self.members, self.voting = name, members, voting
        ids = [[m.name, m.id] for m in members]
        shown = [voting.state.id, voting.pipeline, ids, panel_digest(), source_digest()]
        self.id = f"{name}@{digest([*shown, voting.rule.needed(len(members))])[:12]}"

    async def judge(
        self,
        item: Item,
        trajectory: Trajectory,
        world: Catalogue,
        *,
        calls: JudgeCalls | None = None,
    ) -> Verdict:
        """Every member's rewards and their means. A rollout that broke is not put before it."""
        if trajectory.errored:
            reason = trajectory.error or f"the rollout ended by {trajectory.stop.value}"
            return verdict_of(self.id, [Reward(d, None, unscored=reason) for d in DIMENSIONS])
        case = RewardCase(item, trajectory, world)
        made = calls or DirectCalls()
        votes = await together([self._vote(m, case, made) for m in self.members])
        needed = self.voting.rule.needed(len(votes))
        verdict = verdict_of(self.id, [mean_of(d, votes, needed) for d in DIMENSIONS])
        models = [v for v in votes if v.calls]
        return msgspec.structs.replace(
            verdict,
            votes=tuple(votes),
            cached=bool(models) and all(v.cached for v in models),
        )

    async def close(self) -> None:
        """Close members and cache."""
        await asyncio.gather(*(member.close() for member in self.members))
        if self.voting.votes is not None:
            self.voting.votes.close()

    async def _vote(self, member: AgentMember, case: RewardCase, calls: JudgeCalls) -> Vote:
        shown = [self.voting.state.id, self.voting.pipeline, panel_digest(), member.id]
        return await self.voting.vote(
            member,
            lambda: digest([*shown, case.digest]),
            calls,
            lambda log: member.answer(case, read_rewards, log),
        )


def read_rewards(vote: Vote, arguments: Any) -> Vote:
    """Submitted rewards as a vote; one outside [0, 1] leaves it unscored."""
    said = msgspec.convert(arguments, Submitted)
    scores = {name: float(getattr(said, name)) for name in DIMENSIONS}
    for name, score in scores.items():
        if not 0 <= score <= 1:
            return msgspec.structs.replace(vote, unscored=f"{name} {score:g} is not in [0, 1]")
    return msgspec.structs.replace(
        vote,
        scores=scores,
        reasons={k: v for k, v in said.reasons.items() if k in DIMENSIONS},
        evidence=said.evidence,
    )


def mean_of(dimension: str, votes: Sequence[Vote], needed: int) -> Reward:
    """One dimension over the votes that have it."""
    given = [
        (v, s) for v in votes if v.unscored is None and (s := v.scores.get(dimension)) is not None
    ]
    if len(given) < needed:
        silent = "; ".join(f"{v.voter}: {v.unscored}" for v in votes if v.unscored is not None)
        why = f"{len(given)} of {len(votes)} votes, {needed} are needed; {silent}"
        return Reward(dimension, None, unscored=why)
    evidence = [_reason(dimension, vote, score) for vote, score in given]
    return Reward(dimension, sum(s for _, s in given) / len(given), tuple(evidence))


def _reason(dimension: str, vote: Vote, score: float) -> Finding:
    cited = ", ".join(e.ref for e in vote.evidence)
    said = vote.reasons.get(dimension, "no reason")
    return note(dimension, f"{vote.voter} {score:g}: {said}", evidence=cited)


def open_rewards(
    name: str,
    config: JudgeConfig,
    project: Project,
    *,
    fresh: bool = False,
    concurrency: int | None = None,
) -> RewardPanel:
    """The panel `name` as a reward judge; `grounded` among its members is left out.

    Nothing is started before its first vote. Raises `UsageError` and `UnknownName`.
    """
    folder = project.harness / JUDGES / name
    if config.harness is not None:
        folder = project.root / config.harness
    elif not (folder / "tools" / "submit_rewards.yaml").is_file():
        folder = project.harness / JUDGES / DEFAULT
    voting = voting_in(
        folder, name, config, project, kind="rewards", fresh=fresh, concurrency=concurrency
    )
    offered = offered_under(voting.state, config.pipeline)
    voters = [v for v in config.panel if v != GROUNDED]
    members = tuple(agent_member(project, voter, offered, config) for voter in voters)
    return RewardPanel(name, members, voting)
