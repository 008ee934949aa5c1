"""The judge's calls in a run: journaled, bounded by the run's budget, resumed like any other."""

from typing import TYPE_CHECKING, Any

from harness_cli.evaluation.calls import JournaledCalls, SharedDigests
from harness_cli.evaluation.gate import Budget
from harness_cli.judges.open import GROUNDED
from harness_cli.judges.outcome import Outcome
from harness_cli.records.config import JudgeConfig
from harness_cli.records.verdict import Judging, Verdict
from harness_cli.runtime.agent import CallLog
from harness_cli.store.project import Project

if TYPE_CHECKING:
    from harness_cli.evaluation.plan import Plan
    from harness_cli.evaluation.rollouts import Job, Work

FREE = ("builtin", "local", "scripted", "replay")
"""Kinds of policies that cost nothing."""


class JudgedCalls:
    """`JudgeCalls` of one item: one journaled log for each member of the panel."""

    def __init__(self, job: "Job", work: "Work") -> None:
        self._job = job
        self._work = work

    def of(self, member: str) -> CallLog:
        """The log of one member's calls on this item."""
        job, recorded = self._job, self._work.recorded
        return JournaledCalls(
            job.journal,
            job.gate,
            job.judge_shared.setdefault(member, SharedDigests()),
            job.cleaner,
            item=self._work.item.id,
            repeat=self._work.repeat,
            judge=member,
            recorded=recorded.votes.get(member) if recorded else None,
        )

    def begun(self, member: str) -> bool:
        """The journal of a killed process holds calls of this member."""
        recorded = self._work.recorded
        return recorded is not None and member in recorded.votes

    def written(self) -> None:
        """See to it that a kill from here on loses none of the calls."""
        self._job.journal.write_out()


def rubric_outcomes(verdict: Verdict | None) -> dict[str, Outcome]:
    """What a panel made of an item's rubrics, by their text."""
    if verdict is None:
        return {}
    return {a.rubric: Outcome(a.passed, a.reason) for a in verdict.assertions if a.rubric}


def judging_of(verdict: Verdict | None) -> Judging | None:
    """What a verdict took; None where no model was asked."""
    votes = verdict.votes if verdict else ()
    if not votes:
        return None
    fresh = [v for v in votes if v.calls and not v.cached]
    return Judging(
        votes=len(votes),
        unscored=sum(v.unscored is not None for v in votes),
        failed=sum(v.failed for v in votes),
        cached=sum(v.cached for v in votes),
        calls=sum(v.calls for v in fresh),
        input_tokens=_total([v.input_tokens for v in fresh]),
        output_tokens=_total([v.output_tokens for v in fresh]),
        cost=_total([v.cost for v in fresh]),
    )


def _total(values: list[Any]) -> Any:
    """The sum, 0 of nothing; None, unknown, when any part is unknown."""
    return None if any(value is None for value in values) else sum(values)


def check_prices(project: Project, plan: "Plan") -> None:
    """Refuse a bound on money where the price of the policy or of a judge's member is unknown."""
    budget, config = plan.options.budget, plan.policy_config
    budget.check(plan.policy, config.price, free=config.kind in FREE)
    check_member_prices(project, plan.judge_config, budget)


def check_member_prices(project: Project, judge: JudgeConfig | None, budget: Budget) -> None:
    """The same for a judge alone."""
    for voter in judge.panel if judge else ():
        if voter != GROUNDED:
            name, config = project.policy(voter)
            budget.check(name, config.price, free=config.kind in FREE)
