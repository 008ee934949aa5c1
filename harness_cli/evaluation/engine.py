"""The evaluation engine: an evalset through an agent and a judge, durable call by call.

    options ─resolve─▶ plan ─▶ run folder ─▶ workers ─▶ journal ─▶ reports

Items are streamed from disk, results into the journal: what is kept in memory does not grow with
the run. Whatever ends it (a kill, ^C, a budget) leaves a run that `resume` goes on with.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from os import getpid
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BudgetReached, HarnessError, Interrupted
from harness_cli.evaluation.agents import open_agent
from harness_cli.evaluation.gate import Gate
from harness_cli.evaluation.interrupts import interrupts
from harness_cli.evaluation.judging import check_prices
from harness_cli.evaluation.plan import EvalOptions, Plan, keep_uncommitted, resolve, run_config
from harness_cli.evaluation.progress import Observe, Progress
from harness_cli.evaluation.responses import Responses
from harness_cli.evaluation.resume import Standing, read_standing, refuse_difference
from harness_cli.evaluation.rollouts import Job, Work, work_off
from harness_cli.evaluation.summary import write_reports
from harness_cli.judges.base import Judge
from harness_cli.records.canonical import digest
from harness_cli.records.journal import NoteRecord
from harness_cli.records.run import Report, RunConfig
from harness_cli.runtime.agent import Agent
from harness_cli.store.journal import Journal
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

BUDGETS = ("cost", "tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run and its report. `check` raises what an unfinished one means for an exit code."""

    run: RunFolder
    report: Report
    stopped: str | None = None
    """Why no more was asked: `interrupted`, a budget's name, `provider`; None when all was."""
    last_error: str = ""

    def check(self) -> None:
        """Raise `Interrupted`, `BudgetReached` or `HarnessError` unless the run is complete."""
        if self.report.status == "complete":
            return
        source = self.report.run.rescored_of
        hint = f"go on with `harness eval --resume {source or self.run.id}`"
        hint += f", then --rescore {source}" if source else ""
        left = f"{self.report.counts['missing']} of {self.report.planned} are missing"
        if self.report.status == "interrupted":
            raise Interrupted(f"interrupted: {left}", hint=hint)
        if self.report.status == "budget":
            raise BudgetReached(f"the budget of {self.stopped} is reached: {left}", hint=hint)
        raise HarnessError(
            f"the provider failed from the start ({self.last_error}): {left}",
            hint=f"`harness doctor` checks the policy; then {hint}",
        )


async def evaluate(
    project: Project, options: EvalOptions, *, observe: Observe | None = None
) -> Outcome:
    """Run one evalset, or go on with one run, and write its reports.

    Raises what stands in the way before the first call (`BadFile`, `UnknownName`, `UsageError`,
    `Stale` for a resume that would be another run, `Locked`); afterwards everything is data of the
    run. Interrupted a second time it raises `Interrupted` without reports.
    """
    plan = resolve(project, options)
    async with AsyncExitStack() as stack:
        agent, policy_id, responses = await _open_policy(project, plan, stack)
        judge = _open_judge(project, plan)
        if judge is not None:
            stack.push_async_callback(judge.close)
        store = RunStore(project.runs)
        run_id = options.resume.id if options.resume else store.new_id()
        config = run_config(project, plan, run_id, policy=policy_id, judge=judge)
        check_prices(project, plan)
        with ExitStack() as locks:
            _lock(locks, project, config, options)
            folder = _folder(project, store, config, options)
            options.begun(folder)
            locks.enter_context(
                locked(folder.lock, what=f"run {run_id}", if_locked=options.if_locked)
            )
            return await _run(plan, folder, agent, judge, responses, observe)


async def _run(
    plan: Plan,
    folder: RunFolder,
    agent: Agent,
    judge: Judge | None,
    responses: Responses | None,
    observe: Observe | None,
) -> Outcome:
    standing = read_standing(folder, measured=plan.options.warm_up is not None)
    gate = Gate(plan.options.budget)
    journal = Journal(folder.journal)
    job = Job(
        agents=_seeded(agent, plan),
        judge=judge,
        world=plan.evalset.world,
        journal=journal,
        gate=gate,
        progress=Progress(
            name=plan.evalset.header.name,
            planned=plan.planned,
            spending=gate.spending,
            before=len(standing.done),
        ),
        observe=observe,
        responses=responses.trajectory if responses else None,
        states=plan.evalset.states,
    )
    event = "resumed" if plan.options.resume else "started"
    journal.append(started_note(event, plan.concurrency, plan.options.command))
    try:
        with interrupts(lambda: gate.stop("interrupted")):
            for phase in _phases(plan, standing):
                await work_off(job, phase, plan.concurrency)
    except asyncio.CancelledError:
        raise Interrupted(
            "stopped at once", hint=f"go on with `harness eval --resume {folder.id}`"
        ) from None
    finally:
        await journal.close()
    return concluded(
        job,
        folder,
        metrics=plan.evalset.header.metrics,
        concurrency=plan.concurrency,
    )


