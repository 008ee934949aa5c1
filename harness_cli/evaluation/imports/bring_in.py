"""`harness evalset import`: an evalset from another tool's file, and a run where it holds one."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from harness_cli.errors import BadFile, JudgeError, UnknownName, UsageError
from harness_cli.evaluation.evalsets import Evalset, load_world
from harness_cli.evaluation.imports.imported import Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.keep_evalset import existing_evalset, safe_name, write_evalset
from harness_cli.evaluation.imports.keep_run import (
    RunWriter,
    Scored,
    as_recorded,
    run_config,
    staged,
)
from harness_cli.evaluation.imports.kinds import located, reader
from harness_cli.evaluation.imports.source import opened
from harness_cli.evaluation.judging import judging_of, rubric_outcomes
from harness_cli.evaluation.plan import NO_JUDGE
from harness_cli.evaluation.redaction import Cleaner
from harness_cli.judges.assertions import check_assertions
from harness_cli.judges.base import Judge
from harness_cli.judges.open import open_judge
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.config import JudgeConfig
from harness_cli.records.item import Item
from harness_cli.records.run import Report
from harness_cli.store.project import Project
from harness_cli.store.redact import Redactor
from harness_cli.store.runs import RunFolder, RunStore


@dataclass(frozen=True, slots=True)
class BroughtIn:
    """What an import made."""

    imported: Imported
    evalset: Evalset
    fresh: bool
    """The evalset is new; else it was there already, the same."""
    run: RunFolder | None = None
    report: Report | None = None


def bring_in(
    project: Project,
    kind: str,
    path: Path,
    options: ImportOptions,
    *,
    rescore: bool = False,
    judge: str | None = None,
    command: tuple[str, ...] = (),
) -> BroughtIn:
    """Read, check, then write: the evalset first, the run second, each whole or not at all."""
    read = reader(kind)
    if options.name is not None:
        safe_name(options.name)
    with opened(located(kind, path)) as source:
        imported = without_secrets(read(source, options))
        ours = _judge(project, judge) if rescore else None
        if rescore and imported.rollouts is None:
            raise UsageError(
                f"{source.name} records no answers to score again",
                hint="import it without --rescore, then `harness eval`",
            )
        found = existing_evalset(project, imported.header, imported.items)

        def evalset() -> Evalset:
            return found or write_evalset(
                project, imported.header, imported.items, source=source.name
            )

        if imported.rollouts is None:
            return BroughtIn(imported, evalset(), found is None)
        store = RunStore(project.runs)
        run_id = store.new_id()
        with staged(store, run_id) as folder:
            writer = RunWriter(folder, source=source.name)
            try:
                world = load_world(project, (found.header if found else imported.header))
                asyncio.run(_write(writer, imported, ours, world, rescore=rescore))
                # Everything is read by now: what stands in the way of a file has been found.
                kept = evalset()
                config = run_config(
                    imported,
                    kept.ref,
                    run_id=run_id,
                    file=source.name,
                    sha256=source.sha256(),
                    judge=_named(ours) if rescore else None,
                    command=command,
                )
                report = writer.close(config, metrics=kept.header.metrics)
            finally:
                writer.abandon()
        return BroughtIn(imported, kept, found is None, store.get(run_id), report)


def without_secrets(imported: Imported) -> Imported:
    """The items without what looks like a key, which a repository must not hold.

    Rollouts are cleaned as they are written. Raises `BadFile` for an id that looks like a key.
    """
    cleaner = Cleaner(Redactor.from_environment().once)
    found = [item for item in imported.items if cleaner.finds(item)]
    if not found:
        return imported
    odd = [item.id for item in found if cleaner.text(item.id) != item.id]
    if odd:
        raise BadFile(
            f"{len(odd)} ids look like keys: {cleaner.text(odd[0])}", hint="give them other ids"
        )
    items = tuple(cleaner.record(item) for item in imported.items)
    words = f"{len(found)} items held what looks like a key: masked"
    return replace(imported, items=items, notes=(*imported.notes, words))


def _named(judge: Judge | None) -> tuple[str, str]:
    return (judge.name, judge.id) if judge else (NO_JUDGE, NO_JUDGE)


async def _write(
    writer: RunWriter, imported: Imported, judge: Judge | None, world: Catalogue, *, rescore: bool
) -> None:
    items = {item.id: item for item in imported.items}
    try:
        for raw in imported.recorded():
            one = replace(raw, trajectory=writer.cleaned(raw.trajectory))
            item = items[one.item_id]
            if rescore:
                scored = await _rescored(one, item, world, judge)
                one = replace(one, findings=(), parts={})
            else:
                scored = as_recorded(one, imported.judge_id)
            writer.add(item, one, scored)
    finally:
        if judge is not None:
            await judge.close()


async def _rescored(one: Recorded, item: Item, world: Catalogue, judge: Judge | None) -> Scored:
    """The item's assertions and our judge, in place of what the file says."""
    if one.trajectory.errored:
        return Scored(None)
    verdict, error = None, None
    try:
        verdict = await judge.judge(item, one.trajectory, world) if judge else None
    except JudgeError as exc:
        error = f"judge: {exc}"
    assertions = check_assertions(item, one.trajectory, rubric_outcomes(verdict))
    judging = judging_of(verdict)
    if verdict is not None and item.assert_ and item.request.prompt is not None:
        silent = all(score is None for score in verdict.scores.values())
        verdict = None if silent else verdict  # as in `eval`: a bare prompt has no facts
    return Scored(verdict, assertions, error, judging)


def _judge(project: Project, name: str | None) -> Judge | None:
    """The named judge, by default the grounded one; None for `none`, assertions alone."""
    name = name or "grounded"
    if name == NO_JUDGE:
        return None
    found = project.config.judges.get(name)
    if found is None and name != "grounded":
        raise UnknownName.of("judge", name, {*project.config.judges, "grounded", NO_JUDGE})
    return open_judge(name, found or JudgeConfig(kind="grounded"), project)
