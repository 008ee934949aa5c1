"""The stages of the demo: evaluate, diagnose, propose, confirm, apply, compare, promote."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.comparison import Comparison
from harness_cli.evaluation.engine import Outcome, evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.evolution.apply import Applied, apply
from harness_cli.evolution.credit import Credit
from harness_cli.evolution.crediting import credited, find_around
from harness_cli.evolution.proposal_file import hunks, write_proposal
from harness_cli.evolution.propose.make import make_proposal
from harness_cli.evolution.propose.memory import remember
from harness_cli.evolution.review import accept_by_script, decide
from harness_cli.evolution.session import Examined, diagnose_run, examine, ground_of
from harness_cli.loop.demo.figures import interval, percent, points
from harness_cli.loop.demo.record import Narrator, Stage
from harness_cli.loop.record import evolution_record
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Decision, Diagnosis, Proposal
from harness_cli.release.session import Done, Wish, run_promotion
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

EVALSET, SPLIT = "live_stream_qa", "dev"
SHOWN = ("accuracy", "effectiveness", "avg")
APPROVER = "the demo's user (by flag)"
"""The private `dev` channel asks for one named approval; the demo's stands for whoever ran it."""


@dataclass(slots=True)
class Loop:
    """What the stages share: the project, who narrates, and the run that is selected so far."""

    project: Project
    narrator: Narrator
    limit: int | None = None
    """Items of the split that each stage is measured on; None is all of them."""
    stages: list[Stage] = field(default_factory=list)
    selected: RunFolder | None = None
    looked_at: dict[str, tuple[Examined, Diagnosis]] = field(default_factory=dict)
    """Run → the run as it was read, with its diagnosis."""


async def base_stage(loop: Loop) -> None:
    """Measure the shipped harness and promote it: something to compare with and go back to."""
    loop.narrator.say("\n1. The base harness, as it ships")
    started = time.monotonic()
    outcome = await measured(loop, None, "base")
    done = await promoted(loop, outcome.run)
    keep(loop, "base", outcome, done, seconds=time.monotonic() - started)


async def evolution_stage(loop: Loop, number: int) -> bool:
    """One turn of the loop on the selected harness; False when there is nothing to propose."""
    if loop.selected is None:
        return False
    narrator, name = loop.narrator, f"evolution {number}"
    narrator.say(f"\n{number + 1}. Stage {name}")
    started = time.monotonic()
    seen, diagnosis = diagnosed(loop, loop.selected)
    proposal = await proposed(loop, seen, diagnosis)
    if proposal is None:
        return False
    applied = confirmed(loop, proposal, number)
    outcome = await measured(loop, applied.commit, applied.branch)
    comparison = compared(loop, outcome)
    marks = await marked(loop, proposal)
    gained = gain(comparison) > 0
    done = await promoted(loop, outcome.run, write=gained)
    if not done.manifest:
        why = "the gates said no" if gained else "nothing was gained, whatever the gates allow"
        narrator.say(
            f"   not promoted: {why}; the selected harness stays, the edits are remembered"
        )
        remember(loop.project.root, rejected(proposal, done), measured=True)
    keep(
        loop,
        name,
        outcome,
        done,
        edits=tuple(f"{e.module}: {e.rationale}" for e in proposal.edits),
        comparison=comparison,
        marks=marks,
        seconds=time.monotonic() - started,
    )
    return True


async def measured(loop: Loop, commit: str | None, shown: str) -> Outcome:
    """A run of the dev split on a committed harness."""
    rev = f" --harness {shown}" if commit else ""
    loop.narrator.command(f"harness eval {EVALSET}{rev}")
    options = EvalOptions(
        evalset=EVALSET,
        split=SPLIT,
        harness=commit,
        limit=loop.limit,
        command=("harness", "demo"),
    )
    outcome = await evaluate(loop.project, options)
    outcome.check()
    report = outcome.report
    said = {m.metric: m for m in report.metrics}
    loop.narrator.rows(
        ["metric", "mean", "95 % interval", "scored"],
        [
            [
                name,
                percent(said[name].mean),
                interval(said[name].interval),
                f"{said[name].scored} of {said[name].of}",
            ]
            for name in SHOWN
            if name in said
        ],
    )
    counts = ", ".join(f"{n} {state}" for state, n in report.counts.items() if n)
    loop.narrator.say(f"   {counts}, of {report.planned}; {report.timing['wall_s']:.1f} s")
    return outcome


def examined(loop: Loop, run: RunFolder) -> tuple[Examined, Diagnosis]:
    """A run as it is read, with its diagnosis; both are made once."""
    if run.id not in loop.looked_at:
        seen = examine(loop.project, run)
        loop.looked_at[run.id] = seen, diagnose_run(loop.project, seen)
    return loop.looked_at[run.id]


def diagnosed(loop: Loop, run: RunFolder) -> tuple[Examined, Diagnosis]:
    """Failure classes of the selected run."""
    loop.narrator.command("harness diagnose")
    seen, made = examined(loop, run)
    loop.narrator.rows(
        ["failure class", "size", "share", "kind", "side"],
        [
            [c.label, c.size, f"{c.share:.0%}", "systematic" if c.systematic else "sparse", c.side]
            for c in made.clusters[:6]
        ],
    )
    loop.narrator.say(
        f"   unexplained: {made.unexplained:.0%} of {counted(made.failures, 'failure')}"
    )
    return seen, made


