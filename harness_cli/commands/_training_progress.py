"""Progress of a training job: a bar on a terminal, one line a tenth everywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness_cli.commands._show import note, terminal


@contextmanager
def step_progress(
    name: str, *, quiet: bool
) -> Iterator[Callable[[Any, dict[str, float]], None] | None]:
    """What to give a job as `observe`."""
    if quiet:
        yield None
    elif terminal(sys.stderr):
        with _bar(name) as observe:
            yield observe
    else:
        yield _Tenths(name)


class _Tenths:
    def __init__(self, name: str) -> None:
        self._name, self._shown = name, -1

    def __call__(self, running: Any, values: dict[str, float]) -> None:
        state = running.state
        tenth = 10 * state.step // max(1, state.steps)
        if tenth > self._shown:
            self._shown = tenth
            note(f"{self._name}: step {state.step} of {state.steps}, {_told(values)}")


def _told(values: dict[str, float]) -> str:
    wanted = ("loss", "grad_norm", "learning_rate", "reward")
    return ", ".join(f"{k} {values[k]:.4g}" for k in wanted if k in values)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[Any, dict[str, float]], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns, console=Console(file=sys.stderr), refresh_per_second=4) as bar:
        task = bar.add_task(name, total=None, told="")

        def observe(running: Any, values: dict[str, float]) -> None:
            state = running.state
            bar.update(task, completed=state.step, total=state.steps, told=_told(values))

        yield observe
