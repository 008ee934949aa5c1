"""A whole log as a table of its batch lines, and counts of everything else."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import compress, islice
from itertools import count as count_from
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness_cli.errors import BadFile
from harness_cli.serving.engine_logs.lines import ACCESS, Line, read_line
from harness_cli.serving.engine_logs.shapes import WANTED, Shape, label_of, pattern_of, shape_of

Floats = NDArray[np.float64]
Columns = Sequence[Iterable[str]]
BLOCK: Final = 512
"""Lines that are read at a time: what fits the cache."""
MOST_SHAPES: Final = 16
"""A log that changes its lines more often is read line by line from there on."""
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
    _days: dict[str, float] = field(default_factory=dict)
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
            values[:, WANTED.index(name)] = np.fromiter(map(float, column), np.float64, count)
        times, ranks = self._times, self._tags
        stamps, tags = list(stamps), list(tags)
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
        self.formats[shape.label] += count

    def _seconds(self, text: str) -> float:
        """As `seconds`, days remembered."""
        if len(text) != 19:
            return seconds(text)
        day = self._days.get(text[:10])
        if day is None:
            day = self._days[text[:10]] = seconds(text[:10] + " 00:00:00")
        try:
            return day + int(text[11:13]) * 3600 + int(text[14:16]) * 60 + int(text[17:])
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


def read_log(path: Path) -> tuple[Reading, Table]:
    """A log file, whatever else stands in it. Raises `BadFile` for one of another program."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return read_lines(file, str(path))
    except OSError as exc:
        raise BadFile(f"cannot read `{path}`: {exc.strerror}") from exc


def read_lines(source: Iterable[str], name: str) -> tuple[Reading, Table]:
    """Lines of a log, each with its line feed; raises `BadFile` where none is a server's."""
    reading = Reading(name)
    _read(reading, source)
    table = reading.table()
    if not len(table.line) and not reading.known and not reading.mangled:
        raise BadFile(f"`{name}` is no log of an SGLang server", hint=_hint(reading))
    return reading, table


def _hint(reading: Reading) -> str:
    if not reading.lines:
        return "it is empty"
    if "throughput:" in reading.first_foreign and "tokens/s" in reading.first_foreign:
        return "it looks like vLLM's; --metrics reads the numbers of its /metrics"
    said = f"; it begins: {reading.first_foreign}" if reading.first_foreign else ""
    return f"no batch line, no start line in {reading.lines} lines{said}"


class _Blocks:
    """Reads blocks of lines by all shapes met so far."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.shapes: list[Shape] = []
        self.pattern = pattern_of(())

    def read(self, start: int, lines: list[str]) -> None:
        """Lines whose first is number `start` of the log."""
        columns = self._columns(lines)
        at = 0
        for shape in self.shapes:
            own, here = columns[at : at + shape.width], columns[at]
            count = len(here) - here.count("")
            if count:
                numbers = compress(count_from(start), here)
                self.reading.add(shape, numbers, [compress(c, here) for c in own], count)
            at += shape.width
        statuses = columns[at]
        if answered := len(statuses) - statuses.count(""):
            self.reading.answered(statuses, answered)
        rest = columns[-1]
        if rest.count("") < len(rest):
            for number, text in enumerate(rest, start):
                if text:
                    self._rest(number, text)

    def _columns(self, lines: list[str]) -> list[tuple[str, ...]]:
        """Group by group, of every line; new shapes are learnt, and the block read again."""
        text = "".join(lines).removesuffix("\n")
        while True:
            columns = list(zip(*self.pattern.findall(text), strict=True))
            rest = columns[-1]
            whole = rest.count("") == len(rest) or len(self.shapes) >= MOST_SHAPES
            if whole or not self._learnt(filter(None, rest)):
                return columns

    def _learnt(self, lines: Iterable[str]) -> bool:
        for raw in lines:
            if " batch" not in raw:
                continue
            line = read_line(raw)
            shape = shape_of(raw, line) if line.values is not None else None
            if shape is not None and re.match(shape.pattern, raw):
                self.shapes.append(shape)
                self.pattern = pattern_of(self.shapes)
                return True
        return False

    def _rest(self, number: int, raw: str) -> None:
        line = read_line(raw)
        if line.values is not None:
            self.reading.single(number, line)
        elif not raw.isspace():
            self.reading.rest(number, line)


def _read(reading: Reading, source: Iterable[str]) -> None:
    blocks, lines = _Blocks(reading), iter(source)
    while block := list(islice(lines, BLOCK)):
        blocks.read(reading.lines + 1, block)
        reading.lines += len(block)


def seconds(text: str) -> float:
    """A time of the log in seconds; NaN for a time that is none."""
    try:
        # No zone is logged: as if it were UTC, so that no hour is missing or twice.
        return datetime.fromisoformat(text.replace(",", ".") + "+00:00").timestamp()
    except ValueError:
        return float("nan")
