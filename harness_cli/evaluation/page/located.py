"""Where everything about one rollout lies in a run's journal: one scan, then reads by place.

What is kept is a few numbers a rollout; trajectories are read one at a time when they are shown.
"""

from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.journal import ItemRecord, TextRecord, TrajectoryRecord, VerdictRecord
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult, State, Verdict
from harness_cli.store.journal import Line, data_of, scan
from harness_cli.store.runs import Key, RunFolder

_item = msgspec.json.Decoder(ItemRecord).decode
_trajectory = msgspec.json.Decoder(TrajectoryRecord).decode
_verdict = msgspec.json.Decoder(VerdictRecord).decode
_text = msgspec.json.Decoder(TextRecord).decode
_key = msgspec.json.Decoder(Key).decode


class _Result(msgspec.Struct, frozen=True):
    state: State


class _Ended(msgspec.Struct, frozen=True):
    """The part of an item record that sorts it."""

    item: str
    result: _Result
    repeat: int = 0


class _TextId(msgspec.Struct, frozen=True):
    id: str


_ended = msgspec.json.Decoder(_Ended).decode
_text_id = msgspec.json.Decoder(_TextId).decode


@dataclass(slots=True)
class Places:
    """Offsets into a journal; of records that a resume made twice, the last."""

    items: dict[Key, int] = field(default_factory=dict)
    states: dict[Key, State] = field(default_factory=dict)
    trajectories: dict[Key, int] = field(default_factory=dict)
    verdicts: dict[Key, int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    notes: int = 0

    @classmethod
    def of(cls, run: RunFolder) -> "Places":
        """One scan of a journal, two of a run that was scored again.

        Raises `BadFile` at a damaged record (a torn end is left out).
        """
        places = cls()
        if not run.journal.exists():
            return places
        apart = run.rollouts != run.journal
        for line in scan(run.journal):
            places._result(line)
            if not apart:
                places._rollout(line)
        for line in scan(run.rollouts) if apart else ():
            places._rollout(line)
        return places

    def _result(self, line: Line) -> None:
        if line.kind == "verdict":
            self.verdicts[_key(line.data)] = line.offset
        elif line.kind == "item":
            ended = _ended(line.data)
            key = Key(ended.item, ended.repeat)
            self.items[key], self.states[key] = line.offset, ended.result.state

    def _rollout(self, line: Line) -> None:
        if line.kind == "trajectory":
            self.trajectories[_key(line.data)] = line.offset
        elif line.kind == "text":
            self.texts[_text_id(line.data).id] = line.offset

    def worst_first(self) -> list[Key]:
        """Finished rollouts: errored, failed, unscored, passed, each sorted by item and repeat."""
        order = {"errored": 0, "failed": 1, "unscored": 2, "passed": 3}
        return sorted(self.items, key=lambda key: (order[self.states[key]], key))


class JournalReader:
    """Reads records by place. A context manager: it holds the journal open."""

    def __init__(self, run: RunFolder, places: Places) -> None:
        self.places = places
        self._results = run.journal.open("rb")
        self._rollouts = run.rollouts.open("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._results.close()
        self._rollouts.close()

    def result(self, key: Key) -> ItemResult:
        """The line of the report."""
        return _item(_at(self._results, self.places.items[key])).result

    def trajectory(self, key: Key) -> Trajectory | None:
        """The rollout with its long texts as references; None where the journal has none."""
        offset = self.places.trajectories.get(key)
        return None if offset is None else _trajectory(_at(self._rollouts, offset)).trajectory

    def verdict(self, key: Key) -> Verdict | None:
        """What the judge said."""
        offset = self.places.verdicts.get(key)
        return None if offset is None else _verdict(_at(self._results, offset)).verdict

    def text(self, name: str) -> str:
        """The text that a message refers to."""
        if name not in self.places.texts:
            raise BadFile(f"the journal lacks the text `{name}` that a message refers to")
        return _text(_at(self._rollouts, self.places.texts[name])).text


def _at(file: IO[bytes], offset: int) -> bytes:
    file.seek(offset)
    data = data_of(file.readline())
    if data is None:
        raise BadFile(
            f"{Path(file.name).name}: the record at byte {offset} does not match its checksum",
            hint="the file changed while it was read: try again",
        )
    return data
