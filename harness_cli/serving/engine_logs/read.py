"""A log file → what was read of it: lines by the block, most of them by one pattern a kind."""

import re
from collections.abc import Iterable, Sequence
from itertools import compress, islice
from itertools import count as count_from
from pathlib import Path
from typing import Final

from harness_cli.errors import BadFile
from harness_cli.serving.engine_logs.lines import read_line
from harness_cli.serving.engine_logs.reading import Reading, Table
from harness_cli.serving.engine_logs.shapes import ANSWERED, Shape, pattern_of, shape_of

BLOCK: Final = 384
"""Lines that are read at a time: what fits the cache."""
MOST_SHAPES: Final = 16
"""A log that changes its lines more often is read line by line from there on."""
DECODE: Final = "Decode batch"
PREFILL: Final = "Prefill batch"
_STATUS: Final = re.compile("^" + ANSWERED, re.M)
_OURS: Final = re.compile(r" (listens on port|answered in) \d+")
"""What `harness serve` writes of our own engines."""


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
    if _OURS.search(reading.first_foreign):
        return "it is of this program's own server; --metrics URL/metrics reads its numbers"
    said = f"; it begins: {reading.first_foreign}" if reading.first_foreign else ""
    return f"no batch line, no start line in {reading.lines} lines{said}"


class Blocks:
    """Reads blocks of lines by all shapes met so far.

    Most blocks hold lines of one shape a kind: those are picked out by two words, and one pattern
    without alternatives reads them. What does not match as a whole goes the general way.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.shapes: list[Shape] = []
        self.pattern = pattern_of(())
        self._usual: dict[str, tuple[Shape, re.Pattern[str]]] = {}
        """By kind, the shape that was learnt last."""

    def read(self, start: int, lines: list[str]) -> None:
        """Lines whose first is number `start` of the log."""
        here: dict[str, list[bool]] = {
            mark: [mark in line for line in lines] for mark in (DECODE, PREFILL)
        }
        other = [not (a or b) for a, b in zip(here[DECODE], here[PREFILL], strict=True)]
        for mark, chosen in here.items():
            own = list(compress(lines, chosen))
            if own and not self._usual_lines(mark, compress(count_from(start), chosen), own):
                self._any(list(compress(count_from(start), chosen)), own)
                if mark is DECODE:  # a line of both kinds is read once
                    both = here[PREFILL]
                    here[PREFILL] = [b and not a for a, b in zip(chosen, both, strict=True)]
        rest = list(compress(lines, other))
        if not rest:
            return
        statuses = _STATUS.findall("".join(rest))
        if len(statuses) == len(rest):
            self.reading.answered(statuses, len(rest))
        else:
            self._any(list(compress(count_from(start), other)), rest)

    def _usual_lines(self, mark: str, numbers: Iterable[int], lines: list[str]) -> bool:
        """All of `lines` at once, where each has the usual shape; False, and none, where not."""
        if mark not in self._usual:
            return False
        shape, pattern = self._usual[mark]
        rows = pattern.findall("".join(lines))
        if len(rows) != len(lines):
            return False
        self.reading.add(shape, numbers, list(zip(*rows, strict=True)), len(rows))
        return True

    def _any(self, numbers: Sequence[int], lines: list[str]) -> None:
        """Lines of any shape, and what is no batch line; an entry may hold several."""
        texts = [line.removesuffix("\n").split("\n") for line in lines]
        numbers = [n for n, own in zip(numbers, texts, strict=True) for _ in own]
        columns = self._columns("\n".join(text for own in texts for text in own))
        at = 0
        for shape in self.shapes:
            own, here = columns[at : at + shape.width], columns[at]
            count = len(here) - here.count("")
            if count:
                self.reading.add(
                    shape, compress(numbers, here), [list(compress(c, here)) for c in own], count
                )
            at += shape.width
        statuses = columns[at]
        if answered := len(statuses) - statuses.count(""):
            self.reading.answered(statuses, answered)
        rest = columns[-1]
        if rest.count("") < len(rest):
            for number, text in zip(numbers, rest, strict=True):
                if text:
                    self._rest(number, text)

    def _columns(self, text: str) -> list[tuple[str, ...]]:
        """Group by group, of every line; new shapes are learnt, and the lines read again."""
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
                mark = DECODE if shape.decode else PREFILL
                self._usual[mark] = shape, re.compile("^" + shape.pattern, re.M)
                return True
        return False

    def _rest(self, number: int, raw: str) -> None:
        line = read_line(raw)
        if line.values is not None:
            self.reading.single(number, line)
        elif not raw.isspace():
            self.reading.rest(number, line)


def _read(reading: Reading, source: Iterable[str]) -> None:
    blocks, lines = Blocks(reading), iter(source)
    while block := list(islice(lines, BLOCK)):
        blocks.read(reading.lines + 1, block)
        reading.lines += len(block)
    reading.mangled.sort()
