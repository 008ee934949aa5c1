"""One arm of a benchmark: the complete agent over the cases, at one concurrency, bound and kept.

    run = await run_arm(project, Arm(policy="hat", concurrency=2))   # → BenchRun
    run = read_bench(RunStore(project.runs).get("20261130-…"))

The run is an ordinary run folder (journal, reports), so `harness show`, `report` and the latency
gate read it; `bench.json` beside them binds it to its contract and is written at the start, so
that a run that was killed still says what it measured. Several arms are several calls.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.metrics import ATTAINMENT_S
from harness_cli.evaluation.plan import EvalOptions, Plan, resolve, run_versions
from harness_cli.evaluation.progress import Observe
from harness_cli.models.generation import generation_of
from harness_cli.records.bench import BENCH_FILE, BenchContract, BenchRun, ServingFacts
from harness_cli.records.canonical import digest, write_json
from harness_cli.records.reader import read_json
from harness_cli.serving.bench.collect import requests_of
from harness_cli.serving.bench.route import arm_of, region_of, route_of
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

EVALSET: Final = "deploy_replay"
YOUNG: Final = 20_000
"""Objects that are made before the garbage collector looks (700 by default)."""
WARM_UP: Final = 10
"""Cases that are marked and left out, the first of the evalset (TR §4.3: 10 of 110)."""


@dataclass(frozen=True, slots=True)
class Arm:
    """What one call measures."""

    policy: str
    concurrency: int = 1
    evalset: str = EVALSET
    split: str | None = None
    limit: int | None = None
    """Cases, warm-ups included."""
    warm_up: int = WARM_UP
    repeat: int = 0
    group: str = ""
    label: str | None = None
    region: str | None = None
    serving: ServingFacts | None = None
    seed: int | None = None
    harness: str | None = None
    resume: RunFolder | None = None
    command: tuple[str, ...] = ()


async def run_arm(project: Project, arm: Arm, *, observe: Observe | None = None) -> BenchRun:
    """Measure one arm, or go on with it; what it came to, whole or not.

    Failures of requests are samples. Raises what stands in the way before the first request, and
    `Interrupted` on a second ^C; the record is written all the same.
    """
    plan = resolve(project, _options(arm))
    ids = [item.id for item in plan.items]
    if len(ids) <= arm.warm_up:
        raise UsageError(f"{len(ids)} cases leave none to measure after {arm.warm_up} warm-ups")
    measuring = _Measuring(plan, arm, ids)
    options = replace(_options(arm), begun=measuring.begin)
    status = "interrupted"
    try:
        with _steady_memory():
            status = (await evaluate(project, options, observe=observe)).report.status
    finally:
        measuring.end(status)
    return measuring.run


@contextmanager
def _steady_memory() -> Iterator[None]:
    """What is loaded by now is looked at no more by the garbage collector, and it comes seldom:
    a full pass over an agent's program stands still for tens of milliseconds, which would be
    taken for the server's."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


def _options(arm: Arm) -> EvalOptions:
    return EvalOptions(
        evalset=arm.evalset,
        split=arm.split,
        policy=arm.policy,
        harness=arm.harness,
        judge="none",
        profile="replay",
        limit=arm.limit,
        seed=arm.seed,
        concurrency=arm.concurrency,
        resume=arm.resume,
        warm_up=arm.warm_up,
        command=arm.command,
    )


class _Measuring:
    """The record of an arm while it runs."""

    def __init__(self, plan: Plan, arm: Arm, ids: list[str]) -> None:
        self._plan, self._arm, self._ids = plan, arm, ids
        self._clocks = time.time(), time.monotonic()
        self._folder: RunFolder | None = None

    def begin(self, folder: RunFolder) -> None:
        """The run has a folder: bind it before its first request."""
        self._folder = folder
        self._clocks = time.time(), time.monotonic()
        self.run = BenchRun(contract=self._contract(folder), planned=len(self._ids))
        write_json(folder.path / BENCH_FILE, self.run)

    def end(self, status: str) -> None:
        """Keep what it came to."""
        if self._folder is None:
            return
        wall, steady = time.time() - self._clocks[0], time.monotonic() - self._clocks[1]
        contract = msgspec.structs.replace(
            self.run.contract,
            end=datetime.now(UTC).isoformat(timespec="seconds"),
            clock_jump_s=round(wall - steady, 3),
            status=status,
        )
        requests = requests_of(self._folder.journal, warm=frozenset(contract.warm_up))
        self.run = msgspec.structs.replace(self.run, contract=contract, requests=tuple(requests))
        write_json(self._folder.path / BENCH_FILE, self.run)

    def _contract(self, folder: RunFolder) -> BenchContract:
        plan, arm, config = self._plan, self._arm, folder.config()
        settings, route = plan.policy_config, route_of(plan.policy_config)
        old = read_bench(folder).contract if (folder.path / BENCH_FILE).is_file() else None
        return BenchContract(
            run=folder.id,
            group=old.group if old else (arm.group or folder.id),
            repeat=old.repeat if old else arm.repeat,
            arm=arm_of(arm.serving, arm.label),
            policy=config.policy,
            policy_id=config.policy_id,
            checkpoint=settings.checkpoint,
            harness_id=config.harness_id,
            harness_commit=config.harness_commit,
            dirty=config.dirty,
            evalset=config.evalset.name,
            split=config.evalset.split,
            evalset_digest=config.evalset.digest,
            cases=len(self._ids),
            cases_digest=digest(self._ids),
            warm_up=tuple(self._ids[: arm.warm_up]),
            route=route,
            streamed=settings.stream,
            concurrency=arm.concurrency,
            generation=generation_of(settings, plan.seed),
            limits=config.limits,
            bound_s=config.limits.end_to_end_s or ATTAINMENT_S,
            client_region=region_of(route, arm.region),
            start=config.started,
            versions=run_versions(),
            serving=arm.serving,
        )


def resumed(folder: RunFolder) -> Arm:
    """The arm of a run that did not end, as its contract has it."""
    contract = read_bench(folder).contract
    return Arm(
        policy=contract.policy,
        concurrency=contract.concurrency,
        evalset=contract.evalset,
        split=contract.split,
        limit=folder.config().limit,
        warm_up=len(contract.warm_up),
        group=contract.group,
        repeat=contract.repeat,
        label=contract.arm,
        region=contract.client_region,
        serving=contract.serving,
        resume=folder,
    )


def read_bench(folder: RunFolder) -> BenchRun:
    """One measured arm; of a run that was killed, what its journal has. Raises `BadFile`."""
    path = folder.path / BENCH_FILE
    if not path.is_file():
        raise BadFile(f"run `{folder.id}` is no benchmark", hint="harness bench replay makes one")
    run = read_json(path, BenchRun, name=f"{folder.id}/{BENCH_FILE}")
    if run.contract.status != "running":
        return run
    requests = requests_of(folder.journal, warm=frozenset(run.contract.warm_up))
    status = "running" if folder.writer() is not None else "killed"
    contract = msgspec.structs.replace(run.contract, status=status)
    return msgspec.structs.replace(run, contract=contract, requests=tuple(requests))
