"""Run what the gates still need, but only while a PASS is still possible."""

from dataclasses import dataclass, replace

import msgspec

from harness_cli.errors import Locked, Stale
from harness_cli.evaluation.engine import Outcome, evaluate
from harness_cli.evaluation.evalsets import choose_split, load_header
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evaluation.progress import Observe
from harness_cli.records.gates import Gate, GateResult, declared
from harness_cli.release.candidate import PROMOTE, Pair, run_for
from harness_cli.release.gates.judging import rests_on_judge
from harness_cli.release.gather import Candidate, missing
from harness_cli.store.runs import RunFolder, RunStore

UNBOUNDED = Budget()


@dataclass(frozen=True, slots=True)
class Needed:
    """One run that a gate waits for."""

    gate: Gate
    role: str
    """candidate, incumbent or base."""
    options: EvalOptions

    @property
    def command(self) -> str:
        """The same run as a command."""
        o = self.options
        parts = ["harness eval", str(o.evalset)]
        for flag, value in (
            ("--split", o.split),
            ("--policy", o.policy),
            ("--harness", o.harness[:12] if o.harness else None),
            ("--judge", o.judge),
            ("--profile", o.profile if o.profile != "offline" else None),
            ("--limit", o.limit),
            ("--concurrency", o.concurrency),
        ):
            if value is not None:
                parts += [flag, str(value)]
        return " ".join(parts)


def needed(candidate: Candidate) -> list[Needed]:
    """The missing runs of the candidate and of the incumbent."""
    return [
        Needed(gate=gate, role=role, options=options(candidate, gate, role))
        for gate, role in missing(candidate)
    ]


def options(candidate: Candidate, gate: Gate, role: str) -> EvalOptions:
    """How a gate's run is made: latency under `replay`, as many requests at a time as declared.

    Runs that are graded are graded by one judge, that of the run which is promoted.
    """
    pair: Pair = candidate.pair
    policy, commit, limit = pair.policy, pair.commit, None
    if role == "incumbent" and candidate.incumbent is not None:
        bound = candidate.incumbent.predicate
        policy, commit = str(bound.policy["name"]), bound.harness.get("commit")
        measured = run_for(candidate.project, gate, pair, candidate.named)
        limit = measured.config().limit if measured else None
    if role == "base" and gate.base_policy is not msgspec.UNSET:
        policy = gate.base_policy
        measured = run_for(candidate.project, gate, pair, candidate.named)
        limit = measured.config().limit if measured else None
    latency = gate.kind == "latency"
    return EvalOptions(
        evalset=gate.evalset,
        split=gate.split,
        policy=policy,
        harness=commit,
        judge=judge_for(candidate, gate),
        profile="replay" if latency else "offline",
        concurrency=declared(gate) if latency else None,
        limit=limit,
        command=PROMOTE,
    )


def judge_for(candidate: Candidate, gate: Gate) -> str | None:
    """The named run's judge, where the gate rests on grades; None: the evalset's own."""
    if candidate.named is None or not rests_on_judge(gate) or gate.evalset is None:
        return None
    named = candidate.asked
    own = load_header(candidate.project, gate.evalset).judge
    return named.judge if named.judge != own else None


def hopeless(results: tuple[GateResult, ...], wanted: list[Needed]) -> list[str]:
    """Enforced gates that already stand in the way and that no missing run could change."""
    waits = {need.gate.name for need in wanted}
    return [
        r.name
        for r in results
        if r.mode == "enforce" and r.outcome not in ("PASS", "PENDING") and r.name not in waits
    ]


async def measure(
    candidate: Candidate, wanted: list[Needed], observe: Observe | None, budget: Budget = UNBOUNDED
) -> None:
    """Make the missing runs, one after another, or go on with what was begun of them.

    `budget` bounds each. An unfinished one raises as `harness eval` does.
    """
    for need in wanted:
        begun = unfinished(candidate, need)
        outcome = await made(candidate, need, begun, budget, observe)
        outcome.check()


async def made(
    candidate: Candidate,
    need: Needed,
    begun: RunFolder | None,
    budget: Budget,
    observe: Observe | None,
) -> Outcome:
    """A run, gone on with where it was begun and is still the same run."""
    project, fresh = candidate.project, replace(need.options, budget=budget)
    if begun is not None:
        again = EvalOptions(resume=begun, command=PROMOTE, budget=budget)
        try:
            return await evaluate(project, again, observe=observe)
        except Locked:
            raise
        except Stale:  # a policy, a judge or a file has changed since
            pass
    return await evaluate(project, fresh, observe=observe)


def unfinished(candidate: Candidate, need: Needed) -> RunFolder | None:
    """A run that an earlier promotion began for this and did not end: a budget, a kill."""
    wanted = need.options
    header = load_header(candidate.project, str(wanted.evalset))
    asked = (wanted.evalset, choose_split(header, wanted.split), wanted.harness)
    for run in RunStore(candidate.project.runs).list():
        config = run.config()
        same = (
            config.command[:2] == PROMOTE
            and (config.evalset.name, config.evalset.split, config.harness_commit) == asked
            and (config.policy, config.profile) == (wanted.policy, wanted.profile)
            and config.limit == wanted.limit
        )
        if same and run.status() not in ("complete", "running"):
            return run
    return None
