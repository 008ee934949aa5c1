"""Rollouts that were made, scored again from a journal, line by line."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import getpid
from pathlib import Path
from typing import IO, Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.judging import judging_of, rubric_outcomes
from harness_cli.evaluation.outline import named, outline_of
from harness_cli.evaluation.part_sums import Collected, Whole
from harness_cli.evaluation.results import item_result
from harness_cli.evaluation.summary import canonical_line
from harness_cli.judges.assertions import check_assertions
from harness_cli.judges.outcome import Outcome as Decided
from harness_cli.records.item import Item
from harness_cli.records.journal import ItemRecord, NoteRecord, VerdictRecord
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import AssertionResult, ItemResult, Verdict
from harness_cli.store.journal import Line, line_of
from harness_cli.store.runs import RunFolder


class OldResult(msgspec.Struct, frozen=True):
    """What of an item's result is taken over: the digest, and rubrics that a panel decided."""

    trajectory_sha256: str = ""
    assertions: tuple[AssertionResult, ...] = ()


class OldItem(msgspec.Struct, frozen=True):
    """What of an item's record is not made again."""

    item: str
    result: OldResult
    repeat: int = 0


_old_item = msgspec.json.Decoder(OldItem).decode
_verdict = msgspec.json.Decoder(VerdictRecord).decode
_encode = msgspec.json.Encoder().encode


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

    def __init__(
        self,
        items: Window,
        file: IO[bytes],
        *,
        part: bool = False,
    ) -> None:
        self.places: dict[tuple[str, int], int] = {}
        """Where the item records lie in what was written."""
        self.trajectories: dict[tuple[str, int], bytes] = {}
        self.verdicts: dict[tuple[str, int], VerdictRecord] = {}
        """Records whose item has not come yet."""
        self.orphans: list[bytes] = []
        """Of a part of a journal: item records whose trajectory stands before it."""
        self.size = 0
        self.collected: Collected | None = None
        """Takes the results that reports are to be made from."""
        self.whole: Whole | None = None
        """What all items add up to, where several processes added them up."""
        self._part = part
        self._items = items
        self._file = file

    def note(self, source: RunFolder) -> None:
        """The first record: where all this comes from."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._append(NoteRecord(event="rescored", at=now, pid=getpid(), detail={"run": source.id}))

    def take(self, line: Line) -> None:
        """One record of the old journal."""
        if line.kind == "trajectory":
            self.trajectories[named(line.data)] = line.data
        elif line.kind == "verdict":
            verdict = _verdict(line.data)
            self.verdicts[verdict.item, verdict.repeat] = verdict
        elif line.kind == "item":
            self.score(line.data)

    def score(self, record: bytes) -> None:
        """One item record, its trajectory and verdict being known."""
        old = _old_item(record)
        key = (old.item, old.repeat)
        data = self.trajectories.pop(key, None)
        if data is None and self._part:
            self.orphans.append(record)
            return
        said = self.verdicts.pop(key, None)
        if data is None:
            raise BadFile(f"the journal has a result for `{old.item}` and no trajectory")
        verdict = marked(said.verdict) if said and said.verdict else None
        error = said.error if said else None
        item = self._items.find(old.item)
        result = scored(item, outline_of(data), verdict, error, old.result)
        if result.state != "errored":
            self._items.done(old.item)
        self._append(VerdictRecord(item=old.item, repeat=old.repeat, verdict=verdict, error=error))
        self.places[key] = self.size
        self._append(ItemRecord(item=old.item, repeat=old.repeat, result=result))
        if self.collected is not None:
            self.collected.add(key, result, canonical_line(result))

    def _append(self, record: Any) -> None:
        raw = line_of(_encode(record))
        self._file.write(raw)
        self.size += len(raw)

    def join(self, path: Path, places: Iterable[tuple[str, int, int]]) -> None:
        """Take over what a scorer of a part wrote, and where its item records lie."""
        for item, repeat, at in places:
            self.places[item, repeat] = self.size + at
        with path.open("rb") as file:
            shutil.copyfileobj(file, self._file, 1 << 20)
            self.size += file.tell()


def marked(verdict: Verdict) -> Verdict:
    """The verdict as one that was taken over: every vote of it cost nothing this time."""
    votes = tuple(msgspec.structs.replace(vote, cached=True) for vote in verdict.votes)
    return msgspec.structs.replace(verdict, cached=True, votes=votes)


def scored(
    item: Item,
    trajectory: Trajectory,
    verdict: Verdict | None,
    error: str | None,
    old: OldResult,
) -> ItemResult:
    """The line of the report; a rubric that a panel decided keeps what was decided."""
    assertions: tuple[AssertionResult, ...] = ()
    if item.assert_ and not trajectory.errored:
        # Where assertions decide alone no verdict was kept, but what it made of rubrics was.
        rubrics = {a.rubric: Decided(a.passed, a.reason) for a in old.assertions if a.rubric}
        assertions = check_assertions(item, trajectory, {**rubrics, **rubric_outcomes(verdict)})
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
