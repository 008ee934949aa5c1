"""What augmented states cost a policy: paired drops from the items under the base, by dimension.

A drop is the metric under the base minus that under the item's augmented state, in the same policy
and agent; items that both runs scored are paired. A dimension's row takes the items whose state it
changed; beside it stand those that it left alone.
"""

from collections.abc import Iterator, Mapping

import msgspec

from harness_cli.errors import HarnessError
from harness_cli.evaluation.evalsets import load_header
from harness_cli.evaluation.variants import drawn_states
from harness_cli.records.augmentation import DIMENSIONS
from harness_cli.records.run import RunConfig
from harness_cli.stats.paired import paired
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

METRICS = ("avg", "accuracy", "effectiveness")
ALL = "all"


class Drop(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the items of one row."""

    dimension: str
    """`all`, or a dimension."""
    applied: bool
    """Items whose state the dimension changed; False: those that it left alone."""
    metric: str
    n: int
    base: float | None
    here: float | None
    drop: float | None
    low: float | None = None
    high: float | None = None


def drops_of(project: Project, run: RunFolder) -> tuple[RunFolder | None, list[Drop]]:
    """The run under the base that fits, and the drops from it; None and nothing without one."""
    config = run.config()
    header = load_header(project, config.evalset.name)
    if header.states is None or header.items_of is None:
        return None, []
    found = base_run(project, config, str(header.items_of))
    if found is None:
        return None, []
    states = drawn_states(project, header)
    dimensions = {row.item: row.dimensions for row in states.states} if states else {}
    return found, drops(scores_of(found), scores_of(run), dimensions)


def base_run(project: Project, config: RunConfig, items_of: str) -> RunFolder | None:
    """The newest complete run of the items under the base: same policy, agent, split, judge."""
    same = ("policy_id", "agent", "judge_id", "pipeline", "harness_id")
    for run in RunStore(project.runs).list():
        try:
            other = run.config()
        except HarnessError:  # a damaged run is no run to compare with
            continue
        if (other.evalset.name, other.evalset.split) != (items_of, config.evalset.split):
            continue
        alike = all(getattr(other, key) == getattr(config, key) for key in same)
        if alike and other.augmentation is None and run.status() == "complete":
            return run
    return None


def drops(
    before: Mapping[str, Mapping[str, float | None]],
    after: Mapping[str, Mapping[str, float | None]],
    dimensions: Mapping[str, tuple[str, ...]],
) -> list[Drop]:
    """Every row; one of a dimension only where its state says which dimensions changed it."""
    both = sorted(before.keys() & after.keys())
    found = list(_rows(ALL, True, both, before, after))
    for name in DIMENSIONS if dimensions else ():
        for applied in (True, False):
            chosen = [i for i in both if (name in dimensions.get(i, ())) is applied]
            found += _rows(name, applied, chosen, before, after)
    return found


def _rows(
    dimension: str,
    applied: bool,
    items: list[str],
    before: Mapping[str, Mapping[str, float | None]],
    after: Mapping[str, Mapping[str, float | None]],
) -> Iterator[Drop]:
    for metric in METRICS:
        pairs = [(before[i].get(metric), after[i].get(metric)) for i in items]
        scored = [(a, b) for a, b in pairs if a is not None and b is not None]
        n = len(scored)
        made = paired([a - b for a, b in scored]) if n > 1 else None
        yield Drop(
            dimension=dimension,
            applied=applied,
            metric=metric,
            n=n,
            base=sum(a for a, _ in scored) / n if n else None,
            here=sum(b for _, b in scored) / n if n else None,
            drop=made.mean if made else None,
            low=made.low if made else None,
            high=made.high if made else None,
        )


def scores_of(run: RunFolder) -> dict[str, Mapping[str, float | None]]:
    """Item → metric → its mean over repeats."""
    sums: dict[str, dict[str, list[float]]] = {}
    for result in run.results():
        of = sums.setdefault(result.item_id, {})
        for metric in METRICS:
            value = result.scores.get(metric)
            if value is not None:
                of.setdefault(metric, []).append(value)
    return {i: {m: sum(v) / len(v) for m, v in of.items()} for i, of in sums.items()}
