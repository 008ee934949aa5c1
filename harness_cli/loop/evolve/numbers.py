"""What a person looks at before choosing: the differences, each hunk's credit, the advice."""

import asyncio

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.evaluation.compare import compare
from harness_cli.evaluation.comparison import Comparison
from harness_cli.evolution.advice import Advice
from harness_cli.evolution.credit import Credit
from harness_cli.evolution.crediting import credited, find_around
from harness_cli.loop.evolve.events import Standing, read
from harness_cli.loop.record import evolution_record
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """A measured stage beside the selected one."""

    run: str
    against: str
    comparison: Comparison | None
    """None for the base, which has nothing before it."""
    credits: tuple[Credit, ...]
    without_credit: str
    """Why there is none."""
    advice: Advice


def numbers_of(project: Project, at: Standing) -> Numbers:
    """The numbers behind the choice that is asked for. Diagnoses nothing, evaluates nothing."""
    store = RunStore(project.runs)
    comparison = None
    if at.now.run != at.selected.run:
        one, other = store.get(at.selected.run), store.get(at.now.run)
        comparison = compare(
            one.results(), other.results(), config_a=one.config(), config_b=other.config()
        )
    marks, why = _credits(project)
    _, advice = evolution_record(
        project, evalset=at.begun.evalset, split=at.begun.split or None, policy=at.begun.policy
    )
    return Numbers(
        run=at.now.run,
        against=at.selected.run,
        comparison=comparison,
        credits=marks,
        without_credit=why,
        advice=advice,
    )


def _credits(project: Project) -> tuple[tuple[Credit, ...], str]:
    """Of the proposal that was applied last, from the two runs around it alone."""
    applied = [e.proposal for e in read(project.root) if e.kind == "applied"]
    if not applied:
        return (), "no proposal was applied yet"
    try:
        around = find_around(project, applied[-1])
    except HarnessError as exc:  # its runs were pruned: the choice can be made all the same
        return (), str(exc)
    report = asyncio.run(credited(project, around, say=lambda words: None))  # noqa: ARG005
    return report.credits, ""
