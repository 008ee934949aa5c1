"""Run folders: what was asked (`run.json`), the journal, the two reports; and the shelf of them."""

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from harness_cli.errors import BadFile, UnknownName
from harness_cli.records.canonical import write_json
from harness_cli.records.journal import ItemRecord, TextRecord, TrajectoryRecord
from harness_cli.records.reader import read_json
from harness_cli.records.run import Report, RunConfig
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult
from harness_cli.store.journal import data_of, read_at, scan
from harness_cli.store.locks import Holder, holder_of

REF = "$text"
"""Key of a reference to a `TextRecord` in the content of a journaled message."""
ROLLOUTS = "rollouts.jsonl"
TEXTS = 64
"""How many texts a writer refers back to; a reader keeps twice as many (first in, first out)."""

T = TypeVar("T")


class Key(msgspec.Struct, frozen=True, order=True):
    """Names one rollout of a run."""

    item: str
    repeat: int = 0


class Place(NamedTuple):
    """Where the item record of one rollout lies in the journal; sorts by item, then repeat."""

    item: str
    repeat: int
    offset: int


_item = msgspec.json.Decoder(ItemRecord).decode
_key = msgspec.json.Decoder(Key).decode
_text = msgspec.json.Decoder(TextRecord).decode


class RunFolder:
    """One run. Reading works while it is being written and after it was killed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def id(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def journal(self) -> Path:
        """`journal.jsonl`."""
        return self.path / "journal.jsonl"

    @property
    def rollouts(self) -> Path:
        """Where the trajectories lie: the journal, or `rollouts.jsonl` in a run that was scored
        again, which is the journal of the run that made them."""
        taken = self.path / ROLLOUTS
        return taken if taken.exists() else self.journal

    @property
    def canonical(self) -> Path:
        """`report.canonical.json`: no clocks, pids or latencies, items sorted by id."""
        return self.path / "report.canonical.json"

    @property
    def report_file(self) -> Path:
        """`report.json`: everything but the items, which `results` streams."""
        return self.path / "report.json"

    @property
    def lock(self) -> Path:
        """The lock file of whoever writes this run."""
        return self.path / "lock"

    def config(self) -> RunConfig:
        """What was asked."""
        try:
            return read_json(self.path / "run.json", RunConfig, name=f"{self.id}/run.json")
        except BadFile as exc:
            hint = f"the run is damaged: move `{self.path}` out of the way"
            raise BadFile(str(exc), hint=hint) from exc

    def report(self) -> Report:
        """The report, without items. Raises `BadFile` when the run never wrote one."""
        if not self.report_file.exists():
            raise BadFile(
                f"run `{self.id}` has no report",
                hint=f"it did not end; `harness eval --resume {self.id}` goes on",
            )
        return read_json(self.report_file, Report, name=f"{self.id}/report.json")

    def writer(self) -> Holder | None:
        """The process that is writing this run now."""
        return holder_of(self.lock)

    def status(self) -> str:
        """`running`, what the report says (complete, interrupted, budget), or `killed`."""
        if self.writer() is not None:
            return "running"
        return self.report().status if self.report_file.exists() else "killed"

    def places(self) -> list[Place]:
        """Where every finished item lies, sorted; the last record of an item counts."""
        return sorted(Place(k.item, k.repeat, at) for k, at in self._last("item").items())

    def _last(self, kind: str, path: Path | None = None) -> dict[Key, int]:
        """Where the last record of a kind lies, by item: a resume may have made a second one."""
        path = path or self.journal
        if not path.exists():
            return {}
        return {_key(x.data): x.offset for x in scan(path) if x.kind == kind}

    def item_records(self, places: Sequence[Place] | None = None) -> Iterator[ItemRecord]:
        """Every finished item sorted by id and repeat, one at a time.

        Who has just written the journal knows the `places` and saves a scan.
        """
        places = self.places() if places is None else sorted(places)
        if not places:
            return
        with self.journal.open("rb", buffering=1 << 16) as file:
            for place in places:
                file.seek(place.offset)
                yield _item(data_of(file.readline()) or b"")

    def results(self) -> Iterator[ItemResult]:
        """Every finished item's result, sorted by item id and repeat, one at a time."""
        for record in self.item_records():
            yield record.result

    def result(self, item: str, repeat: int = 0) -> ItemResult:
        """One item's result. Raises `UnknownName` when the run has none."""
        places = self.places()
        for place in places:
            if (place.item, place.repeat) == (item, repeat):
                return _item(read_at(self.journal, place.offset)).result
        raise UnknownName.of("finished item", item, {p.item for p in places})

    def trajectories(self, wanted: Callable[[Key], bool] | None = None) -> Iterator[Trajectory]:
        """The last rollout of each item in the order in which they ended, one at a time.

        `wanted` chooses by item and repeat before anything large is decoded.
        """
        texts: dict[str, str] = {}
        last = self._last("trajectory", self.rollouts)
        if not last:
            return
        for line in scan(self.rollouts):
            if line.kind == "text":
                record = _text(line.data)
                texts.pop(record.id, None)
                texts[record.id] = record.text
            elif line.kind == "trajectory":
                key = _key(line.data)
                if last[key] == line.offset and (wanted is None or wanted(key)):
                    yield with_texts(line.data, texts)
                while len(texts) > 2 * TEXTS:
                    del texts[next(iter(texts))]

    def trajectory(self, item: str, repeat: int = 0) -> Trajectory:
        """The last rollout of one item. Raises `UnknownName` when the run has none."""
        found = deque(self.trajectories(Key(item, repeat).__eq__), maxlen=1)
        if not found:
            raise UnknownName.of("finished item", item, {p.item for p in self.places()})
        return found[0]


