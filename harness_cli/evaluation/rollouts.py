"""One item through agent, judge and journal; and the workers that do it side by side."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness_cli.errors import JudgeError
from harness_cli.evaluation.agents import for_item
from harness_cli.evaluation.calls import JournaledCalls, Recorded, SharedDigests
from harness_cli.evaluation.gate import Gate, RunStopped
from harness_cli.evaluation.judging import JudgedCalls, judging_of, rubric_outcomes
from harness_cli.evaluation.progress import Observe, Progress
from harness_cli.evaluation.redaction import Cleaner
from harness_cli.evaluation.results import item_result
from harness_cli.evaluation.texts import Texts
from harness_cli.evaluation.variants import StateSource
from harness_cli.judges.assertions import check_assertions
from harness_cli.judges.base import Judge
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.clocks import trajectory_digest
from harness_cli.records.item import Item
from harness_cli.records.journal import ItemRecord, TrajectoryRecord, VerdictRecord
from harness_cli.records.trajectory import StopReason, Trajectory
from harness_cli.records.verdict import ItemResult, Verdict
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.store.journal import LATEST_S, Batch, Journal
from harness_cli.store.redact import Redactor

TOGETHER_S = LATEST_S
"""So long at most a finished item waits for others, to go to the disk with them."""
DEAD_AFTER = 20
"""So many errored rollouts (or two rounds of the workers) before any other one: the provider is
down or refuses us, and going on would only repeat it."""


class Finished(asyncio.Queue[tuple[ItemResult, Batch] | None]):
    """Items that wait for their record to be durable; None when no more will come."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._hurry = asyncio.Event()
        self._ended = False

    async def put(self, entry: tuple[ItemResult, Batch] | None) -> None:
        """As a queue's; one that is full, or at its end, is waited for by somebody."""
        self._ended = self._ended or entry is None
        if self._ended or self.full():
            self._hurry.set()
        await super().put(entry)

    async def company(self) -> None:
        """A moment in which more may come, over at once when somebody waits for room.

        A sync wakes two threads and the disk, whatever it takes along: few are made for many.
        """
        if self._ended or self.full():
            return
        self._hurry.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TOGETHER_S):
                await self._hurry.wait()


@dataclass(slots=True)
class Work:
    """One rollout to make; `recorded` is what a killed process left of it."""

    item: Item
    repeat: int
    recorded: Recorded | None = None


@dataclass(slots=True)
class Job:
    """Everything the workers of one run share."""

    agents: tuple[Agent, ...]
    """One a repeat: they differ in their seeds."""
    judge: Judge | None
    world: Catalogue
    journal: Journal
    gate: Gate
    progress: Progress
    observe: Observe | None = None
    responses: Callable[[Item, int], Trajectory] | None = None
    """Given answers (`--responses`) or recorded rollouts in place of new ones: never timed."""
    states: StateSource | None = None
    """Augmented harness states, where items name one."""
    cleaner: Cleaner = field(default_factory=lambda: Cleaner(Redactor.from_environment().text))
    texts: Texts = field(init=False)
    shared: SharedDigests = field(default_factory=SharedDigests)
    judge_shared: dict[str, SharedDigests] = field(default_factory=dict)
    """The same for each member of the judge."""
    errors: int = 0
    judge_errors: int = 0
    last_error: str = ""
    started: tuple[float, float] | None = None
    """Wall and CPU clock at the first dispatch."""
    ended: tuple[float, float] | None = None
    """The same at the last durable record."""

    def __post_init__(self) -> None:
        self.texts = Texts(self.cleaner.text)


async def work_off(job: Job, queue: Iterator[Work], concurrency: int) -> None:
    """Take work until there is none or the gate is shut; a bug of ours ends all workers.

    A worker does not wait for the disk: it takes the next item while the last one's record is
    being synced. An item counts only when it is durable, and a disk that stands still stops the
    workers after two items each.
    """
    finished = Finished(2 * concurrency)
    counting = asyncio.ensure_future(_count(job, finished))
    workers = [_worker(job, queue, concurrency, finished) for _ in range(concurrency)]
    working = asyncio.ensure_future(_all(workers, finished))
    try:
        await asyncio.gather(working, counting)
    finally:
        for task in (working, counting):
            task.cancel()
        await asyncio.gather(working, counting, return_exceptions=True)


async def _all(workers: list[Coroutine[Any, Any, None]], finished: Finished) -> None:
    """Every worker to its end, then the mark that nothing follows; one that breaks ends them."""
    tasks = [asyncio.ensure_future(worker) for worker in workers]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await finished.put(None)


async def _worker(job: Job, queue: Iterator[Work], concurrency: int, finished: Finished) -> None:
    for work in queue:
        if job.gate.stopped is not None:
            return
        job.started = job.started or clocks()
        try:
            result, durable = await run_item(job, work)
        except RunStopped:
            return
        _watch_provider(job, result, concurrency)
        await finished.put((result, durable))


async def _count(job: Job, finished: Finished) -> None:
    """Results in the order in which they became durable."""
    while (entry := await finished.get()) is not None:
        result, durable = entry
        if not durable.done:
            await finished.company()
        await durable
        job.ended = clocks()
        job.progress.add(result)
        if job.observe is not None:
            job.observe(job.progress)


