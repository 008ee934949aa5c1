"""The rollouts of a run before another judge: taken as they are, every verdict new.

No policy is opened. The new run journals the rollouts and the calls of its judge like any other:
it has budgets, survives a kill and is resumed. `rescored_of` names the run that made the rollouts,
`rejudged` the judge that it had.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from harness_cli.errors import Interrupted, Locked, Stale, UsageError
from harness_cli.evaluation.engine import Outcome, concluded, started_note
from harness_cli.evaluation.evalsets import Evalset, load_evalset
from harness_cli.evaluation.gate import Gate
from harness_cli.evaluation.interrupts import interrupts
from harness_cli.evaluation.judging import check_member_prices
from harness_cli.evaluation.plan import NO_JUDGE, EvalOptions, run_versions
from harness_cli.evaluation.progress import Observe, Progress
from harness_cli.evaluation.resume import Standing, read_standing, refuse_difference
from harness_cli.evaluation.rollouts import Job, Work, work_off
from harness_cli.evaluation.under_map import under
from harness_cli.harness.load import load_state
from harness_cli.harness.roles import role_rows
from harness_cli.judges.base import Judge
from harness_cli.judges.open import judge_config, open_judge
from harness_cli.records.item import Item
from harness_cli.records.run import RunConfig
from harness_cli.records.trajectory import StopReason, Trajectory
from harness_cli.store.journal import Journal
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.rollout_index import RolloutIndex
from harness_cli.store.runs import RunFolder, RunStore

if TYPE_CHECKING:
    from harness_cli.evaluation.evalsets import ItemStream

SIDE_BY_SIDE = 8
SAID = (
    "rescore", "resume", "judge", "budget", "concurrency", "fresh_verdicts", "reason", "command",
    "if_locked",
)  # fmt: skip
"""Options that have a say where rollouts are judged anew."""


def is_another_judge(project: Project, source: RunFolder, name: str | None) -> bool:
    """Whether `--judge NAME` means another judge than graded the run: then it is judged anew."""
    if name is None or name == NO_JUDGE:
        return False
    config = source.config()
    opened = open_judge(name, judge_config(project, name), project)
    return opened.id != config.judge_id


async def rejudge(
    project: Project, source: RunFolder, options: EvalOptions, *, observe: Observe | None = None
) -> Outcome:
    """A new run of the rollouts of `source`, judged by `options.judge`.

    Raises `Locked` while `source` is written, `UsageError` where it is not whole, its items
    changed, or an option could change nothing about rollouts that are made.
    """
    refuse_idle(options, source)
    _refuse_unready(source)
    async with AsyncExitStack() as stack:
        old = source.config()
        evalset = _items_of(project, old, options.reason)
        judge = await _opened(project, str(options.judge), options, stack)
        store = RunStore(project.runs)
        config = msgspec.structs.replace(
            old,
            id=store.new_id(),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            command=options.command,
            versions=run_versions(),
            fresh=False,
            rescored_of=source.id,
            rejudged=old.judge_id,
            **_judged_by(project, str(options.judge), judge),
        )
        folder = store.create(config)
        return await _run(project, folder, evalset, judge, options, observe, "started")


async def resume_rejudged(
    project: Project, run: RunFolder, options: EvalOptions, *, observe: Observe | None = None
) -> Outcome:
    """Go on with a run of `rejudge`; `Stale` where judge or items are other ones now."""
    old = run.config()
    async with AsyncExitStack() as stack:
        evalset = _items_of(project, old, options.reason)
        judge = await _opened(project, old.judge, options, stack)
        now = msgspec.structs.replace(
            old, versions=run_versions(), **_judged_by(project, old.judge, judge)
        )
        refuse_difference(old, now)
        return await _run(project, run, evalset, judge, options, observe, "resumed")


def refuse_idle(options: EvalOptions, source: RunFolder) -> None:
    """Raise `UsageError` naming options that have no say over rollouts that are made."""
    default = EvalOptions()
    given = [
        name
        for name in EvalOptions.__dataclass_fields__
        if name not in SAID and getattr(options, name) != getattr(default, name)
    ]
    if given:
        raise UsageError(
            f"--rescore takes the rollouts of `{source.id}` as they are: "
            f"{', '.join(given)} has no say",
            hint="leave it out, or start a new run without --rescore",
        )


async def _run(
    project: Project,
    folder: RunFolder,
    evalset: Evalset,
    judge: Judge,
    options: EvalOptions,
    observe: Observe | None,
    event: str,
) -> Outcome:
    config = folder.config()
    taken = _Taken(RolloutIndex(_source(project, config)))
    items = evalset.items.among(config.only).first(config.limit)
    concurrency = options.concurrency or SIDE_BY_SIDE
    with locked(folder.lock, what=f"run {folder.id}", if_locked=options.if_locked):
        standing = read_standing(folder)
        gate = Gate(options.budget)
        journal = Journal(folder.journal)
        job = Job(
            agents=(),
            judge=judge,
            world=evalset.world,
            journal=journal,
            gate=gate,
            progress=Progress(
                name=evalset.header.name,
                planned=len(items) * config.repeat,
                spending=gate.spending,
                before=len(standing.done),
            ),
            observe=observe,
            responses=taken.trajectory,
            states=evalset.states,
        )
        journal.append(started_note(event, concurrency, options.command))
        try:
            with interrupts(lambda: gate.stop("interrupted")):
                await work_off(job, _queue(items, config.repeat, standing), concurrency)
        except asyncio.CancelledError:
            hint = f"go on with `harness eval --resume {folder.id}`"
            raise Interrupted("stopped at once", hint=hint) from None
        finally:
            await journal.close()
        metrics = evalset.header.metrics
        return concluded(job, folder, metrics=metrics, concurrency=concurrency)


class _Taken:
    """Recorded rollouts in place of new ones."""

    def __init__(self, index: RolloutIndex) -> None:
        self._index = index

    def trajectory(self, item: Item, repeat: int) -> Trajectory:
        """The rollout as it was; an errored one where the run has none."""
        found = self._index.get(item.id, repeat)
        if found is not None:
            return found
        return Trajectory(
            request_id=f"{item.id}#{repeat}",
            item_id=item.id,
            repeat=repeat,
            stop=StopReason.ERROR,
            error="journal: the run that is judged anew has no rollout of this item",
        )


def _queue(items: "ItemStream", repeats: int, standing: Standing) -> Iterator[Work]:
    for item in items:
        for repeat in range(repeats):
            if (item.id, repeat) not in standing.done:
                yield Work(item, repeat, standing.of(item.id, repeat))


def _refuse_unready(source: RunFolder) -> None:
    if source.writer() is not None:
        raise Locked(f"run `{source.id}` is still being written", hint="judge it when it has ended")
    if not source.journal.exists():
        raise UsageError(f"run `{source.id}` has no journal: there is nothing to judge")
    if source.status() != "complete":
        raise UsageError(
            f"run `{source.id}` is {source.status()}: another judge would see a part of it",
            hint=f"`harness eval --resume {source.id}` first",
        )


def _items_of(project: Project, old: RunConfig, reason: str | None) -> Evalset:
    """The items that a run was made of. Raises `UsageError` when they are other ones now."""
    made_in = old.harness_ref or old.harness_commit
    evalset = load_evalset(
        project, old.evalset.name, split=old.evalset.split, reason=reason, harness=made_in
    )
    if old.augmentation is not None:
        evalset = under(evalset, load_state(project, made_in), old.augmentation)
    now = evalset.ref
    if (now.digest, now.catalogue_digest) != (old.evalset.digest, old.evalset.catalogue_digest):
        raise UsageError(
            f"`{now.name}` or its catalogue changed since run `{old.id}`: its rollouts answer "
            "other items",
            hint="git has the items the run was made with; `harness eval` asks anew",
        )
    return evalset


async def _opened(
    project: Project, name: str, options: EvalOptions, stack: AsyncExitStack
) -> Judge:
    config = judge_config(project, name)
    check_member_prices(project, config, options.budget)
    concurrency = options.concurrency or SIDE_BY_SIDE
    fresh = options.fresh_verdicts
    judge = open_judge(name, config, project, fresh=fresh, concurrency=concurrency)
    stack.push_async_callback(judge.close)
    return judge


def _judged_by(project: Project, name: str, judge: Judge) -> dict[str, object]:
    """The fields of `run.json` that name a judge."""
    return {
        "judge": name,
        "judge_id": judge.id,
        "judge_harness": getattr(judge, "harness_id", None),
        "judge_dirty": getattr(judge, "dirty", False),
        "roles": role_rows(project.config, name),
    }


def _source(project: Project, config: RunConfig) -> RunFolder:
    source = RunFolder(project.runs / str(config.rescored_of))
    if not source.rollouts.exists():
        raise Stale(
            f"run `{config.rescored_of}`, whose rollouts `{config.id}` judges anew, is gone",
            hint="nothing can be judged without its rollouts",
        )
    return source
