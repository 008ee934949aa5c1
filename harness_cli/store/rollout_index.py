"""The rollouts of a run by item and repeat, each read when it is asked for."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness_cli.records.journal import TextRecord
from harness_cli.records.trajectory import Trajectory
from harness_cli.store.journal import read_at, scan
from harness_cli.store.runs import Key, RunFolder, with_texts

KEPT = 64
"""Long texts that are kept in memory: nearly all trajectories share one system prompt."""


class _Id(msgspec.Struct):
    id: str


_key = msgspec.json.Decoder(Key).decode
_id = msgspec.json.Decoder(_Id).decode
_text = msgspec.json.Decoder(TextRecord).decode


class RolloutIndex:
    """Where the last trajectory of every rollout lies, and the texts that they refer to.

    Raises `BadFile` for a damaged file, on opening and on reading.
    """

    def __init__(self, run: RunFolder) -> None:
        self._path = run.rollouts
        self._places: dict[Key, int] = {}
        texts: dict[str, int] = {}
        for line in scan(self._path):
            if line.kind == "trajectory":
                self._places[_key(line.data)] = line.offset
            elif line.kind == "text":
                texts[_id(line.data).id] = line.offset
        self._texts = _Texts(self._path, texts)

    def __len__(self) -> int:
        return len(self._places)

    def get(self, item: str, repeat: int = 0) -> Trajectory | None:
        """The rollout; None where the run has none."""
        place = self._places.get(Key(item, repeat))
        return None if place is None else with_texts(read_at(self._path, place), self._texts)


class _Texts(Mapping[str, str]):
    """Texts by id, read from the file; the last ones are kept."""

    def __init__(self, path: Path, places: dict[str, int]) -> None:
        self._path = path
        self._places = places
        self._kept: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._kept:
            self._kept[name] = _text(read_at(self._path, self._places[name])).text
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
