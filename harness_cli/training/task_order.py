"""In which order a job's tasks are taken: seeded rounds over all of them, one behind the other.

TRL's own sampler leaves out, round by round, what is no whole batch of tasks, and begins with the
first round again where a job goes on in a later one. Where it does neither, the order is the same.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch.utils.data import Sampler


class TaskOrder(Sampler[int]):  # type: ignore[misc]
    """Numbers of tasks as a trainer of TRL reads them: `each` tasks an iteration, every task
    `copies` times in a row, the whole of it `repeats` times.

    An epoch is as many iterations as one round needs; what is left of a round begins the next
    epoch, so every task comes once before any comes again. No task comes twice in one iteration
    as long as there are enough.
    """

    def __init__(
        self,
        tasks: int,
        *,
        each: int,
        copies: int = 1,
        repeats: int = 1,
        seed: int = 0,
        done: Callable[[], int] = lambda: 0,
    ) -> None:
        """`done` says how many iterations the job has made: a job that goes on in a later epoch
        reads that one."""
        self._tasks, self._each, self._copies, self._repeats = tasks, each, copies, repeats
        self._seed, self._done = seed, done

    @property
    def iterations(self) -> int:
        """Of one epoch."""
        return math.ceil(self._tasks / self._each)

    def __len__(self) -> int:
        return self.iterations * self._each * self._copies * self._repeats

    def __iter__(self) -> Iterator[int]:
        drawn = self._drawn()
        before = self._done() // self.iterations * self.iterations
        for _ in range(before):
            next(drawn)
        for _ in range(self.iterations):
            chosen = next(drawn)
            for _ in range(self._repeats):
                for task in chosen:
                    for _ in range(self._copies):
                        yield task

    def _drawn(self) -> Iterator[list[int]]:
        """The tasks of each iteration, without end."""
        generator = torch.Generator()
        generator.manual_seed(self._seed)
        waiting: list[int] = []
        while True:
            while len(waiting) < self._each:
                waiting += torch.randperm(self._tasks, generator=generator).tolist()
            chosen = list(dict.fromkeys(waiting))[: self._each]
            if len(chosen) < self._each:  # fewer tasks than an iteration takes
                chosen = waiting[: self._each]
                waiting = waiting[self._each :]
            else:
                waiting = _without(waiting, chosen)
            yield chosen


def _without(waiting: list[int], chosen: list[int]) -> list[int]:
    """What still waits: the first of each that was chosen is gone."""
    gone = set(chosen)
    left: list[int] = []
    for task in waiting:
        if task in gone:
            gone.discard(task)
        else:
            left.append(task)
    return left
