"""What was read of a log: a table of its batch lines, and counts of everything else."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness_cli.serving.engine_logs.lines import ACCESS, Line
from harness_cli.serving.engine_logs.shapes import (
    WANTED,
    Shape,
    label_of,
)

Floats = NDArray[np.float64]
Columns = Sequence[Sequence[str]]
TIMES: Final = 65_536
"""Times that are remembered; many lines have the same."""
SHOWN: Final = 8
CAPACITY: Final = re.compile(r"(\w+)=(\d+)(?![\d.])")
OPTION: Final = re.compile(
    r"\b(model_path|served_model_name|tp_size|dp_size|max_running_requests"
    r"|speculative_algorithm|speculative_num_steps|speculative_eagle_topk"
    r"|speculative_num_draft_tokens|speculative_accept_threshold_single"
    r"|speculative_accept_threshold_acc|decode_log_interval)=('[^']*'|[^,)\s]+)"
)
_LIST: Final = msgspec.json.Decoder(list[float]).decode
RETRACTED: Final = re.compile(r"#retracted_reqs: (\d+)")


@dataclass(slots=True)
class Table:
    """Batch lines in the order of the log; one row each, NaN where a line does not say."""

    line: NDArray[np.int64]
    at: Floats
    """Seconds of the log's own clock."""
    rank: NDArray[np.int64]
    """Index into `Reading.ranks`."""
    decode: NDArray[np.bool_]
    values: Floats
    """(n, len(WANTED))."""

    def column(self, name: str) -> Floats:
        """One series."""
        return np.asarray(self.values[:, WANTED.index(name)])


@dataclass(slots=True)
class Reading:
    """What was read, while it is read."""

    name: str
    lines: int = 0
    other: int = 0
    foreign: int = 0
    mangled: list[int] = field(default_factory=list)
    ranks: dict[str, int] = field(default_factory=dict)
    formats: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    capacity: dict[str, int] = field(default_factory=dict)
    server: dict[str, str] = field(default_factory=dict)
    retractions: int = 0
    retracted: int = 0
    ready: int = 0
    health_failures: int = 0
    known: int = 0
    """Lines that only this server writes."""
    first_foreign: str = ""
    _times: dict[str, float] = field(default_factory=dict)
    _minutes: dict[str, float] = field(default_factory=dict)
    _tags: dict[str, int] = field(default_factory=dict)
    _parts: list[Table] = field(default_factory=list)

    def table(self) -> Table:
        """All batch lines, in the order of the log."""
        empty = Table(
            np.empty(0, np.int64),
            np.empty(0),
            np.empty(0, np.int64),
            np.empty(0, np.bool_),
            np.empty((0, len(WANTED))),
        )
        parts = self._parts or [empty]
        line = np.concatenate([p.line for p in parts])
        order = np.argsort(line, kind="stable")
        return Table(
            line[order],
            np.concatenate([p.at for p in parts])[order],
            np.concatenate([p.rank for p in parts])[order],
            np.concatenate([p.decode for p in parts])[order],
            np.concatenate([p.values for p in parts])[order],
        )

    def add(self, shape: Shape, numbers: Iterable[int], columns: Columns, count: int) -> None:
        """`count` lines of one shape; its columns: times, tags, then the numbers as texts."""
        stamps, tags, *texts = columns
        values = np.full((count, len(WANTED)), np.nan)
        for name, column in zip(shape.names, texts, strict=True):
            values[:, WANTED.index(name)] = numbers_of(column)
        times, ranks = self._times, self._tags
        one_rank = tags.count(tags[0]) == count
        for text in set(stamps):
            if text not in times:
                times[text] = self._seconds(text)
        for text in set(tags[:1] if one_rank else tags):
            if text not in ranks:
                ranks[text] = self.ranks.setdefault(text.strip(), len(self.ranks))
        self._parts.append(
            Table(
                np.fromiter(numbers, np.int64, count),
                np.fromiter(map(times.__getitem__, stamps), np.float64, count),
                np.full(count, ranks[tags[0]])
                if one_rank
                else np.fromiter(map(ranks.__getitem__, tags), np.int64, count),
                np.full(count, shape.decode),
                values,
            )
        )
        if len(times) > TIMES:
            times.clear()
            self._minutes.clear()
        self.formats[shape.label] += count

    def _seconds(self, text: str) -> float:
        """As `seconds`, minutes remembered."""
        if len(text) != 19:
            return seconds(text)
        minute = self._minutes.get(text[:17])
        if minute is None:
            minute = self._minutes[text[:17]] = seconds(text[:17] + "00")
        try:
            return minute + int(text[17:])
        except ValueError:
            return float("nan")

    def answered(self, statuses: Sequence[str], count: int) -> None:
        """Access lines: the status of each, empty for other lines."""
        self.other += count
        self.statuses.update(filter(None, statuses))

    def single(self, number: int, line: Line) -> None:
        """One batch line that has no shape."""
        values = line.values or {}
        names = tuple(n for n in WANTED if n in values)
        row = (line.at or "", line.rank, *(repr(values[n]) for n in names))
        shape = Shape("", names, line.kind == "decode", label_of(line))
        self.add(shape, [number], [[text] for text in row], 1)

    def rest(self, number: int, line: Line) -> None:
        """A line that is no batch."""
        if line.kind == "mangled":
            self.mangled.append(number)
        elif line.kind == "foreign":
            self.foreign += 1
            self.first_foreign = self.first_foreign or line.text.strip()[:100]
        else:
            self.other += 1
            self._told(line.text)

    def _told(self, text: str) -> None:
        access = ACCESS.match(text) if "HTTP/" in text else None
        if access is not None:
            self.statuses[access.group(1) or "cut off"] += 1
        elif "server_args=" in text:
            self.server |= {k: v.strip("'") for k, v in OPTION.findall(text)}
            self.known += 1
        elif text.startswith("max_total_num_tokens="):
            self.capacity |= {k: int(v) for k, v in CAPACITY.findall(text)}
            self.known += 1
        elif found := RETRACTED.search(text):
            self.retractions += 1
            self.retracted += int(found.group(1))
            self.known += 1
        elif "The server is fired up and ready to roll" in text:
            self.ready += 1
            self.known += 1
        elif text.startswith("Health check failed"):
            self.health_failures += 1
            self.known += 1


def numbers_of(texts: Sequence[str]) -> Floats:
    """Texts of digits as numbers: read as one JSON list, at half the cost of one by one.

    What JSON does not allow (`007`) goes one by one.
    """
    try:
        return np.array(_LIST(f"[{','.join(texts)}]"))
    except msgspec.DecodeError:
        return np.fromiter(map(float, texts), np.float64, len(texts))


def seconds(text: str) -> float:
    """A time of the log in seconds; NaN for a time that is none."""
    try:
        # No zone is logged: as if it were UTC, so that no hour is missing or twice.
        return datetime.fromisoformat(text.replace(",", ".") + "+00:00").timestamp()
    except ValueError:
        return float("nan")
