"""`harness evolve`: one step after another until a person is needed."""

from collections.abc import Callable

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions, resolve
from harness_cli.evaluation.progress import Observe
from harness_cli.evolution.apply import apply
from harness_cli.evolution.proposal_file import (
    chosen_ops,
    now,
    read_proposal,
    write_proposal,
)
from harness_cli.evolution.propose.make import make_proposal
from harness_cli.evolution.propose.memory import remember
from harness_cli.evolution.review import pending
from harness_cli.evolution.session import diagnose_run, examine, ground_of
from harness_cli.evolution.single_use import use_of
from harness_cli.harness.load import files_at
from harness_cli.harness.revisions import LATEST
from harness_cli.loop.evolve.events import FILE, Choice, Event, Standing, append, fold, read
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Proposal
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunFolder, RunStore

COMMAND = ("harness", "evolve")
EVALSET, SPLIT = "live_stream_qa", "dev"
Say = Callable[[str], None]


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Where the loop stopped and which command lets it go on; empty when it has ended."""

    step: str
    stage: int
    why: str
    command: str = ""


def standing(project: Project) -> Standing | None:
    """Where this project's loop is; None when there is none."""
    return fold(read(project.root))


def begin(
    project: Project,
    *,
    evalset: str | None,
    split: str | None,
    policy: str | None,
    limit: int | None,
    trials: int = 0,
) -> None:
    """Start at the newest harness there is. Raises `UsageError` when nothing is committed."""
    repo = Repo.open(project.harness)
    commit = files_at(repo, project.harness, LATEST)[1] if repo.head() else None
    if commit is None:
        raise UsageError("nothing is committed yet", hint="commit the harness first")
    name, _ = project.policy(policy)
    append(
        project.root,
        Event(
            kind="begun",
            at=now(),
            evalset=evalset or EVALSET,
            split=split or SPLIT,
            policy=name,
            limit=limit,
            trials=trials,
            commit=commit,
        ),
    )


def refuse_other(at: Standing, **asked: str | int | None) -> None:
    """Raise `UsageError` where an option names something else than the loop was begun with."""
    for name, value in asked.items():
        held = getattr(at.begun, name)
        if value not in (None, held):
            raise UsageError(
                f"this loop goes on with {name} `{held}`, not `{value}`",
                hint=f"remove `{FILE}` to begin another one",
            )


def authorise(project: Project, items: int, *, by: str) -> None:
    """A person allows so many rollouts (App. B: evaluation is triggered by people)."""
    append(project.root, Event(kind="authorised", at=now(), by=by, items=items))


def choose(project: Project, choice: Choice, *, by: str, reason: str) -> None:
    """A person's choice after a stage. Raises `UsageError` where none is asked for."""
    at = standing(project)
    if at is None or at.step not in ("choose", "ended"):
        raise UsageError("no choice is asked for now", hint="`harness evolve` says what is")
    append(project.root, Event(kind="chosen", at=now(), by=by, reason=reason, choice=choice))


async def advance(project: Project, say: Say, observe: Observe | None) -> Waiting:
    """Go on until a person is needed or the loop has ended."""
    steps = {"evaluate": _evaluate, "propose": _propose, "review": _review}
    while True:
        at = standing(project)
        if at is None:
            raise AssertionError("advance comes after begin")
        if at.step == "choose":
            return _choice(at)
        if at.step == "ended":
            return _ended(at)
        waiting = await steps[at.step](project, at, say, observe)
        if waiting is not None:
            return waiting


async def _evaluate(
    project: Project, at: Standing, say: Say, observe: Observe | None
) -> Waiting | None:
    options = _options(at)
    plan = resolve(project, options)
    begun = _unfinished(project, at, plan.state.id)
    if at.allowance < plan.planned:
        return Waiting(
            step="evaluate",
            stage=at.now.number,
            why=f"evaluating {plan.planned} items of `{at.begun.evalset}` was not allowed by a "
            f"person ({at.allowance} left)",
            command=f"harness evolve --authorise {plan.planned - at.allowance} --by NAME",
        )
    say(f"stage {at.now.number}: evaluating {counted(plan.planned, 'item')}")
    if begun is not None:
        options = EvalOptions(resume=begun, command=COMMAND)
    outcome = await evaluate(project, options, observe=observe)
    outcome.check()
    append(
        project.root,
        Event(kind="evaluated", at=now(), run=outcome.run.id, items=outcome.report.planned),
    )
    return None


