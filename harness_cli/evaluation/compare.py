"""Two runs on the same items: paired differences with intervals, and the cases behind them."""

from collections.abc import Iterable, Mapping
from statistics import fmean

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.by_item import HEADLINE, VERDICTS, PairedItem, collected
from harness_cli.evaluation.comparison import Case, CategoryDelta, MetricDelta, Side
from harness_cli.evaluation.comparison import Comparison as Comparison  # its name at this seam
from harness_cli.evaluation.noise import floor
from harness_cli.evaluation.repeats import needed
from harness_cli.evaluation.rubrics import POOLED
from harness_cli.records.noise import Noise
from harness_cli.records.run import RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.multiple import MIN_ITEMS, holm
from harness_cli.stats.paired import mcnemar, paired, sign_flip_p
from harness_cli.stats.power import items_needed, minimum_detectable
from harness_cli.stats.trials import Spread, spread

ALPHA = 0.05
Pairs = list[tuple[PairedItem, PairedItem]]


def compare(
    a: Iterable[ItemResult],
    b: Iterable[ItemResult],
    *,
    config_a: RunConfig | None = None,
    config_b: RunConfig | None = None,
    force: bool = False,
    noise: Noise | None = None,
    resamples: int | None = None,
) -> Comparison:
    """The paired comparison of two runs, by item id; repeats of an item are averaged first.

    `noise` is the A/A floor to hold differences against; `resamples` asks for the seeded bootstrap
    of TR App. E.4 in place of the exact one.

    Raises `UsageError` when the runs cover another evalset, another content of it, or were graded
    by another judge: such differences are not the agent's. `force` makes warnings of these.
    """
    warnings = _unlike(config_a, config_b, force=force)
    first, counts_a = collected(a)
    second, counts_b = collected(b)
    both = sorted(first.keys() & second.keys())
    if not both:
        raise UsageError("the two runs have no item in common")
    pairs = [(first[i], second[i]) for i in both]
    metrics = _metrics(pairs)
    passed = [
        {i: item.passed(*_rule(config)) for i, item in side.items()}
        for config, side in ((config_a, first), (config_b, second))
    ]
    moved = [i for i in both if passed[0][i] is not passed[1][i]]
    return Comparison(
        a=_side(config_a, counts_a, first),
        b=_side(config_b, counts_b, second),
        items=len(both),
        metrics=tuple(_against(_delta(m, pairs, resamples), noise, config_b) for m in metrics),
        categories=_categories(metrics, pairs),
        fixed=_cases([i for i in moved if passed[1][i]], first, second, better=True),
        broken=_cases([i for i in moved if passed[0][i]], first, second, better=False),
        flaky_a=tuple(i for i in both if first[i].flaky),
        flaky_b=tuple(i for i in both if second[i].flaky),
        noise_runs=noise.runs if noise else (),
        only_a=tuple(sorted(first.keys() - second.keys())),
        only_b=tuple(sorted(second.keys() - first.keys())),
        warnings=tuple(warnings),
    )


def _unlike(a: RunConfig | None, b: RunConfig | None, *, force: bool) -> list[str]:
    if a is None or b is None:
        return []
    serious = []
    if a.evalset.name != b.evalset.name:
        serious.append(f"evalsets differ: `{a.evalset.name}` and `{b.evalset.name}`")
    elif a.evalset.split != b.evalset.split:
        serious.append(f"splits differ: {a.evalset.split} and {b.evalset.split}")
    elif a.evalset.digest != b.evalset.digest:
        serious.append(f"the items of `{a.evalset.name}` changed between the runs")
    if a.evalset.catalogue_digest != b.evalset.catalogue_digest:
        serious.append("the catalogue changed between the runs")
    if a.judge_id != b.judge_id:
        serious.append(f"judges differ: {a.judge_id} and {b.judge_id}")
    if serious and not force:
        raise UsageError("; ".join(serious), hint="--force compares them all the same")
    mild = [
        f"{name} differ: {x} and {y}"
        for name, x, y in (
            ("policies", a.policy_id, b.policy_id),
            ("agents", a.agent, b.agent),
            ("repeats", a.repeat, b.repeat),
            ("passes needed", a.need, b.need),
            ("profiles", a.profile, b.profile),
            ("user simulators", _simulator(a), _simulator(b)),
        )
        if x != y
    ]
    if (a.policy_id, a.harness_id, a.agent) == (b.policy_id, b.harness_id, b.agent):
        mild.append("both runs are of one policy in one harness: what differs is noise")
    return serious + mild


def _simulator(config: RunConfig) -> str:
    """What played the user of an imported run."""
    return config.imported.user_simulator if config.imported else ""


def _rule(config: RunConfig | None) -> tuple[int | None, int | None]:
    """k and n of a run's verdicts; without a run more than half of the repeats that are there."""
    return (None, None) if config is None else (needed(config), config.repeat)


def _side(
    config: RunConfig | None, counts: Mapping[str, int], items: Mapping[str, PairedItem]
) -> Side:
    found = Side(counts=dict(counts), items=len(items))
    if config is None:
        return found
    split = f"/{config.evalset.split}" if config.evalset.split else ""
    verdicts = dict.fromkeys(VERDICTS, 0)
    for item in items.values() if config.repeat > 1 else ():
        verdicts[item.verdict(*_rule(config))] += 1
    return msgspec.structs.replace(
        found,
        run=config.id,
        harness=config.harness_id,
        policy=config.policy_id,
        judge=config.judge_id,
        evalset=config.evalset.name + split,
        verdicts=verdicts if config.repeat > 1 else {},
    )


