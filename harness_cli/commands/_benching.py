"""What `harness bench` runs and shows."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.commands._show import emit_json, line, note, step_summary, table
from harness_cli.errors import UsageError
from harness_cli.serving.bench.arm import Arm, read_bench, resumed, run_arm
from harness_cli.serving.bench.contrast import Contrast, contrasts_of
from harness_cli.serving.bench.groups import Group, groups
from harness_cli.serving.bench.route import with_job
from harness_cli.serving.bench.tables import (
    calls,
    contrasts,
    headline,
    markdown,
    remarks,
    shapes,
    shares,
    tools,
)
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

if TYPE_CHECKING:
    from harness_cli.records.bench import BenchRun
    from harness_cli.serving.bench.tables import Table


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `bench replay`."""

    policy: str | None
    job: str | None
    concurrency: str
    runs: int
    evalset: str
    limit: int | None
    warm_up: int
    region: str | None
    resume: str | None


def replay_all(project: Project, asked: Asked, *, as_json: bool, quiet: bool) -> None:
    """Measure every concurrency and every repeat, then the tables."""
    if asked.resume is not None:
        project, arms = _resumed(project, asked.resume)
    else:
        project, arms = _arms(project, asked)
    made = [measure(project, arm, quiet=quiet or as_json) for arm in arms]
    if as_json:
        emit_json(_plain(made, []))
    else:
        show(groups(made), [], quiet=quiet)
    for run in made:
        _check(run)


def _arms(project: Project, asked: Asked) -> tuple[Project, list[Arm]]:
    if asked.policy is not None and asked.job is not None:
        raise UsageError("--policy and --job exclude each other")
    facts = None
    if asked.job is not None:
        project, name, facts = with_job(project, asked.job)
    else:
        name, _ = project.policy(asked.policy)
    base = Arm(
        policy=name,
        evalset=asked.evalset,
        limit=asked.limit,
        warm_up=asked.warm_up,
        region=asked.region,
        serving=facts,
        group=RunStore(project.runs).new_id(),
        command=tuple(sys.argv[1:]),
    )
    levels = levels_of(asked.concurrency)
    arms = [
        replace(base, concurrency=level, repeat=number)
        for level in levels
        for number in range(asked.runs)
    ]
    return project, arms


def _resumed(project: Project, name: str) -> tuple[Project, list[Arm]]:
    arm = resumed(RunStore(project.runs).get(name))
    if arm.serving is not None:
        project, _, facts = with_job(project, arm.serving.job)
        told = arm.serving
        if (facts.digest, facts.model) != (told.digest, told.model):
            raise UsageError(
                f"the job `{facts.job}` serves by other settings than when the run began",
                hint="start a new run",
            )
    return project, [arm]


def levels_of(text: str) -> list[int]:
    try:
        levels = [int(part) for part in text.split(",")]
    except ValueError:
        levels = []
    if not levels or min(levels) < 1:
        raise UsageError(f"`--concurrency {text}`: whole numbers from 1, as 1,2,4,8")
    return levels


def measure(project: Project, arm: Arm, *, quiet: bool) -> "BenchRun":
    from harness_cli.commands._progress import progress

    if not quiet:
        note(f"{arm.policy} at concurrency {arm.concurrency}, run {arm.repeat + 1}")
    with progress(quiet=quiet) as observe:
        return asyncio.run(run_arm(project, arm, observe=observe))


def _check(run: "BenchRun") -> None:
    """Raise what an unfinished measurement means for the exit code."""
    from harness_cli.errors import HarnessError, Interrupted

    contract = run.contract
    if contract.status == "complete":
        return
    left = f"{run.planned - len(run.requests)} of {run.planned} requests are missing"
    hint = f"go on with `harness bench replay --resume {contract.run}`"
    if contract.status == "interrupted":
        raise Interrupted(f"interrupted: {left}", hint=hint)
    raise HarnessError(f"the endpoint failed from the start: {left}", hint=hint)


def report_on(
    project: Project,
    names: Sequence[str],
    against: Sequence[str],
    target: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """The tables of runs, and the contrast with others."""
    made, others = _named(project, names), _named(project, against)
    compared = _contrasts(others, made)
    found = groups([*others, *made])
    if target is not None:
        target.write_text(page(found, compared), encoding="utf-8")
    if as_json:
        emit_json(_plain([*others, *made], compared))
        return
    show(found, compared, quiet=quiet)
    step_summary(page(found, compared))


def _named(project: Project, names: Sequence[str]) -> "list[BenchRun]":
    """Runs by id; the id of a group stands for all its runs."""
    store = RunStore(project.runs)
    found: list[BenchRun] = []
    for name in names:
        members = [
            run
            for folder in store.list()
            if (folder.path / "bench.json").is_file()
            and (run := read_bench(folder)).contract.group == name
        ]
        found += sorted(members, key=lambda run: run.contract.run) or [read_bench(store.get(name))]
    return found


def _contrasts(off: "list[BenchRun]", on: "list[BenchRun]") -> list[Contrast]:
    """Run by run at each concurrency, in the order in which they were made."""
    found = []
    for level in sorted({run.contract.concurrency for run in on}):
        a = [run for run in off if run.contract.concurrency == level]
        b = [run for run in on if run.contract.concurrency == level]
        found += contrasts_of(a, b) if a else []
    if off and not found:
        raise UsageError("no concurrency was measured with both")
    return found


def show(found: list[Group], compared: list[Contrast], *, quiet: bool) -> None:
    """Tables to the terminal."""
    table(*headline(found))
    if compared:
        line()
        table(*contrasts(compared))
    if not quiet:
        for rows in (shapes(found), *breakdown(found)):
            line()
            table(*rows)
    for group in found:
        for text in remarks(group):
            note(text)


def breakdown(found: list[Group]) -> "list[Table]":
    """By place of the call, by tool, and where the time goes; tables without a row are left out."""
    return [rows for rows in (calls(found), tools(found), shares(found)) if rows[1]]


def page(found: list[Group], compared: list[Contrast]) -> str:
    """The same as Markdown."""
    parts = ["## Latency\n", markdown(headline(found))]
    if compared:
        parts += ["\n### Against the other arm\n", markdown(contrasts(compared))]
    parts += ["\n### Workload\n", markdown(shapes(found))]
    parts += ["\n### Breakdown\n", "\n".join(map(markdown, breakdown(found)))]
    parts += [f"- {text}\n" for group in found for text in remarks(group)]
    return "\n".join(parts)


def _plain(made: "Sequence[BenchRun]", compared: list[Contrast]) -> dict[str, Any]:
    return {
        "contracts": [run.contract for run in made],
        "groups": groups(made),
        "contrasts": compared,
    }