class RunStore:
    """The folder of all runs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def new_id(self) -> str:
        """An id nobody has: sorts by time to the millisecond, with a random end."""
        now = time.time()
        start = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        return f"{start}-{int(now % 1 * 1000):03d}{secrets.token_hex(2)}"

    def create(self, config: RunConfig) -> RunFolder:
        """A folder for a new run, with its `run.json`."""
        folder = self.path / config.id
        folder.mkdir(parents=True)
        write_json(folder / "run.json", config)
        return RunFolder(folder)

    def list(self) -> list[RunFolder]:
        """Every run, newest first."""
        if not self.path.is_dir():
            return []
        found = (RunFolder(f) for f in self.path.iterdir() if (f / "run.json").is_file())
        return sorted(found, key=lambda run: run.id, reverse=True)

    def get(self, name: str) -> RunFolder:
        """The run of that id, of an unambiguous beginning of it, or `latest`."""
        runs = self.list()
        if name == "latest" and runs:
            return runs[0]
        fits = [run for run in runs if run.id.startswith(name)]
        exact = [run for run in fits if run.id == name]
        if len(exact or fits) != 1 or not name:
            raise UnknownName.of("run", name, [run.id for run in (fits or runs)])
        return (exact or fits)[0]

    def newest(
        self,
        *,
        evalset: str | None = None,
        split: str | None = None,
        complete: bool = True,
        fits: Callable[[RunConfig], bool] | None = None,
    ) -> RunFolder:
        """The newest run that fits. Raises `UnknownName` when there is none."""
        for run in self.list():
            config = run.config()
            if config.only or evalset not in (None, config.evalset.name):
                continue
            if split not in (None, config.evalset.split) or (fits and not fits(config)):
                continue
            if not complete or run.status() == "complete":
                return run
        what = f" of `{evalset}`" if evalset else ""
        raise UnknownName(f"there is no finished run{what}", hint="`harness eval` makes one")


def with_texts(data: bytes, texts: Mapping[str, str]) -> Trajectory:
    """The trajectory of a record's JSON with its long texts put back.

    Raises `BadFile` for a text that is not there.
    """
    record = msgspec.json.decode(data, type=TrajectoryRecord)
    steps = tuple(
        msgspec.structs.replace(step, messages=tuple(_filled(m, texts) for m in step.messages))
        for step in record.trajectory.steps
    )
    return msgspec.structs.replace(record.trajectory, steps=steps)


def _filled(message: dict[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, dict) and REF in content:
        if content[REF] not in texts:
            raise BadFile(f"the journal lacks the text `{content[REF]}` that a message refers to")
        return {**message, "content": texts[content[REF]]}
    return message
