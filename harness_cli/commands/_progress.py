"""Progress of a run: a bar on a terminal, one line per tenth everywhere else."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness_cli.commands._show import note, terminal
from harness_cli.evaluation.progress import Observe, Progress


@contextmanager
def progress(*, quiet: bool) -> Iterator[Observe | None]:
    """What to give `evaluate` as `observe`."""
    if quiet:
        yield None
    elif terminal(sys.stderr):
        with _bar() as observe:
            yield observe
    else:
        yield Tenths()


class Tenths:
    """One line per tenth: for cron and logs, without escape codes."""

    def __init__(self) -> None:
        self._shown = 0

    def __call__(self, state: Progress) -> None:
        """Say so when another tenth is done."""
        tenth = 10 * state.done // max(1, state.planned)
        if tenth > self._shown:
            self._shown = tenth
            note(f"{state.name}: {state.done} of {state.planned} done, {describe(state)}")


def describe(state: Progress) -> str:
    """Failed, errored, rate, spend and time left, in words."""
    counts = state.counts
    left = state.seconds_left
    time_left = "" if left is None else f", {_duration(left)} left"
    return (
        f"{counts['failed']} failed, {counts['errored']} errored, {state.rate:.1f}/s, "
        f"{spend(state)}{time_left}"
    )


def spend(state: Progress) -> str:
    """Money where it is known; else tokens."""
    spent = state.spending
    if spent.calls and spent.unknown_cost == 0:
        return f"${spent.cost:.4f}"
    about = "≈" if spent.unknown_usage else ""
    return f"cost unknown, {about}{spent.tokens} tokens"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


@contextmanager
def _bar() -> Iterator[Observe]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Bar(*columns, console=Console(file=sys.stderr), refresh_per_second=5) as bar:
        task = bar.add_task("", total=None, state="")
        last = 0.0

        def observe(state: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < 0.1 and state.done < state.planned:
                return
            last = now
            bar.update(
                task,
                description=state.name,
                completed=state.done,
                total=state.planned,
                state=describe(state),
            )

        yield observe
