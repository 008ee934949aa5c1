"""Rollouts replayed by as many processes as there are cores: each takes a stretch of them."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from harness_cli.evaluation.score_parts import cores

LEAST = 256
"""Rollouts that are worth a process: a quarter of a second of a judge that is code."""
MOST = 8
Stretch = Sequence[tuple[int, str, int]]
"""Where each rollout lies, its item and its repeat."""
Made = TypeVar("Made", bound=msgspec.Struct)


def in_parts(todo: Stretch, work: Callable[[Stretch], Made]) -> list[Made]:
    """What `work` makes of stretches of `todo`, in order; this process takes the first one itself.

    A stretch whose process failed is done again here, so that its error is raised. Where threads
    run none is started: a copy of this process would hold their locks for ever.
    """
    count = min(cores(), MOST, len(todo) // LEAST)
    if count < 2 or threading.active_count() > 1:
        return [work(todo)]
    ends = [len(todo) * part // count for part in range(count + 1)]
    first, *others = [todo[ends[part] : ends[part + 1]] for part in range(count)]
    with _children(others, work) as children:
        made = [work(first)]
        for stretch, (child, said) in zip(others, children.items(), strict=True):
            with os.fdopen(said, "rb") as file:
                data = file.read()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            children[child] = -1
            made.append(work(stretch) if code else msgspec.msgpack.decode(data, type=type(made[0])))
    return made


@contextmanager
def _children(
    stretches: Sequence[Stretch], work: Callable[[Stretch], Made]
) -> Iterator[dict[int, int]]:
    """Process → where to read what it made, -1 once it was waited for; none outlives the block."""
    children: dict[int, int] = {}
    try:
        for stretch in stretches:
            child, said = _start(stretch, work)
            children[child] = said
        yield children
    finally:
        for child, said in children.items():
            if said >= 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _start(stretch: Stretch, work: Callable[[Stretch], Made]) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    code = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as file:
            file.write(msgspec.msgpack.encode(work(stretch)))
        code = 0
    finally:
        os._exit(code)  # neither the caller's cleaning up nor its buffers are the child's