def _metrics(pairs: Pairs) -> list[str]:
    """Metrics scored on both sides of some item, the headline ones first."""
    seen = {
        m
        for a, b in pairs
        for m in a.scores.keys() & b.scores.keys()
        if a.mean(m) is not None and b.mean(m) is not None
    }
    return [m for m in HEADLINE if m in seen] + sorted(seen - set(HEADLINE))


def _against(delta: MetricDelta, noise: Noise | None, config: RunConfig | None) -> MetricDelta:
    """The same difference, with the noise floor of its metric."""
    if noise is None:
        return delta
    repeat = config.repeat if config else 1
    half = floor(noise, delta.metric, n=delta.paired.n, repeat=repeat)
    return msgspec.structs.replace(delta, noise=half)


def _delta(metric: str, pairs: Pairs, resamples: int | None) -> MetricDelta:
    asked = _scores(metric, pairs)
    both = [(x, y) for x, y in asked if x is not None and y is not None]
    xs, ys = [x for x, _ in both], [y for _, y in both]
    diffs = [y - x for x, y in both]
    found = paired(diffs, resamples=resamples)
    binary = all(v in (0.0, 1.0) for v in (*xs, *ys))
    detectable = None if found.sd is None else minimum_detectable(found.n, found.sd)
    return MetricDelta(
        metric=metric,
        mean_a=fmean(xs) if xs else None,
        mean_b=fmean(ys) if ys else None,
        paired=found,
        of=len(asked),
        p=sign_flip_p(diffs) if diffs else None,
        mcnemar=mcnemar(xs, ys) if both and binary else None,
        with_missing_as_zero=fmean([(y or 0.0) - (x or 0.0) for x, y in asked]) if asked else None,
        detectable=detectable,
        needed=None if found.sd is None else items_needed(found.mean or 0.0, found.sd),
        spread=_spread(metric, pairs),
    )


def _scores(metric: str, pairs: Pairs) -> list[tuple[float | None, float | None]]:
    """Both sides' scores of every item that has the metric.

    In a pooled metric an item's are scaled by what it weighs over the mean weight, so that means
    and differences over items are those over the pooled units.
    """
    asking = [(a, b) for a, b in pairs if _asks(metric, a, b)]
    found = [(a.mean(metric), b.mean(metric)) for a, b in asking]
    held = [a.units for (a, _), pair in zip(asking, found, strict=True) if None not in pair]
    if metric not in POOLED or not held:
        return found
    weight = fmean(held)
    scales = [a.units / weight for a, _ in asking]
    return [
        (None if x is None else x * w, None if y is None else y * w)
        for (x, y), w in zip(found, scales, strict=True)
    ]


def _spread(metric: str, pairs: Pairs) -> Spread | None:
    """Each repeat taken for a run of its own, in percent (T2); None with a run of one repeat."""
    sides = []
    for side in (0, 1):
        columns = [pair[side].scores.get(metric, []) for pair in pairs]
        repeats = {len(column) for column in columns}
        if len(repeats) != 1 or repeats == {1} or repeats == {0}:
            return None
        rows = [[100 * v for v in row if v is not None] for row in zip(*columns, strict=True)]
        if not all(rows):
            return None
        sides.append([fmean(row) for row in rows])
    return spread(*sides)


def _asks(metric: str, a: PairedItem, b: PairedItem) -> bool:
    """The item has this metric on one side at least, scored or not."""
    return metric in a.scores or metric in b.scores


def _categories(metrics: list[str], pairs: Pairs) -> tuple[CategoryDelta, ...]:
    """Accuracy and Effectiveness by category, or the pass share where neither is scored."""
    wanted = [m for m in ("accuracy", "effectiveness") if m in metrics] or metrics[:1]
    grouped: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for a, b in pairs:
        for metric in wanted:
            x, y = a.mean(metric), b.mean(metric)
            row = grouped.setdefault((a.category, metric), [])
            if x is not None and y is not None:
                row.append((x, y))
    tests = {k: sign_flip_p([y - x for x, y in v]) for k, v in grouped.items() if v}
    enough = [k for k in tests if len(grouped[k]) >= MIN_ITEMS]
    adjusted = dict(zip(enough, holm([tests[k] for k in enough]), strict=True))
    order = sorted(grouped, key=lambda k: (-len(grouped[k]), k))
    return tuple(_category(k, grouped[k], tests.get(k), adjusted.get(k)) for k in order)


def _category(
    key: tuple[str, str], pairs: list[tuple[float, float]], p: float | None, p_holm: float | None
) -> CategoryDelta:
    found = paired([y - x for x, y in pairs])
    reading = "no difference seen"
    if p_holm is None:
        reading = "too few"
    elif p_holm < ALPHA:
        reading = "gain" if (found.mean or 0) > 0 else "regression"
    return CategoryDelta(
        category=key[0],
        metric=key[1],
        mean_a=fmean([x for x, _ in pairs]) if pairs else None,
        mean_b=fmean([y for _, y in pairs]) if pairs else None,
        paired=found,
        p=p,
        p_holm=p_holm,
        reading=reading,
    )


def _cases(
    moved: list[str],
    first: Mapping[str, PairedItem],
    second: Mapping[str, PairedItem],
    *,
    better: bool,
) -> tuple[Case, ...]:
    """Items whose verdict of k of n changed; unscored and errored are no pass."""
    found = []
    for item_id in moved:
        a, b = first[item_id], second[item_id]
        failing = a if better else b
        shown = [m for m in HEADLINE if m in a.scores or m in b.scores]
        found.append(
            Case(
                item_id=item_id,
                category=b.category,
                a={m: a.mean(m) for m in shown},
                b={m: b.mean(m) for m in shown},
                findings=tuple(sorted(failing.findings)),
                flaky=a.flaky or b.flaky,
            )
        )
    return tuple(found)
