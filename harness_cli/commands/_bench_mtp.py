"""What `harness bench mtp` runs and shows."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from harness_cli.commands._benching import levels_of, measure
from harness_cli.commands._show import emit_json, line, note, step_summary, table
from harness_cli.errors import HarnessError, UsageError
from harness_cli.records.bench import ServingFacts
from harness_cli.records.canonical import write_atomic
from harness_cli.serving.bench.arm import Arm
from harness_cli.serving.bench.loopback import facts, loopback
from harness_cli.serving.bench.mtp import MtpBench, Quality, against_exact, compare, quality
from harness_cli.serving.bench.mtp_tables import (
    across_concurrency,
    chart,
    page,
    qualities,
    validities,
)
from harness_cli.serving.bench.route import with_job
from harness_cli.serving.bench.tables import contrasts
from harness_cli.serving.job_folder import job_names
from harness_cli.store.checkpoints import DRAFTED, LOSSY, PREFIX
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

if TYPE_CHECKING:
    from harness_cli.records.bench import BenchRun

OFF: Final = "mtp off"
ON: Final = "mtp on"
LOSSY_ON: Final = "mtp on, lossy"
MARGIN: Final = 0.02
METRICS: Final = ("accuracy", "effectiveness", "avg")


@dataclass(frozen=True, slots=True)
class AskedMtp:
    """The options of `bench mtp`."""

    off: str
    on: str | None
    lossy: str | None
    concurrency: str
    runs: int
    evalset: str
    limit: int | None
    warm_up: int
    quality: str | None
    folder: Path | None


@dataclass(frozen=True, slots=True)
class Side:
    """One arm as it can be asked."""

    label: str
    project: Project
    policy: str
    facts: ServingFacts | None


def bench_mtp(project: Project, asked: AskedMtp, *, as_json: bool, quiet: bool) -> None:
    """Measure every arm at every concurrency in turns, then compare."""
    scored_on = None if asked.quality is None else on_which(asked.quality)
    levels = levels_of(asked.concurrency)
    names = _arms(asked)
    with ExitStack() as stack:
        sides = [_side(project, stack, label, name, max(levels)) for label, name in names]
        made = _measured(project, asked, sides, levels, quiet=quiet or as_json)
        found = [compare(s.label, made[OFF], made[s.label]) for s in sides[1:]]
        found = [_with_exact(bench, made) for bench in found]
        if scored_on is not None:
            evalset, margin = scored_on
            scored = {s.label: _scores(s, evalset, asked, quiet=quiet or as_json) for s in sides}
            found = [_with_quality(bench, scored, margin) for bench in found]
    _keep(asked.folder, found)
    if as_json:
        emit_json({"mtp": found})
        return
    _show(found, quiet=quiet)


def _arms(asked: AskedMtp) -> list[tuple[str, str]]:
    """Labels and names, off first. A checkpoint alone stands for all three."""
    on, lossy = asked.on, asked.lossy
    if on is None:
        if not asked.off.startswith(PREFIX):
            raise UsageError(
                "which one drafts?", hint="--on NAME; a checkpoint:NAME drafts with its own head"
            )
        on, lossy = asked.off + DRAFTED, lossy or asked.off + LOSSY
    named = [(OFF, asked.off), (ON, on)]
    return [*named, (LOSSY_ON, lossy)] if lossy else named


def _side(project: Project, stack: ExitStack, label: str, name: str, limit: int) -> Side:
    """A running job, an endpoint, or a policy of ours behind a server of its own meanwhile."""
    if name in job_names(project.root):
        with_it, policy, told = with_job(project, name)
        return Side(label, with_it, policy, told)
    policy, config = project.policy(name)
    if config.kind == "openai":
        return Side(label, project, policy, None)
    note(f"serving {name} on loopback")
    with_it, served = stack.enter_context(loopback(project, policy, limit=limit))
    return Side(label, with_it, served, facts(project, policy))


def _measured(
    project: Project, asked: AskedMtp, sides: Sequence[Side], levels: Sequence[int], *, quiet: bool
) -> "dict[str, list[BenchRun]]":
    """Arms take turns within a concurrency, so that a machine that changes changes for all."""
    group = RunStore(project.runs).new_id()
    made: dict[str, list[BenchRun]] = {side.label: [] for side in sides}
    for level in levels:
        for number in range(asked.runs):
            for side in sides:
                arm = Arm(
                    policy=side.policy,
                    concurrency=level,
                    evalset=asked.evalset,
                    limit=asked.limit,
                    warm_up=asked.warm_up,
                    repeat=number,
                    group=group,
                    label=side.label,
                    serving=side.facts,
                    command=tuple(sys.argv[1:]),
                )
                run = measure(side.project, arm, quiet=quiet)
                if run.contract.status != "complete":
                    raise HarnessError(
                        f"run `{run.contract.run}` ended as {run.contract.status}",
                        hint=f"what it measured is kept: harness bench report {group}",
                    )
                made[side.label].append(run)
    return made


def on_which(text: str) -> tuple[str, float]:
    """`EVALSET` or `EVALSET@MARGIN`. Raises `UsageError` for a margin that is no share."""
    name, at, told = text.partition("@")
    try:
        margin = float(told) if at else MARGIN
    except ValueError:
        margin = 0.0
    if not 0 < margin < 1:
        raise UsageError(f"--quality {text}: the margin is a share between 0 and 1")
    return name, margin


Scores = dict[str, dict[str, float | None]]
"""Item → its scores."""


def _scores(side: Side, evalset: str, asked: AskedMtp, *, quiet: bool) -> Scores:
    from harness_cli.commands._progress import progress
    from harness_cli.evaluation.engine import evaluate
    from harness_cli.evaluation.plan import EvalOptions

    options = EvalOptions(
        evalset=evalset, policy=side.policy, limit=asked.limit, command=tuple(sys.argv[1:])
    )
    if not quiet:
        note(f"quality of {side.label} on {evalset}")
    with progress(quiet=quiet) as observe:
        outcome = asyncio.run(evaluate(side.project, options, observe=observe))
    return {result.item_id: dict(result.scores) for result in outcome.run.results()}


def _with_exact(bench: MtpBench, made: "dict[str, list[BenchRun]]") -> MtpBench:
    """The lossy arm with the exact one beside it; the exact one as it is."""
    if bench.arm != LOSSY_ON:
        return bench
    return msgspec.structs.replace(bench, against_exact=against_exact(made[ON], made[bench.arm]))


def _with_quality(bench: MtpBench, scored: dict[str, Scores], margin: float) -> MtpBench:
    checks = _checks(bench.arm, scored[OFF], scored[bench.arm], margin)
    if bench.arm == LOSSY_ON:
        checks += _checks("lossy against exact", scored[ON], scored[bench.arm], margin)
    return msgspec.structs.replace(bench, quality=tuple(checks))


def _checks(arm: str, before: Scores, after: Scores, margin: float) -> list[Quality]:
    checks: list[Quality] = []
    for metric in METRICS:
        scored = [
            (x, after.get(item, {}).get(metric))
            for item, scores in before.items()
            if (x := scores.get(metric)) is not None
        ]
        pairs = [(x, y) for x, y in scored if y is not None]
        if pairs:
            a, b = [x for x, _ in pairs], [y for _, y in pairs]
            lost = len(scored) - len(pairs)
            checks.append(quality(arm, metric, a, b, margin, lost=lost))
    return checks


def _keep(folder: Path | None, found: Sequence[MtpBench]) -> None:
    """`mtp.json`, `mtp.md` and a chart for each arm."""
    if folder is None:
        return
    write_atomic(folder / "mtp.json", msgspec.json.format(msgspec.json.encode(list(found))) + b"\n")
    write_atomic(folder / "mtp.md", page(found).encode())
    for bench in found:
        name = bench.arm.replace(", ", "-").replace(" ", "-")
        write_atomic(folder / f"{name}.svg", chart(bench).encode())


def _show(found: Sequence[MtpBench], *, quiet: bool) -> None:
    table(*across_concurrency(found))
    for bench in found:
        if bench.against_exact:
            line()
            table(*contrasts(bench.against_exact), title="lossy against exact")
    checks = [q for bench in found for q in bench.quality]
    if checks:
        line()
        table(*qualities(checks))
    line()
    table(*validities([v for bench in found for v in bench.validity]))
    for bench in found:
        for text in bench.advice:
            line(f"{bench.arm}: {text}")
    if not quiet:
        step_summary(page(found))
