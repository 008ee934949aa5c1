"""Two groups of runs, each of one thing run several times: spread and significance in σ (T2)."""

from collections.abc import Sequence

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.run import MetricSummary, Report, RunConfig
from harness_cli.stats.trials import Spread, sigma_table, spread
from harness_cli.store.runs import RunFolder

MEAN_OF_CATEGORIES = "mean of categories"
COLUMNS = ("what", "a", "± σ", "b", "± σ", "Δ", "Δ of rounded", "σ both", "Δ/σ", "reading")


class SpreadRow(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, or one category of the headline metric, over both groups; in percent."""

    name: str
    spread: Spread


class RunGroups(msgspec.Struct, frozen=True, kw_only=True):
    """b against a, run by run."""

    schema: int = 1
    a: tuple[str, ...]
    b: tuple[str, ...]
    metric: str
    """The headline metric that the categories show."""
    metrics: tuple[SpreadRow, ...]
    categories: tuple[SpreadRow, ...]
    """T2's table: a run is averaged over its categories before runs are."""


def compare_groups(a: Sequence[RunFolder], b: Sequence[RunFolder]) -> RunGroups:
    """The spread over runs of every metric that all of them scored, and by category.

    Raises `UsageError` where the runs are not of the same items and judge, a group mixes policies
    or harnesses, or a run has no report.
    """
    _refuse_mixed(a, b)
    first, second = [r.report() for r in a], [r.report() for r in b]
    names = _shared([r.metrics for r in (*first, *second)])
    if not names:
        raise UsageError("no metric is scored in all of these runs")
    sides = ([_means(r.metrics) for r in first], [_means(r.metrics) for r in second])
    metrics = tuple(
        SpreadRow(name=n, spread=spread([m[n] for m in sides[0]], [m[n] for m in sides[1]]))
        for n in names
    )
    return RunGroups(
        a=tuple(r.id for r in a),
        b=tuple(r.id for r in b),
        metric=names[0],
        metrics=metrics,
        categories=_by_category(names[0], first, second),
    )


def rows(found: Sequence[SpreadRow]) -> list[tuple[str, ...]]:
    """T2's table, one row a line, in percent."""
    return [
        (
            row.name, f"{s.mean_a:.1f}", f"{s.sd_a:.1f}", f"{s.mean_b:.1f}", f"{s.sd_b:.1f}",
            f"{s.delta:+.1f}", f"{s.delta_rounded:+.1f}", f"{s.sigma_combined:.1f}",
            "–" if s.significance is None else f"{s.significance:+.1f}", s.reading,
        )
        for row in found
        for s in (row.spread,)
    ]  # fmt: skip


def _by_category(
    metric: str, first: Sequence[Report], second: Sequence[Report]
) -> tuple[SpreadRow, ...]:
    every = [
        {name: _means(summaries).get(metric) for name, summaries in report.categories.items()}
        for report in (*first, *second)
    ]
    shared = [name for name in every[0] if all(found.get(name) is not None for found in every)]
    if len(shared) < 2:
        return ()
    runs = [{name: found[name] or 0.0 for name in shared} for found in every]
    table = sigma_table(runs[: len(first)], runs[len(first) :], overall=MEAN_OF_CATEGORIES)
    return tuple(SpreadRow(name=name, spread=found) for name, found in table.items())


def _means(summaries: Sequence[MetricSummary]) -> dict[str, float]:
    return {m.metric: 100 * m.mean for m in summaries if m.mean is not None}


def _shared(reports: Sequence[Sequence[MetricSummary]]) -> list[str]:
    scored = [set(_means(summaries)) for summaries in reports]
    return [m.metric for m in reports[0] if all(m.metric in names for names in scored)]


def _refuse_mixed(a: Sequence[RunFolder], b: Sequence[RunFolder]) -> None:
    configs = [[run.config() for run in side] for side in (a, b)]
    everyone = [config for side in configs for config in side]
    twice = {c.id for c in everyone if sum(o.id == c.id for o in everyone) > 1}
    if twice:
        raise UsageError(f"run `{min(twice)}` is named twice")
    for same, where in ((_items_and_judge, [everyone]), (_who, configs)):
        for group in where:
            odd = next((c for c in group if same(c) != same(group[0])), None)
            if odd is not None:
                what = "items and judge" if same is _items_and_judge else "policy and harness"
                raise UsageError(
                    f"runs `{group[0].id}` and `{odd.id}` are not of one {what}",
                    hint="a group is the same thing run several times: `eval --seed`",
                )


def _items_and_judge(config: RunConfig) -> tuple[object, ...]:
    ref = config.evalset
    return ref.name, ref.split, ref.digest, config.limit, config.judge_id


def _who(config: RunConfig) -> tuple[object, ...]:
    return config.policy_id, config.harness_id, config.agent
