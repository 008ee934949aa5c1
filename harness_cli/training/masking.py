"""Lessons into tokens with labels, in as many processes as there are cores.

A worker reads template and tokenizer once; what it sends back is rows or the reason why there is
none. The order of the rows is that of the lessons, whatever the number of processes.
"""

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness_cli.errors import MaskError
from harness_cli.models.chat_template import ChatTemplate
from harness_cli.training.segments import segments
from harness_cli.training.students import Lesson
from harness_cli.training.tokens import Tokenizer, TokenRow, token_row

CHUNK = 64
"""Lessons that travel to a worker at a time."""
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
        return template, Tokenizer.read(self.tokenizer)


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
    tools: Tools, orders: Sequence[Order], *, processes: int = 1
) -> Iterator[Masked | str]:
    """Every lesson as tokens, in order."""
    if processes <= 1 or len(orders) < WORTH_IT:
        template, tokenizer = tools.open()
        yield from (masked(template, tokenizer, order) for order in orders)
        return
    # A forked child of a process with threads may hang; spawned ones start clean.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_start, initargs=(tools,)
    ) as pool:
        for part in pool.map(_chunk, _chunks(orders)):
            yield from part


def _chunks(orders: Sequence[Order]) -> Iterable[Sequence[Order]]:
    return (orders[at : at + CHUNK] for at in range(0, len(orders), CHUNK))


_OPEN: list[tuple[ChatTemplate, Tokenizer]] = []
"""Of a worker process: filled once when it starts."""


def _start(tools: Tools) -> None:
    _OPEN[:] = [tools.open()]


def _chunk(orders: Sequence[Order]) -> list[Masked | str]:
    template, tokenizer = _OPEN[0]
    return [masked(template, tokenizer, order) for order in orders]