def concluded(job: Job, folder: RunFolder, *, metrics: Sequence[str], concurrency: int) -> Outcome:
    """The reports of what the workers came to; raises `HarnessError` on a full disk."""
    status = _status(job)
    try:
        report = write_reports(
            folder,
            planned=job.progress.planned,
            status=status,
            metrics=metrics,
            timing=_timing(job, concurrency),
        )
    except OSError as exc:
        raise HarnessError(
            f"the reports of run `{folder.id}` cannot be written: {exc.strerror}",
            hint=f"the journal is whole; make room, then `harness eval --resume {folder.id}`",
        ) from exc
    stopped = job.gate.stopped if status != "complete" else None
    return Outcome(folder, report, stopped, job.last_error)


def _phases(plan: Plan, standing: Standing) -> Iterator[Iterator[Work]]:
    """The rollouts still to make, warm-ups first: what follows waits for the last of them."""
    warm = plan.options.warm_up or 0
    if warm:
        yield _queue(plan, standing, 0, warm)
    yield _queue(plan, standing, warm, None)


def _queue(plan: Plan, standing: Standing, start: int, stop: int | None) -> Iterator[Work]:
    rollouts = ((item, repeat) for item in plan.items for repeat in range(plan.repeat))
    for item, repeat in islice(rollouts, start, stop):
        if (item.id, repeat) not in standing.done:
            yield Work(item, repeat, standing.of(item.id, repeat))


def _status(job: Job) -> str:
    stopped = job.gate.stopped
    if job.progress.done >= job.progress.planned or stopped is None:
        return "complete"
    if stopped in BUDGETS:
        return "budget"
    return "interrupted" if stopped == "interrupted" else "failed"


def _seeded(agent: Agent, plan: Plan) -> tuple[Agent, ...]:
    """The agent of each repeat: a repeat has a seed of its own."""
    generation = agent.generation
    return (
        agent,
        *(
            replace(agent, generation=msgspec.structs.replace(generation, seed=plan.seed + r))
            for r in range(1, plan.repeat)
        ),
    )


async def _open_policy(
    project: Project, plan: Plan, stack: AsyncExitStack
) -> tuple[Agent, str, Responses | None]:
    options = plan.options
    responses = Responses.read(options.responses) if options.responses else None
    agent = await stack.enter_async_context(
        open_agent(
            project,
            plan.state,
            None if responses else plan.policy,
            world=plan.evalset.world,
            profile=plan.profile,
            kind=plan.agent,
            seed=plan.seed,
            catalogue=_catalogue(project, plan),
            record=options.record,
            replay=options.replay,
            started=options.warm_up is not None,
        )
    )
    return agent, responses.id if responses else agent.policy.id, responses


def _catalogue(project: Project, plan: Plan) -> Path:
    return project.evalsets / (plan.evalset.header.catalogue or "catalogue")


def _open_judge(project: Project, plan: Plan) -> Judge | None:
    if plan.judge_config is None:
        return None
    from harness_cli.judges.open import open_judge

    return open_judge(
        plan.judge,
        plan.judge_config,
        project,
        fresh=plan.options.fresh_verdicts,
        concurrency=plan.concurrency,
    )


def _lock(locks: ExitStack, project: Project, config: RunConfig, options: EvalOptions) -> None:
    """Hold what no two processes may do at once: paying for the same question twice."""
    same = {
        name: getattr(config, name)
        for name in (
            "evalset",
            "limit",
            "only",
            "repeat",
            "seed",
            "agent",
            "harness_id",
            "policy_id",
        )
    }
    path = project.runs.parent / "locks" / f"eval-{digest(same)[:12]}"
    what = f"the same evaluation of `{config.evalset.name}`"
    locks.enter_context(locked(path, what=what, if_locked=options.if_locked))


def _folder(
    project: Project, store: RunStore, config: RunConfig, options: EvalOptions
) -> RunFolder:
    if options.resume is not None:
        refuse_difference(options.resume.config(), config)
        return options.resume
    keep_uncommitted(project, config, options.harness)
    return store.create(config)


def started_note(event: str, concurrency: int, command: Sequence[str]) -> NoteRecord:
    """The first record of a process that goes to work on a run."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    detail = {"concurrency": concurrency, "command": list(command)}
    return NoteRecord(event=event, at=now, pid=getpid(), detail=detail)


def _timing(job: Job, concurrency: int) -> dict[str, Any]:
    """Of this process alone: from the first dispatch to the last durable record."""
    start, end = job.started or (0.0, 0.0), job.ended or job.started or (0.0, 0.0)
    return {
        "wall_s": end[0] - start[0],
        "cpu_s": end[1] - start[1],
        "calls": job.gate.spending.calls,
        "concurrency": concurrency,
        "journal": {
            "records": job.journal.records,
            "syncs": job.journal.syncs,
            "bytes": job.journal.size,
        },
    }
