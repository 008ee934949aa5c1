"""One `harness promote`: what was wished, what the gates said, what was made."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.noise import forecast
from harness_cli.evaluation.progress import Observe
from harness_cli.records.gates import GateResult
from harness_cli.records.manifest import Approval
from harness_cli.records.noise import GateOutlook
from harness_cli.release.candidate import pair_of_run, read_gates
from harness_cli.release.clock import now
from harness_cli.release.commit import WAIT, Lock
from harness_cli.release.costing import Cost, cost_text, estimate
from harness_cli.release.drift import drifted_tools
from harness_cli.release.gates.facts import Drift, Facts
from harness_cli.release.gather import (
    Candidate,
    beside_now,
    candidate,
    gather,
    read_approvals,
)
from harness_cli.release.measure import UNBOUNDED, Needed, hopeless, measure, needed
from harness_cli.release.promote import Promotion, judge_candidate, promote, record_approval
from harness_cli.release.reaching import Reach, reach
from harness_cli.release.rollback import who
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller asked for."""

    run: RunFolder
    approve: str | None = None
    plan: bool = False
    write: bool = True
    measure: bool = True
    key: Path | None = None
    """Signs the manifest and its tag."""
    lock: Lock = WAIT
    """Where another process switches at the moment."""
    budget: Budget = UNBOUNDED
    """Of each run that is made for a gate."""


class MissingRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a gate waits for, and what it would cost."""

    gate: str
    role: str
    command: str
    cost: str
    estimate: Cost | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: the one value behind the table, the JSON and the exit code."""

    outcome: str
    exit_code: int
    policy: str
    harness: str
    channel: str
    gates: tuple[GateResult, ...]
    blocking: tuple[str, ...] = ()
    missing: tuple[MissingRun, ...] = ()
    manifest: str | None = None
    commit: str | None = None
    incumbent: str | None = None
    hint: str = ""
    outlook: tuple[GateOutlook, ...] = ()
    """With --plan, where an A/A run of the pair is there."""
    reach: tuple[Reach, ...] = ()
    """With --plan: whether each measured gate has items enough to decide at all."""


async def run_promotion(project: Project, wish: Wish, observe: Observe | None) -> Done:
    """Gather, measure what is missing while a PASS is possible, decide, and write if it passed."""
    pair = pair_of_run(wish.run.config())
    chosen = candidate(project, read_gates(project), pair, wish.run)
    if wish.approve:
        approval = Approval(by=wish.approve, at=now(), subject=pair.subject)
        record_approval(project, approval)
    approvals = read_approvals(project)
    drift = await drifted_tools(project, chosen.state)
    facts = gather(chosen, drift=drift, approvals=approvals)
    wanted = needed(chosen)
    lost = hopeless(judge_candidate(chosen, facts).results, wanted)
    hint = ""
    if wanted and lost:
        hint = f"nothing more was run: {', '.join(lost)} cannot be changed by it"
    elif wanted and wish.measure:
        await measure(chosen, wanted, observe, wish.budget)
        again = needed(chosen)  # a measured candidate shows what its incumbent still lacks
        if again:
            await measure(chosen, again, observe, wish.budget)
        wanted = needed(chosen)
        facts = gather(chosen, drift=drift, approvals=approvals)
    if wish.write and not wish.plan:
        result = promote(
            chosen,
            facts,
            at=now(),
            by=wish.approve or who(project),
            key=wish.key,
            anew=lambda old: compared_anew(old, drift),
            lock=wish.lock,
        )
    else:
        result = judge_candidate(chosen, facts)
    done = summary(chosen, result, wanted, hint)
    if not wish.plan:
        return done
    return with_reach(chosen, done, outlook(chosen))


def with_reach(chosen: Candidate, done: Done, noise: tuple[GateOutlook, ...]) -> Done:
    """A plan that says as well what its runs could decide."""
    costs = {m.gate: m.estimate for m in done.missing if m.role == "candidate" and m.estimate}
    return msgspec.structs.replace(done, outlook=noise, reach=reach(chosen, costs, noise))


def compared_anew(chosen: Candidate, drift: Drift) -> tuple[Candidate, Facts]:
    """The candidate against an incumbent that came while its gates ran."""
    again = beside_now(chosen)
    return again, gather(again, drift=drift, approvals=read_approvals(chosen.project))


def outlook(chosen: Candidate) -> tuple[GateOutlook, ...]:
    """What the noise floor of an A/A run leaves of the gates, before anything is spent."""
    store = RunStore(chosen.project.runs)
    return forecast(store, chosen.asked, chosen.gates.gates)


def summary(chosen: Candidate, result: Promotion, wanted: list[Needed], hint: str) -> Done:
    """The outcome in one value."""
    decision = result.decision
    first = next((g for g in result.results if g.outcome != "PASS" and g.needs), None)
    return Done(
        outcome=decision.outcome,
        exit_code=decision.exit_code,
        policy=chosen.pair.policy_id,
        harness=chosen.pair.harness_id,
        channel=chosen.channel.name,
        gates=result.results,
        blocking=decision.blocking,
        missing=tuple(
            MissingRun(
                gate=n.gate.name,
                role=n.role,
                command=n.command,
                cost=cost_text(cost),
                estimate=cost,
            )
            for n in wanted
            for cost in (estimate(chosen.project, n.options),)
        ),
        manifest=result.manifest.predicate.id if result.manifest else None,
        commit=result.commit,
        incumbent=chosen.incumbent.predicate.id if chosen.incumbent else None,
        hint=hint or (f"`{first.name}` needs: {first.needs}" if first else ""),
    )
