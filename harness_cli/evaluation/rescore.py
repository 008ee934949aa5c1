"""The rollouts of a run scored again, in one pass over its journal: nothing is asked of anybody.

What a judge said stands as long as judge and items are the same; assertions, metrics, states and
reports are made anew by the program that runs now. The old journal is `rollouts.jsonl` of the new
run: the same file under a second name where nothing can be added to it any more, else a copy.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from os import getpid
from typing import IO, Any

import msgspec

from harness_cli.errors import BadFile, Locked, UsageError
from harness_cli.evaluation.engine import Outcome
from harness_cli.evaluation.evalsets import Evalset, load_evalset
from harness_cli.evaluation.judging import judging_of, rubric_outcomes
from harness_cli.evaluation.plan import NO_JUDGE, EvalOptions, run_versions
from harness_cli.evaluation.results import item_result
from harness_cli.evaluation.summary import write_reports
from harness_cli.judges.assertions import check_assertions
from harness_cli.judges.outcome import Outcome as Decided
from harness_cli.records.item import Item
from harness_cli.records.journal import ItemRecord, NoteRecord, TrajectoryRecord, VerdictRecord
from harness_cli.records.run import RunConfig
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult, ItemResult, Verdict
from harness_cli.store.journal import Line, line_of, scan
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.runs import ROLLOUTS, Place, RunFolder, RunStore

BUFFER = 1 << 20
SAID = ("rescore", "reason", "command", "if_locked")
"""Options that go with `--rescore`."""


class _OldResult(msgspec.Struct, frozen=True):
    trajectory_sha256: str = ""
    assertions: tuple[AssertionResult, ...] = ()


class _Old(msgspec.Struct, frozen=True):
    """What of an item's record is not made again."""

    item: str
    result: _OldResult
    repeat: int = 0


_old = msgspec.json.Decoder(_Old).decode
_trajectory = msgspec.json.Decoder(TrajectoryRecord).decode
_verdict = msgspec.json.Decoder(VerdictRecord).decode
_encode = msgspec.json.Encoder().encode


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
    evalset = load_evalset(project, old.evalset.name, split=old.evalset.split, reason=reason)
    _refuse_changes(project, old, evalset)
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
        with ExitStack() as stack:
            stack.enter_context(locked(folder.lock, what=f"run {folder.id}", if_locked="fail"))
            return _written(source, folder, config, evalset)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise


def _written(source: RunFolder, folder: RunFolder, config: RunConfig, evalset: Evalset) -> Outcome:
    items = evalset.items.among(config.only).first(config.limit)
    with folder.journal.open("wb", buffering=BUFFER) as file:
        scorer = Scorer(Window(iter(items), config.repeat), file)
        scorer.note(source)
        for line in scan(source.journal):
            scorer.take(line)
        file.flush()
        os.fsync(file.fileno())
    planned = len(items) * config.repeat
    _take_over(source, folder)
    report = write_reports(
        folder,
        planned=planned,
        status="complete" if len(scorer.places) == planned else "interrupted",
        metrics=evalset.header.metrics,
        places=[Place(item, repeat, at) for (item, repeat), at in scorer.places.items()],
    )
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
            hint="`harness eval` judges anew; votes that still hold come from the cache",
        )


def _judge_id(project: Project, old: RunConfig) -> str:
    from harness_cli.judges.open import open_judge
    from harness_cli.records.config import JudgeConfig

    config = project.config.judges.get(old.judge)
    if config is None and old.judge != "grounded":
        return "gone"
    return open_judge(old.judge, config or JudgeConfig(kind="grounded"), project).id


@dataclass(slots=True)
class Window:
    """The items of an evalset by id, read on as they are asked for.

    A journal has them nearly in the order of the file, so few wait here at a time: those that are
    not finished, not there, or broke and may come again.
    """

    source: Iterator[Item]
    repeats: int
    waiting: dict[str, Item] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    def find(self, item_id: str) -> Item:
        """The item. Raises `BadFile` for a record of an item that the run does not cover."""
        while item_id not in self.waiting:
            item = next(self.source, None)
            if item is None:
                raise BadFile(
                    f"the journal has a result for `{item_id}`, which is not among the run's items",
                    hint="the journal is not this run's: bring the right one back",
                )
            self.waiting[item.id] = item
        return self.waiting[item_id]

    def done(self, item_id: str) -> None:
        """One rollout of it ended well; after the last one it is let go."""
        left = self.left.get(item_id, self.repeats) - 1
        if left > 0:
            self.left[item_id] = left
        else:
            self.left.pop(item_id, None)
            self.waiting.pop(item_id, None)


class Scorer:
    """Takes a journal line by line and writes another one with new results."""

    def __init__(self, items: Window, file: IO[bytes]) -> None:
        self.places: dict[tuple[str, int], int] = {}
        """Where the item records lie in what was written."""
        self._items = items
        self._file = file
        self._size = 0
        self._trajectories: dict[tuple[str, int], Trajectory] = {}
        self._verdicts: dict[tuple[str, int], VerdictRecord] = {}

    def note(self, source: RunFolder) -> None:
        """The first record: where all this comes from."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._append(NoteRecord(event="rescored", at=now, pid=getpid(), detail={"run": source.id}))

    def take(self, line: Line) -> None:
        """One record of the old journal."""
        if line.kind == "trajectory":
            record = _trajectory(line.data)
            self._trajectories[record.item, record.repeat] = record.trajectory
        elif line.kind == "verdict":
            verdict = _verdict(line.data)
            self._verdicts[verdict.item, verdict.repeat] = verdict
        elif line.kind == "item":
            self._score(_old(line.data))

    def _score(self, old: _Old) -> None:
        key = (old.item, old.repeat)
        trajectory = self._trajectories.pop(key, None)
        said = self._verdicts.pop(key, None)
        if trajectory is None:
            raise BadFile(f"the journal has a result for `{old.item}` and no trajectory")
        verdict = marked(said.verdict) if said and said.verdict else None
        error = said.error if said else None
        result = scored(self._items.find(old.item), trajectory, verdict, error, old.result)
        if result.state != "errored":
            self._items.done(old.item)
        self._append(VerdictRecord(item=old.item, repeat=old.repeat, verdict=verdict, error=error))
        self.places[key] = self._size
        self._append(ItemRecord(item=old.item, repeat=old.repeat, result=result))

    def _append(self, record: Any) -> None:
        raw = line_of(_encode(record))
        self._file.write(raw)
        self._size += len(raw)


def marked(verdict: Verdict) -> Verdict:
    """The verdict as one that was taken over: every vote of it cost nothing this time."""
    votes = tuple(msgspec.structs.replace(vote, cached=True) for vote in verdict.votes)
    return msgspec.structs.replace(verdict, cached=True, votes=votes)


def scored(
    item: Item,
    trajectory: Trajectory,
    verdict: Verdict | None,
    error: str | None,
    old: _OldResult,
) -> ItemResult:
    """The line of the report; a rubric that a panel decided keeps what was decided."""
    # Where assertions decided alone the verdict was not kept, but what it made of the rubrics was.
    rubrics = {a.rubric: Decided(a.passed, a.reason) for a in old.assertions if a.rubric}
    rubrics |= rubric_outcomes(verdict)
    assertions = () if trajectory.errored else check_assertions(item, trajectory, rubrics)
    result = item_result(
        item,
        trajectory,
        verdict,
        assertions,
        judge_error=error,
        timed=False,
        digest=old.trajectory_sha256,
    )
    judging = judging_of(verdict)
    return msgspec.structs.replace(result, judging=judging) if judging else result


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
