"""Two replies to one request: which is better. Every member judges both orders.

A judge has a taste for positions (Zheng et al. 2024, cited by TR §4.2): what it says counts only
where it says it again with the replies swapped; where it does not, its vote is a tie and a flip.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import msgspec

from harness_cli.errors import UsageError
from harness_cli.judges.base import DirectCalls, JudgeCalls
from harness_cli.judges.panel.case import answered, asked, expected, judged_request, replied
from harness_cli.judges.panel.fence import between_marks, fenced_json
from harness_cli.judges.panel.judge import Voting, source_digest
from harness_cli.judges.panel.members import AgentMember
from harness_cli.records.canonical import digest
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolCall, Trajectory
from harness_cli.records.verdict import Evidence, Vote
from harness_cli.runtime.toolbox import together

Side = Literal["a", "b", "tie"]
PAIRWISE = "pairwise"
"""The pipeline of the judge's harness that compares."""
SHARES = {"first": 1.0, "tie": 0.5, "second": 0.0}


class Preferred(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the preference tool."""

    preferred: Literal["first", "second", "tie"]
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()


class PairVote(msgspec.Struct, frozen=True, kw_only=True):
    """One member on one pair: both orders, and what they come to."""

    voter: str
    preferred: Side | None
    """None: one of the two orders has no vote."""
    flipped: bool = False
    """The two orders do not say the same."""
    orders: tuple[Vote, ...] = ()
    """A shown first, then B shown first."""


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A panel on one pair."""

    item_id: str
    repeat: int = 0
    category: str = ""
    preferred: Side | None
    reason: str = ""
    """Why nothing is preferred, or the words of a vote that prevailed."""
    votes: tuple[PairVote, ...] = ()


@dataclass(frozen=True)
class PairCase:
    """Two trajectories of one item, in the order in which they are shown."""

    item: Item
    first: Trajectory
    second: Trajectory
    world: Catalogue

    @cached_property
    def document(self) -> dict[str, Any]:
        """Everything a judge is shown; neither reply says whose it is."""
        parts: dict[str, Any] = {**asked(self.item), "expected": expected(self.item)}
        for name, trajectory in (("first", self.first), ("second", self.second)):
            shown = {**answered(f"{name}-", trajectory), "reply": replied(name, trajectory)}
            parts[name] = {key: value for key, value in shown.items() if value}
        return {name: part for name, part in parts.items() if part}

    @property
    def host_calls(self) -> dict[str, ToolCall]:
        """Both hosts' tool calls by reference."""
        pairs = (("first", self.first), ("second", self.second))
        return {f"{w}-call:{n}": c for w, t in pairs for n, c in enumerate(t.calls, 1)}

    @cached_property
    def request(self) -> Request:
        """The request of a judge's rollout."""
        return judged_request(self.item, between_marks(fenced_json(self.document)))

    @cached_property
    def digest(self) -> str:
        """Of all that a judge can see of the pair."""
        results = [c.result.content for c in self.host_calls.values()]
        return digest([self.document, results, self.world.digest or self.world.snapshot])


class PairJudge:
    """Members that compare under the pipeline `pairwise` of the judge's harness."""

    def __init__(self, name: str, members: tuple[AgentMember, ...], voting: Voting) -> None:
        if not members:
            raise UsageError(f"judge `{name}` has no member that could compare two replies")
        self.members = members
        self.voting = voting
        shown = [voting.state.id, [[m.name, m.id] for m in members], source_digest()]
        self.id = f"{name}@{digest(shown)[:12]}"

    async def compare(
        self,
        item: Item,
        a: Trajectory,
        b: Trajectory,
        world: Catalogue,
        *,
        calls: JudgeCalls | None = None,
    ) -> PairVerdict:
        """Both orders before every member, then the majority. Equal replies are a tie unasked."""
        about: dict[str, Any] = {"item_id": item.id, "repeat": a.repeat, "category": item.category}
        broken = [t for t in (a, b) if t.errored]
        if broken:
            reason = broken[0].error or broken[0].stop.value
            return PairVerdict(**about, preferred=None, reason=reason)
        if a.reply == b.reply and a.actions == b.actions:
            return PairVerdict(**about, preferred="tie", reason="the replies are the same")
        orders = (PairCase(item, a, b, world), PairCase(item, b, a, world))
        made = calls or DirectCalls()
        work = [self._vote(m, n, case, made) for m in self.members for n, case in enumerate(orders)]
        votes = await together(work)
        pairs = [pair_vote(votes[n], votes[n + 1]) for n in range(0, len(votes), 2)]
        return PairVerdict(**about, **_decided(pairs, self.voting.rule.needed(len(pairs))))

    async def close(self) -> None:
        """Close members and cache."""
        for member in self.members:
            await member.close()
        if self.voting.votes is not None:
            self.voting.votes.close()

    async def _vote(
        self, member: AgentMember, order: int, case: PairCase, calls: JudgeCalls
    ) -> Vote:
        """One member on one order, from the cache where it has said so before."""
        voting = self.voting
        return await voting.vote(
            member,
            lambda: digest([voting.state.id, PAIRWISE, source_digest(), member.id, case.digest]),
            calls,
            lambda log: member.answer(case, read_preference, log),
            name=f"{member.name}/{order}",
        )


def read_preference(vote: Vote, arguments: Any) -> Vote:
    """A submitted preference as a vote: the share of the first reply, 1, 0.5 or 0."""
    said = msgspec.convert(arguments, Preferred)
    return msgspec.structs.replace(
        vote,
        scores={"first": SHARES[said.preferred]},
        reasons={"preferred": said.reason},
        evidence=said.evidence,
    )


def pair_vote(shown_first: Vote, shown_second: Vote) -> PairVote:
    """What one member's two answers come to, A being first in the one and second in the other."""
    orders = (shown_first, shown_second)
    if any(v.unscored is not None for v in orders):
        return PairVote(voter=shown_first.voter, preferred=None, orders=orders)
    one = shown_first.scores["first"] or 0.0
    other = 1.0 - (shown_second.scores["first"] or 0.0)
    flipped = one != other
    side: Side = "tie" if flipped or one == 0.5 else "a" if one == 1.0 else "b"
    return PairVote(voter=shown_first.voter, preferred=side, flipped=flipped, orders=orders)


def _decided(votes: Sequence[PairVote], needed: int) -> dict[str, Any]:
    """The side that more than half of the votes prefer; a tie where none does."""
    kept: dict[str, Any] = {"votes": tuple(votes)}
    sides = [v.preferred for v in votes if v.preferred is not None]
    if len(sides) < needed:
        silent = "; ".join(
            f"{v.voter}: {o.unscored}" for v in votes for o in v.orders if o.unscored is not None
        )
        why = f"{len(sides)} of {len(votes)} votes, {needed} are needed; {silent}"
        return {**kept, "preferred": None, "reason": why}
    side, count = Counter(sides).most_common(1)[0]
    if 2 * count <= len(sides):
        return {**kept, "preferred": "tie", "reason": "no side has more than half of the votes"}
    said = next(v for v in votes if v.preferred == side)
    return {**kept, "preferred": side, "reason": said.orders[0].reasons.get("preferred", "")}
