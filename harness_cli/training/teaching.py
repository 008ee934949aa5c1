"""The teacher at work: every item under the original and every augmented state, judged.

    item × state × candidate ──▶ the same runtime, journal and judge as `harness eval`
                             ──▶ teacher/journal.jsonl in the data set's own folder

The folder is what a second run goes on with: what has been answered is not asked again, and one
that was made with anything else is refused.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.augmentation.renaming import Renaming
from harness_cli.errors import BudgetReached, HarnessError, Interrupted, Stale
from harness_cli.evaluation.agents import open_agent
from harness_cli.evaluation.evalsets import Evalset
from harness_cli.evaluation.gate import Budget, Gate
from harness_cli.evaluation.interrupts import interrupts
from harness_cli.evaluation.judging import FREE
from harness_cli.evaluation.plan import CONCURRENCY, run_versions
from harness_cli.evaluation.progress import Observe, Progress
from harness_cli.evaluation.resume import Standing, read_standing
from harness_cli.evaluation.rollouts import Job, Work, work_off
from harness_cli.evaluation.variants import States
from harness_cli.judges.base import Judge
from harness_cli.judges.open import GROUNDED, open_judge
from harness_cli.records.canonical import write_json
from harness_cli.records.harness import HarnessState
from harness_cli.records.reader import read_json
from harness_cli.records.training import SftJob
from harness_cli.runtime.agent import Agent
from harness_cli.store.journal import Journal
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder
from harness_cli.training.data_set import refuse_foreign
from harness_cli.training.teaching_plan import ORIGINAL, TeachingPlan, resolve

BOUND = "bound.json"
Bound = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taught:
    """What a teacher's work left on the disk, and what it is made of."""

    run: RunFolder
    evalset: Evalset
    base: HarnessState
    states: States | None
    names: tuple[str, ...]
    """The states in order; `ORIGINAL` is the harness as it is."""
    candidates: int
    teacher: str
    judge: str
    warnings: tuple[str, ...]

    def place(self, repeat: int) -> tuple[str, int]:
        """(state, candidate) of the n-th rollout of an item."""
        return self.names[repeat // self.candidates], repeat % self.candidates

    def state(self, name: str) -> HarnessState:
        """A harness state by its name."""
        if name == ORIGINAL or self.states is None:
            return self.base
        return self.states.state(name)


async def teach(
    project: Project,
    job: SftJob,
    folder: Path,
    *,
    budget: Budget | None = None,
    concurrency: int | None = None,
    observe: Observe | None = None,
) -> Taught:
    """Run the teacher, or go on with what a folder has of its work.

    Raises what stands in the way before the first call, `Stale` for a folder of another job, and
    `Interrupted` or `BudgetReached` where work is left: the same call goes on.
    """
    refuse_foreign(folder, "sft")
    run = RunFolder(folder / "teacher")
    run.path.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        stack.enter_context(locked(run.lock, what=f"data set {folder.name}"))
        plan = resolve(project, job, folder)
        agent = await stack.enter_async_context(
            open_agent(
                project,
                plan.base,
                plan.teacher,
                world=plan.evalset.world,
                seed=job.seed,
                catalogue=project.evalsets / (plan.evalset.header.catalogue or "catalogue"),
            )
        )
        judge = open_judge(plan.judge, plan.judge_config, project)
        stack.push_async_callback(judge.close)
        taught = Taught(
            run=run,
            evalset=plan.evalset,
            base=plan.base,
            states=plan.states,
            names=plan.names,
            candidates=job.candidates,
            teacher=agent.policy.id,
            judge=judge.id,
            warnings=plan.warnings,
        )
        _bind(run, plan, taught)
        await _rollouts(project, plan, run, agent, judge, budget, concurrency, observe)
        return taught


async def _rollouts(
    project: Project,
    plan: TeachingPlan,
    run: RunFolder,
    agent: Agent,
    judge: Judge,
    budget: Budget | None,
    concurrency: int | None,
    observe: Observe | None,
) -> None:
    """Everything that the folder lacks."""
    _check_prices(project, plan, budget)
    standing = read_standing(run)
    gate = Gate(budget or Budget())
    work = Job(
        agents=_seeded(agent, plan),
        judge=judge,
        world=plan.evalset.world,
        journal=Journal(run.journal),
        gate=gate,
        progress=Progress(
            name=f"{plan.teacher} on {plan.job.evalset}",
            planned=plan.each * len(plan.evalset.items),
            spending=gate.spending,
            before=len(standing.done),
        ),
        observe=observe,
        states=plan.states,
    )
    _, config = project.policy(plan.teacher)
    at_once = concurrency or config.concurrency or CONCURRENCY.get(config.kind, 8)
    try:
        with interrupts(lambda: gate.stop("interrupted")):
            await work_off(work, _queue(plan, standing), at_once)
    except asyncio.CancelledError:
        raise Interrupted("stopped at once", hint=AGAIN) from None
    finally:
        await work.journal.close()
    _check_done(work)


def _check_prices(project: Project, plan: TeachingPlan, budget: Budget | None) -> None:
    """Refuse a bound on money where a price is unknown."""
    members = (name for name in plan.judge_config.panel if name != GROUNDED)
    for name in (plan.teacher, *members):
        _, config = project.policy(name)
        (budget or Budget()).check(name, config.price, free=config.kind in FREE)


def _seeded(agent: Agent, plan: TeachingPlan) -> tuple[Agent, ...]:
    """The agent of each rollout of an item: candidates differ in their seeds, states do not."""
    of = agent.generation
    seeds = (plan.job.seed + n % plan.job.candidates for n in range(plan.each))
    return tuple(replace(agent, generation=msgspec.structs.replace(of, seed=s)) for s in seeds)


AGAIN = "the same command goes on where it stopped"


def _check_done(work: Job) -> None:
    left = work.progress.planned - work.progress.done
    if left <= 0:
        return
    said, stopped = f"{left} of {work.progress.planned} rollouts are missing", work.gate.stopped
    if stopped == "interrupted":
        raise Interrupted(f"interrupted: {said}", hint=AGAIN)
    if stopped in ("cost", "tokens", "seconds"):
        raise BudgetReached(f"the budget of {stopped} is reached: {said}", hint=AGAIN)
    raise HarnessError(f"the provider failed from the start ({work.last_error}): {said}")


def _bind(run: RunFolder, plan: TeachingPlan, taught: Taught) -> None:
    """What must be the same for a second run to go on with a folder. Raises `Stale`."""
    ref, job = plan.evalset.ref, plan.job
    bound: Bound = {
        "evalset": ref.name,
        "split": ref.split,
        "items": ref.digest,
        "limit": job.limit,
        "catalogue": ref.catalogue_digest,
        "harness": plan.base.id,
        "states": {n: taught.state(n).id for n in plan.names if n != ORIGINAL},
        "original": job.original,
        "teacher": taught.teacher,
        "judge": taught.judge,
        "candidates": job.candidates,
        "seed": job.seed,
    }
    file = run.path / BOUND
    if file.exists():
        before = read_json(file, dict, name=BOUND)
        different = [k for k in bound if before.get(k) != bound[k]]
        if different:
            raise Stale(
                f"`{run.path.parent}` holds another teacher's work: {', '.join(different)} differ",
                hint="name another folder with -o; this one stays as it is",
            )
    else:
        write_json(file, {**bound, "versions": run_versions()})


def _queue(plan: TeachingPlan, standing: Standing) -> Iterator[Work]:
    """Item by item, so that what a budget leaves undone is whole items."""
    renamings = {n: Renaming(m) for n, m in (plan.states.maps if plan.states else {}).items()}
    for item in plan.evalset.items:
        for place, name in enumerate(plan.names):
            asked = item if name == ORIGINAL else renamings[name].item(item)
            for candidate in range(plan.job.candidates):
                repeat = place * plan.job.candidates + candidate
                if (item.id, repeat) not in standing.done:
                    yield Work(asked, repeat, standing.of(item.id, repeat))