def clocks() -> tuple[float, float]:
    """Wall and CPU seconds of this process."""
    return time.perf_counter(), time.process_time()


async def run_item(job: Job, work: Work) -> tuple[ItemResult, Batch]:
    """One rollout, judged and recorded, and what to await to know it on the disk.

    Raises `RunStopped` when the gate shuts in between: what was recorded is used by a resume.
    """
    item = work.item
    calls = JournaledCalls(
        job.journal,
        job.gate,
        job.shared,
        job.cleaner,
        item=item.id,
        repeat=work.repeat,
        recorded=work.recorded,
    )
    trajectory = await _trajectory(job, work, calls)
    if job.cleaner.finds(item.request):
        # What the item itself says may stand anywhere by now: in messages, hooks, arguments.
        trajectory = job.cleaner.record(trajectory)
    texts, compact = job.texts.compact(trajectory)
    for text in texts:
        job.journal.append(text)
    job.journal.append(TrajectoryRecord(item=item.id, repeat=work.repeat, trajectory=compact))
    verdict, error = await _judged(job, work, trajectory, replayed=calls.complete)
    rubrics = rubric_outcomes(verdict)
    assertions = () if trajectory.errored else check_assertions(item, trajectory, rubrics)
    judging = judging_of(verdict)
    if verdict is not None and _left_to_assertions(item, verdict):
        verdict = None
    resumed, digest = calls.replayed > 0, trajectory_digest(compact)
    timed = not resumed and job.responses is None
    result = item_result(
        item, trajectory, verdict, assertions, judge_error=error, timed=timed, digest=digest
    )
    result = msgspec.structs.replace(result, judging=judging) if judging else result
    job.journal.append(
        VerdictRecord(item=item.id, repeat=work.repeat, verdict=verdict, error=error)
    )
    record = ItemRecord(item=item.id, repeat=work.repeat, resumed=resumed, result=result)
    return result, job.journal.append(record)


async def _trajectory(job: Job, work: Work, calls: JournaledCalls) -> Trajectory:
    item = work.item
    if job.responses is not None:
        return job.responses(item, work.repeat)
    agent = job.agents[work.repeat]
    request_id = f"{item.id}#{work.repeat}"
    try:
        agent = for_item(agent, item, job.states)
        return await rollout(
            item.request,
            agent,
            request_id=request_id,
            item_id=item.id,
            repeat=work.repeat,
            log=calls,
        )
    except Exception as exc:  # noqa: BLE001  one broken rollout never ends the others
        return Trajectory(
            request_id=request_id,
            item_id=item.id,
            repeat=work.repeat,
            agent=agent.kind,
            harness_id=agent.state.id,
            policy_id=agent.policy.id,
            stop=StopReason.ERROR,
            error=job.cleaner.text(f"runtime: {_described(exc)}"),
        )


async def _judged(
    job: Job, work: Work, trajectory: Trajectory, *, replayed: bool
) -> tuple[Verdict | None, str | None]:
    """The verdict, or why there is none. A rollout that broke is not judged.

    One that was wholly `replayed` has its recorded verdict, when there is one.
    """
    if job.judge is None or trajectory.errored:
        return None, None
    if replayed and work.recorded and work.recorded.verdict:
        return work.recorded.verdict, None
    try:
        calls = JudgedCalls(job, work)
        item = work.item
        if item.state is not None and job.states is not None:
            item, trajectory = job.states.in_base(item, trajectory)
        return await job.judge.judge(item, trajectory, job.world, calls=calls), None
    except JudgeError as exc:
        return None, job.cleaner.text(f"judge: {exc}")
    except Exception as exc:  # noqa: BLE001  a judge that breaks leaves its item unscored
        return None, job.cleaner.text(f"judge: {_described(exc)}")


def _left_to_assertions(item: Item, verdict: Verdict) -> bool:
    """A judge of facts has nothing to say about a bare prompt: its assertions decide alone."""
    silent = all(score is None for score in verdict.scores.values())
    return item.request.prompt is not None and bool(item.assert_) and silent


def _described(exc: Exception) -> str:
    """A bug in one line: what, and the innermost place in the code."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" (line {trace.tb_lineno} of {trace.tb_frame.f_globals['__name__']})" if trace else ""
    return f"{type(exc).__name__}: {exc}{at}"


def _watch_provider(job: Job, result: ItemResult, concurrency: int) -> None:
    """Stop a run whose policy, or whose judge, has answered nothing from the start."""
    if result.judging is not None and job.judge_errors >= 0:
        dead = result.judging.failed > 0 and result.judging.calls + result.judging.cached == 0
        job.judge_errors = job.judge_errors + 1 if dead else -1
        if job.judge_errors >= max(DEAD_AFTER, 2 * concurrency):
            job.last_error = f"judge: {result.error}"
            job.gate.stop("provider")
    if result.state != "errored":
        job.errors = -1
    elif job.errors >= 0:
        job.errors += 1
        job.last_error = result.error or ""
        if job.errors >= max(DEAD_AFTER, 2 * concurrency):
            job.gate.stop("provider")
