"""Rollouts replayed by as many processes as there are cores: each takes a stretch of them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryFile
from typing import IO, TypeVar

import msgspec

from harness_cli.store.children import Children, worth

LEAST = 256
"""Rollouts that are worth a process: a quarter of a second of a judge that is code."""
Stretch = Sequence[tuple[int, str, int]]
"""Where each rollout lies, its item and its repeat."""
Made = TypeVar("Made", bound=msgspec.Struct)


def in_parts(todo: Stretch, work: Callable[[Stretch], Made]) -> list[Made]:
    """What `work` makes of stretches of `todo`, in order; this process takes the first one itself.

    A stretch whose process failed is done again here, so that its error is raised.
    """
    count = worth(len(todo), LEAST)
    if count < 2:
        return [work(todo)]
    ends = [len(todo) * part // count for part in range(count + 1)]
    first, *others = [todo[ends[part] : ends[part + 1]] for part in range(count)]

    def written(stretch: Stretch, file: IO[bytes]) -> None:
        file.write(msgspec.msgpack.encode(work(stretch)))
        file.flush()

    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in others]
        children = stack.enter_context(Children())
        for stretch, file in zip(others, files, strict=True):
            children.start(partial(written, stretch, file))
        made = [work(first)]
        for stretch, file, done in zip(others, files, children.wait(), strict=True):
            file.seek(0)  # the child's place is this process's too
            made.append(
                msgspec.msgpack.decode(file.read(), type=type(made[0])) if done else work(stretch)
            )
    return made
