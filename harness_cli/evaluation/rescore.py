"""The rollouts of a run scored again, in one pass over its journal: nothing is asked of anybody.

What a judge said stands as long as judge and items are the same; assertions, metrics, states and
reports are made anew by the program that runs now. The old journal is `rollouts.jsonl` of the new
run: the same file under a second name where nothing can be added to it any more, else a copy.
"""

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields
from datetime import UTC, datetime

import msgspec

from harness_cli.errors import Locked, UsageError
from harness_cli.evaluation.engine import Outcome
from harness_cli.evaluation.evalsets import ITEMS, Evalset, ItemStream, load_evalset, load_header
from harness_cli.evaluation.plan import NO_JUDGE, EvalOptions, run_versions
from harness_cli.evaluation.score_parts import Parts, parts_of
from harness_cli.evaluation.scorer import Scorer, Window
from harness_cli.evaluation.summary import write_reports
from harness_cli.evaluation.survey import state_of
from harness_cli.evaluation.uncollected import uncollected
from harness_cli.evaluation.under_map import under
from harness_cli.harness.load import load_state
from harness_cli.records.run import RunConfig
from harness_cli.store.journal import scan
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.runs import ROLLOUTS, Place, RunFolder, RunStore

BUFFER = 1 << 20
SAID = ("rescore", "reason", "command", "if_locked")
"""Options that go with `--rescore`."""


def rescore(
    project: Project, source: RunFolder, *, reason: str | None = None, command: Sequence[str] = ()
) -> Outcome:
    """A new run with the trajectories and verdicts of `source`, scored and reported anew.

    Raises `Locked` while `source` is being written, `UsageError` where its verdicts do not hold for
    the items or the judge as they are now, `BadFile` for a damaged journal. Whatever ends it early
    leaves no run behind.
    """
    if source.writer() is not None:
        raise Locked(f"run `{source.id}` is still being written", hint="score it when it has ended")
    if not source.journal.exists():
        raise UsageError(f"run `{source.id}` has no journal: there is nothing to score")
    old = source.config()
    if old.rescored_of is not None:
        raise UsageError(
            f"run `{source.id}` was itself scored again", hint=f"--rescore {old.rescored_of}"
        )
    with uncollected(), ExitStack() as stack:

        def parts_with(items: ItemStream) -> Parts | None:
            made = parts_of(source.journal, lambda: Window(iter(items), old.repeat))
            return stack.enter_context(made)

        # A large run is scored at once, by items as they lie there: whether they are the run's
        # shows while the children work, and what they made is thrown away where not.
        early = _unchecked(project, old)
        parts = None if early is None else parts_with(early)
        made_in = old.harness_ref or old.harness_commit
        evalset = load_evalset(
            project, old.evalset.name, split=old.evalset.split, reason=reason, harness=made_in
        )
        if old.augmentation is not None:
            evalset = under(evalset, load_state(project, made_in), old.augmentation)
        _refuse_changes(project, old, evalset)
        items = evalset.items.among(old.only).first(old.limit)
        if early is None or early.state != items.state:
            next(iter(items), None)  # so that a sealed split is opened, and logged, once
            parts = parts_with(items)
        return _rescored(project, source, old, evalset, items, parts, command)


