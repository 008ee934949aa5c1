"""Several runs of the same thing: the mean and range of run-level values, never one pooled sample.

A percentile of two runs thrown together is no percentile of either (METHODS §2): each run has its
own, and what is shown of several is their mean, the lowest and the highest.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from harness_cli.records.bench import BenchContract, BenchRun
from harness_cli.serving.bench.figures import Figures, figures
from harness_cli.stats.percentiles import AcrossRuns, across_runs

VALUES: Final[dict[str, Callable[[Figures], float | None]]] = {
    "wall_p50": lambda f: f.wall.p50,
    "wall_p95": lambda f: f.wall.p95,
    "ttft_p95": lambda f: f.ttft.p95,
    "first_delta_p95": lambda f: f.first_delta.p95,
    "decode_mean": lambda f: f.decode.mean,
    "decode_median": lambda f: f.decode.median,
    "attainment": lambda f: f.attainment,
    "success": lambda f: f.succeeded / f.measured if f.measured else None,
}
"""The columns of TR Table 7, each a value of one run."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that measured the same thing at the same concurrency."""

    name: str
    concurrency: int
    runs: tuple[str, ...]
    figures: tuple[Figures, ...]
    values: dict[str, AcrossRuns | None]


def same(contract: BenchContract) -> tuple[object, ...]:
    """What two runs must have in common to be runs of one thing."""
    return (
        contract.arm,
        contract.policy_id,
        contract.harness_id,
        contract.evalset_digest,
        contract.cases_digest,
        contract.warm_up,
        contract.concurrency,
        contract.generation,
        contract.serving.digest if contract.serving else "",
    )


def groups(runs: Iterable[BenchRun]) -> list[Group]:
    """Runs by what they measured, in order of name and concurrency."""
    by_what: defaultdict[tuple[object, ...], list[BenchRun]] = defaultdict(list)
    for run in runs:
        by_what[same(run.contract)].append(run)
    made = [_group(found) for found in by_what.values()]
    return sorted(made, key=lambda group: (group.name, group.concurrency))


def _group(runs: Sequence[BenchRun]) -> Group:
    numbers = tuple(figures(run) for run in runs)
    contract = runs[0].contract
    return Group(
        name=name_of(contract),
        concurrency=contract.concurrency,
        runs=tuple(run.contract.run for run in runs),
        figures=numbers,
        values={name: _across(value(f) for f in numbers) for name, value in VALUES.items()},
    )


def name_of(contract: BenchContract) -> str:
    """How a table calls it."""
    return f"{contract.policy} ({contract.arm})" if contract.arm else contract.policy


def _across(values: Iterable[float | None]) -> AcrossRuns | None:
    return across_runs([value for value in values if value is not None])