def _options(at: Standing) -> EvalOptions:
    return EvalOptions(
        evalset=at.begun.evalset,
        split=at.begun.split,
        policy=at.begun.policy,
        limit=at.begun.limit,
        harness=at.now.commit,
        command=COMMAND,
    )


def _unfinished(project: Project, at: Standing, harness_id: str) -> RunFolder | None:
    """A run of this stage that was cut short."""
    for run in RunStore(project.runs).list():
        config = run.config()
        ours = config.command[:2] == COMMAND and config.harness_id == harness_id
        asked = (config.evalset.name, config.policy, config.limit)
        if ours and asked == (at.begun.evalset, at.begun.policy, at.begun.limit):
            return None if run.status() == "complete" else run
    return None


async def _propose(
    project: Project, at: Standing, say: Say, observe: Observe | None  # noqa: ARG001  one signature
) -> Waiting | None:  # fmt: skip
    if at.allowance < at.begun.trials:
        return Waiting(
            step="propose",
            stage=at.now.number,
            why=f"trying edits with {counted(at.begun.trials, 'rollout')} was not allowed by a "
            f"person ({at.allowance} left)",
            command=f"harness evolve --authorise {at.begun.trials - at.allowance} --by NAME",
        )
    seen = examine(project, RunStore(project.runs).get(at.now.run))
    diagnosis = diagnose_run(project, seen)
    say(f"stage {at.now.number}: {counted(diagnosis.failures, 'failure')} of {diagnosis.of}")
    made = await make_proposal(
        project, seen, ground_of(seen, diagnosis), policy=None, trials=at.begun.trials, say=say
    )
    proposal = made.proposal
    if not proposal.edits:
        event = Event(kind="nothing", at=now(), reason=proposal.note, items=made.spent)
        append(project.root, event)
        return None
    path = project.root / f"{proposal.id}.yaml"
    write_proposal(path, proposal)
    append(
        project.root,
        Event(kind="proposed", at=now(), proposal=proposal.id, file=path.name, items=made.spent),
    )
    return None


async def _review(
    project: Project, at: Standing, say: Say, observe: Observe | None  # noqa: ARG001  one signature
) -> Waiting | None:  # fmt: skip
    path = project.root / at.file
    if not path.is_file():
        raise BadFile(
            f"the proposal `{at.file}` that this loop waits for is gone",
            hint=f"bring it back, or remove `{FILE}` to begin anew",
        )
    proposal = read_proposal(path)
    used = use_of(project, Repo.open(project.harness), proposal)
    if used is not None and used.commit:  # by hand, or by a process killed right after
        _applied(project, proposal, used.commit, used.branch)
        return None
    if left := pending(proposal):
        return Waiting(
            step="review",
            stage=at.now.number,
            why=f"{counted(len(left), 'hunk')} of `{at.file}` wait for a decision",
            command=f"harness edit review {at.file}",
        )
    remember(project.root, proposal)
    if not chosen_ops(proposal):
        append(project.root, Event(kind="rejected", at=now(), proposal=proposal.id))
        return None
    done = apply(project, proposal)
    say(f"stage {at.now.number + 1}: {done.branch} {done.commit[:12]}")
    _applied(project, proposal, done.commit, done.branch)
    return None


def _applied(project: Project, proposal: Proposal, commit: str, branch: str) -> None:
    append(
        project.root,
        Event(kind="applied", at=now(), proposal=proposal.id, commit=commit, branch=branch),
    )


def _choice(at: Standing) -> Waiting:
    return Waiting(
        step="choose",
        stage=at.now.number,
        why="what follows is a person's choice: another stage, back to the selected one, promote, "
        "or stop",
        command="harness evolve --choose another|back|promote|stop --by NAME",
    )


def _ended(at: Standing) -> Waiting:
    command = f"harness promote {at.now.run}" if at.choice == "promote" else ""
    return Waiting(step="ended", stage=at.now.number, why=f"ended: {at.choice}", command=command)