def _rescored(
    project: Project,
    source: RunFolder,
    old: RunConfig,
    evalset: Evalset,
    items: ItemStream,
    parts: Parts | None,
    command: Sequence[str],
) -> Outcome:
    store = RunStore(project.runs)
    config = msgspec.structs.replace(
        old,
        id=store.new_id(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        command=tuple(command),
        versions=run_versions(),
        fresh=False,
        rescored_of=source.id,
    )
    folder = store.create(config)
    try:
        with locked(folder.lock, what=f"run {folder.id}", if_locked="fail"):
            return _written(source, folder, config, evalset, items, parts)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise


def _unchecked(project: Project, old: RunConfig) -> ItemStream | None:
    """The run's items as they lie there; None where they first have to be opened, picked or carried
    over to a state."""
    header = load_header(project, old.evalset.name)
    split = old.evalset.split
    path = project.evalsets / header.name / ITEMS
    changed = old.augmentation is not None or header.states is not None or old.only
    if changed or split in header.seal.splits or not path.is_file():
        return None
    return ItemStream(path, split, old.evalset.n, state_of(path)).first(old.limit)


def _written(
    source: RunFolder,
    folder: RunFolder,
    config: RunConfig,
    evalset: Evalset,
    items: ItemStream,
    parts: Parts | None,
) -> Outcome:
    planned = len(items) * config.repeat
    with folder.journal.open("wb", buffering=BUFFER) as file:
        scorer = Scorer(Window(iter(items), config.repeat), file)
        scorer.note(source)
        if parts is None or not parts.join(scorer):
            for line in scan(source.journal):
                scorer.take(line)
        file.flush()
        with ThreadPoolExecutor(1) as beside:
            # The reports say nothing of when the journal reached the disk, so they need not wait.
            synced = beside.submit(os.fsync, file.fileno())
            _take_over(source, folder)
            report = write_reports(
                folder,
                planned=planned,
                status="complete" if len(scorer.places) == planned else "interrupted",
                metrics=evalset.header.metrics,
                places=[Place(item, repeat, at) for (item, repeat), at in scorer.places.items()],
                whole=scorer.whole,
            )
            synced.result()
    return Outcome(folder, report, None if report.status == "complete" else "interrupted")


def _take_over(source: RunFolder, folder: RunFolder) -> None:
    """Give the new run the rollouts. A run that may be resumed would go on writing into them."""
    target = folder.path / ROLLOUTS
    final = source.report_file.exists() and source.report().status == "complete"
    if final and not source.report().counts["errored"]:
        try:
            os.link(source.rollouts, target)
            return
        except OSError:
            pass  # another device, or a file system without second names
    shutil.copyfile(source.rollouts, target)


def _refuse_changes(project: Project, old: RunConfig, evalset: Evalset) -> None:
    now = evalset.ref
    if (now.digest, now.catalogue_digest) != (old.evalset.digest, old.evalset.catalogue_digest):
        raise UsageError(
            f"`{now.name}` or its catalogue changed since run `{old.id}`: what its judge said may "
            "no longer hold",
            hint="`harness eval` asks anew; git has the items the run was made with",
        )
    if old.judge == NO_JUDGE or old.imported is not None:
        return
    judge = _judge_id(project, old)
    if judge != old.judge_id:
        raise UsageError(
            f"judge `{old.judge}` is {judge} now and was {old.judge_id} in run `{old.id}`: its "
            "verdicts no longer hold",
            hint=f"`harness eval --rescore {old.id} --judge {old.judge}` judges them anew, asks no "
            "policy; votes that still hold come from the cache",
        )


def _judge_id(project: Project, old: RunConfig) -> str:
    from harness_cli.judges.open import open_judge
    from harness_cli.records.config import JudgeConfig

    config = project.config.judges.get(old.judge)
    if config is None and old.judge != "grounded":
        return "gone"
    return open_judge(old.judge, config or JudgeConfig(kind="grounded"), project).id


def rescore_with(project: Project, source: RunFolder, options: EvalOptions) -> Outcome:
    """`rescore` for a command: what could change nothing about rollouts that are made is refused.

    Raises `UsageError` naming those options.
    """
    given = [
        f.name
        for f in fields(options)
        if f.name not in SAID and getattr(options, f.name) != getattr(EvalOptions(), f.name)
    ]
    if given:
        raise UsageError(
            f"--rescore takes the rollouts of `{source.id}` as they are: "
            f"{', '.join(given)} has no say",
            hint="leave it out, or start a new run without --rescore",
        )
    return rescore(project, source, reason=options.reason, command=options.command)