async def proposed(loop: Loop, seen: Examined, diagnosis: Diagnosis) -> Proposal | None:
    """Edits from the deterministic proposer."""
    loop.narrator.command("harness edit --plan-only -o proposal.yaml && harness edit show …")
    made = await make_proposal(loop.project, seen, ground_of(seen, diagnosis), policy=None)
    for edit in made.proposal.edits:
        fixes = len(edit.predicted_fixes)
        loop.narrator.say(
            f"   {edit.module}: {edit.rationale} (predicts {counted(fixes, 'fix', 'fixes')})"
        )
    for name, why in made.dropped[:3]:
        loop.narrator.say(f"   held back: {name}: {why}")
    if not made.proposal.edits:
        loop.narrator.say("   nothing to propose: what is left needs a person or another policy")
        return None
    return made.proposal


def confirmed(loop: Loop, proposal: Proposal, number: int) -> Applied:
    """Every hunk accepted by this script, which the record says; one commit on evolve/<n>."""
    path = f"proposal-{number}.yaml"
    loop.narrator.command(f"harness edit apply {path} --accept all")
    decided = accept_by_script(proposal, "all", by="harness demo", reason="the demo accepts all")
    write_proposal(loop.project.root / path, decided)
    applied = apply(loop.project, decided)
    loop.narrator.say(
        f"   {counted(len(decided.edits), 'edit')} accepted by script "
        f"(recorded so, it is no approval); commit {applied.commit[:12]} on {applied.branch}"
    )
    return applied


def compared(loop: Loop, outcome: Outcome) -> Comparison:
    """The new run beside the selected one, paired by item."""
    loop.narrator.command("harness compare")
    before = loop.selected
    if before is None:
        raise AssertionError("an evolution has a stage before it")
    made = compare(
        before.results(),
        outcome.run.results(),
        config_a=before.config(),
        config_b=outcome.run.config(),
    )
    loop.narrator.rows(
        ["metric", "before", "after", "difference", "95 % interval"],
        [
            [
                m.metric,
                percent(m.mean_a),
                percent(m.mean_b),
                points(m.paired.mean),
                f"[{points(m.paired.low)}, {points(m.paired.high)}]",
            ]
            for m in made.metrics
            if m.metric in SHOWN
        ],
    )
    loop.narrator.say(f"   {counted(len(made.fixed), 'item')} fixed, {len(made.broken)} broken")
    return made


async def marked(loop: Loop, proposal: Proposal) -> tuple[Credit, ...]:
    """What each hunk promised beside what came of it, and its mark."""
    loop.narrator.command("harness edit credit")
    around = find_around(loop.project, proposal.id)
    report = await credited(loop.project, around, say=lambda _: None)
    loop.narrator.rows(
        ["hunk", "promised", "came true", "broke", "mark"],
        [[c.hunk, len(c.predicted), len(c.fixed), len(c.broken), c.mark] for c in report.credits],
    )
    told = Counter(c.mark for c in report.credits)
    loop.narrator.say("   " + ", ".join(f"{n} {mark}" for mark, n in told.most_common()))
    return report.credits


def gain(comparison: Comparison) -> float:
    """The mean difference in AVG. The demo promotes gains only; a person may choose otherwise."""
    return next((m.paired.mean or 0.0 for m in comparison.metrics if m.metric == "avg"), 0.0)


async def promoted(loop: Loop, run: RunFolder, *, write: bool = True) -> Done:
    """The gates, and the switch where they all pass; without `write` the gates alone."""
    flag = f'--approve "{APPROVER}"' if write else "--dry-run"
    loop.narrator.command(f"harness promote {flag}")
    wish = Wish(run=run, approve=APPROVER if write else None, write=write)
    done = await run_promotion(loop.project, wish, None)
    loop.narrator.rows(
        ["gate", "outcome", "summary"], [[g.name, g.outcome, g.summary] for g in done.gates]
    )
    where = f": {done.manifest} serves on `{done.channel}`" if done.manifest else ""
    loop.narrator.say(f"   {done.outcome}{where}")
    return done


def rejected(proposal: Proposal, done: Done) -> Proposal:
    """The proposal with every hunk marked as rejected by the gates: the proposer's memory."""
    why = f"gates: {done.outcome}"
    no = Decision(state="reject", reason=why, by="harness demo", script=True)
    for name, _, _ in hunks(proposal):
        proposal = decide(proposal, name, no)
    return proposal


def keep(
    loop: Loop,
    name: str,
    outcome: Outcome,
    done: Done,
    *,
    edits: tuple[str, ...] = (),
    comparison: Comparison | None = None,
    marks: tuple[Credit, ...] = (),
    seconds: float,
) -> None:
    """Add the stage to the record, and say what is advised; a promoted one is selected now."""
    examined(loop, outcome.run)  # the advice looks at what is left
    _, advice = evolution_record(loop.project, evalset=EVALSET, split=SPLIT)
    loop.narrator.say(f"   advice: {advice.action}: {'; '.join(advice.reasons)}")
    deltas: dict[str, Any] = {}
    for m in comparison.metrics if comparison else ():
        deltas[m.metric] = {"mean": m.paired.mean, "low": m.paired.low, "high": m.paired.high}
    loop.stages.append(
        Stage(
            name=name,
            harness_id=outcome.report.run.harness_id,
            run=outcome.run.id,
            scores={m.metric: m.mean for m in outcome.report.metrics},
            counts=outcome.report.counts,
            edits=edits,
            delta=deltas,
            fixed=len(comparison.fixed) if comparison else 0,
            broken=len(comparison.broken) if comparison else 0,
            credit=tuple(
                {"hunk": c.hunk, "mark": c.mark, "promised": len(c.predicted)}
                | {"fixed": len(c.fixed), "broken": len(c.broken)}
                for c in marks
            ),
            advice=advice.action,
            decision=done.outcome,
            manifest=done.manifest,
            seconds=round(seconds, 1),
        )
    )
    if done.manifest or loop.selected is None:
        loop.selected = outcome.run
