"""Lessons into tokens with labels, in as many processes as there are cores.

A worker reads template and tokenizer once; what it sends back is rows or the reason why there is
none. The order of the rows is that of the lessons, whatever the number of processes.
"""

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Sized
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from harness_cli.errors import MaskError
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.training.segments import segments
from harness_cli.training.students import Lesson
from harness_cli.training.tokens import FILE, Tokenizer, TokenRow, token_row

CHUNK = 64
"""Lessons that travel to a worker at a time."""
AHEAD = 3
"""Chunks a process that are under way at a time."""
WORTH_IT = 256
"""Lessons below which starting processes costs more than it saves."""


class Order(NamedTuple):
    """A lesson with its tools, and ids that a server sampled for its turns."""

    lesson: Lesson
    tools: Sequence[dict[str, Any]] | None
    sampled: dict[int, tuple[int, ...]] | None = None


class Masked(NamedTuple):
    """A lesson as tokens."""

    row: TokenRow
    method: str
    same_context: bool
    """Every trained turn was shown to its policy as it stands in the row."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Where template and tokenizer lie: what a worker is started with."""

    template: Path
    tokenizer: Path

    def open(self) -> tuple[ChatTemplate, Tokenizer]:
        """Both, read. The tokenizer's folder may hold the special tokens of a template file."""
        template = ChatTemplate.read(self.template)
        if self.template.is_file() and self.tokenizer.is_dir():
            template = template.with_tokens_of(self.tokenizer)
        return template, _read(self.tokenizer, _stamp(self.tokenizer))


def _stamp(path: Path) -> tuple[int, int]:
    """What changes with a tokenizer's file; nothing where there is none, which reading tells."""
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        return 0, 0
    found = file.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=2)
def _read(path: Path, _: tuple[int, int]) -> Tokenizer:
    """A tokenizer is read once: a large one takes a third of a second, and lessons come one by
    one."""
    return Tokenizer.read(path)


def masked(template: ChatTemplate, tokenizer: Tokenizer, order: Order) -> Masked | str:
    """One lesson as tokens, or why it cannot be masked."""
    lesson = order.lesson
    try:
        found = segments(
            template,
            lesson.messages,
            order.tools,
            turns=lesson.trained,
            unfinished=lesson.unfinished,
        )
        row = token_row(tokenizer, found, sampled=order.sampled)
    except MaskError as exc:
        return str(exc)
    spans = found.spans
    if not all(span.closed for span in spans if not lesson.unfinished):
        return f"template `{template.name}` writes no end token into the turn"
    return Masked(row, found.method, all(span.same_context for span in spans))


def mask_all(
    tools: Tools, orders: Iterable[Order], *, processes: int = 1, count: int | None = None
) -> Iterator[Masked | str]:
    """Every lesson as tokens, in order.

    `orders` are read as they are needed, no more than a few chunks a process ahead; `count` says
    how many there are, where they have no length.
    """
    if count is None:
        count = len(orders) if isinstance(orders, Sized) else WORTH_IT
    if processes <= 1 or count < WORTH_IT:
        template, tokenizer = tools.open()
        yield from (masked(template, tokenizer, order) for order in orders)
        return
    # A forked child of a process with threads may hang; spawned ones start clean.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_start, initargs=(tools,)
    ) as pool:
        chunks = _chunks(iter(orders))
        under_way = deque(pool.submit(_chunk, c) for c in islice(chunks, AHEAD * processes))
        while under_way:
            yield from under_way.popleft().result()
            under_way.extend(pool.submit(_chunk, c) for c in islice(chunks, 1))


def _chunks(orders: Iterator[Order]) -> Iterator[list[Order]]:
    while chunk := list(islice(orders, CHUNK)):
        yield chunk


_OPEN: list[tuple[ChatTemplate, Tokenizer]] = []
"""Of a worker process: filled once when it starts."""


def _start(tools: Tools) -> None:
    _OPEN[:] = [tools.open()]


def _chunk(orders: Sequence[Order]) -> list[Masked | str]:
    template, tokenizer = _OPEN[0]
    return [masked(template, tokenizer, order) for order in orders]
