"""Two runs on the same items: paired differences with intervals, and the cases behind them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from harness_cli.errors import UsageError
from harness_cli.evaluation.comparison import Case, CategoryDelta, MetricDelta, Side
from harness_cli.evaluation.comparison import Comparison as Comparison  # its name at this seam
from harness_cli.records.run import RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.multiple import MIN_ITEMS, holm
from harness_cli.stats.paired import mcnemar, paired, sign_flip_p
from harness_cli.stats.power import items_needed, minimum_detectable

PASS = "pass"
"""Share of repeats in state `passed`; unscored and errored ones count as missing."""
HEADLINE = (PASS, "accuracy", "effectiveness", "avg")
ALPHA = 0.05
STATES = ("passed", "failed", "unscored", "errored")


@dataclass
class _Item:
    """All repeats of one item."""

    category: str
    states: list[str] = field(default_factory=list)
    scores: dict[str, list[float | None]] = field(default_factory=dict)
    findings: set[str] = field(default_factory=set)

    def mean(self, metric: str) -> float | None:
        """Over the scored repeats; None when there is none."""
        known = [v for v in self.scores.get(metric, ()) if v is not None]
        return fmean(known) if known else None

    @property
    def passed(self) -> bool:
        """At least half of its repeats passed."""
        return 2 * self.states.count("passed") >= len(self.states)


def compare(
    a: Iterable[ItemResult],
    b: Iterable[ItemResult],
    *,
    config_a: RunConfig | None = None,
    config_b: RunConfig | None = None,
    force: bool = False,
) -> Comparison:
    """The paired comparison of two runs, by item id; repeats of an item are averaged first.

    Raises `UsageError` when the runs cover another evalset, another content of it, or were graded
    by another judge: such differences are not the agent's. `force` makes warnings of these.
    """
    warnings = _unlike(config_a, config_b, force=force)
    first, counts_a = _collected(a)
    second, counts_b = _collected(b)
    both = sorted(first.keys() & second.keys())
    if not both:
        raise UsageError("the two runs have no item in common")
    pairs = [(first[i], second[i]) for i in both]
    metrics = _metrics(pairs)
    return Comparison(
        a=_side(config_a, counts_a, len(first)),
        b=_side(config_b, counts_b, len(second)),
        items=len(both),
        metrics=tuple(_delta(m, pairs) for m in metrics),
        categories=_categories(metrics, pairs),
        fixed=_cases(both, first, second, better=True),
        broken=_cases(both, first, second, better=False),
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
            ("profiles", a.profile, b.profile),
        )
        if x != y
    ]
    if (a.policy_id, a.harness_id, a.agent) == (b.policy_id, b.harness_id, b.agent):
        mild.append("both runs are of one policy in one harness: what differs is noise")
    return serious + mild


def _collected(results: Iterable[ItemResult]) -> tuple[dict[str, _Item], dict[str, int]]:
    items: dict[str, _Item] = {}
    counts = dict.fromkeys(STATES, 0)
    for result in results:
        counts[result.state] += 1
        item = items.setdefault(result.item_id, _Item(result.category))
        item.states.append(result.state)
        decided = result.state in ("passed", "failed")
        passed = float(result.state == "passed") if decided else None
        for metric, score in {PASS: passed, **result.scores}.items():
            item.scores.setdefault(metric, []).append(score)
        item.findings |= {f.kind for f in result.findings}
    return items, counts


def _side(config: RunConfig | None, counts: Mapping[str, int], items: int) -> Side:
    if config is None:
        return Side(counts=dict(counts), items=items)
    split = f"/{config.evalset.split}" if config.evalset.split else ""
    return Side(
        run=config.id,
        harness=config.harness_id,
        policy=config.policy_id,
        judge=config.judge_id,
        evalset=config.evalset.name + split,
        counts=dict(counts),
        items=items,
    )


def _metrics(pairs: list[tuple[_Item, _Item]]) -> list[str]:
    """Metrics scored on both sides of some item, the headline ones first."""
    seen = {
        m
        for a, b in pairs
        for m in a.scores.keys() & b.scores.keys()
        if a.mean(m) is not None and b.mean(m) is not None
    }
    return [m for m in HEADLINE if m in seen] + sorted(seen - set(HEADLINE))


def _delta(metric: str, pairs: list[tuple[_Item, _Item]]) -> MetricDelta:
    asked = [(a.mean(metric), b.mean(metric)) for a, b in pairs if _asks(metric, a, b)]
    both = [(x, y) for x, y in asked if x is not None and y is not None]
    xs, ys = [x for x, _ in both], [y for _, y in both]
    diffs = [y - x for x, y in both]
    found = paired(diffs)
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
    )


def _asks(metric: str, a: _Item, b: _Item) -> bool:
    """The item has this metric on one side at least, scored or not."""
    return metric in a.scores or metric in b.scores


def _categories(metrics: list[str], pairs: list[tuple[_Item, _Item]]) -> tuple[CategoryDelta, ...]:
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
    both: list[str], first: dict[str, _Item], second: dict[str, _Item], *, better: bool
) -> tuple[Case, ...]:
    """Items whose majority of repeats changed state; unscored and errored are no pass."""
    found = []
    for item_id in both:
        a, b = first[item_id], second[item_id]
        if a.passed is b.passed or b.passed is not better:
            continue
        failing = a if better else b
        shown = [m for m in HEADLINE if m in a.scores or m in b.scores]
        found.append(
            Case(
                item_id=item_id,
                category=b.category,
                a={m: a.mean(m) for m in shown},
                b={m: b.mean(m) for m in shown},
                findings=tuple(sorted(failing.findings)),
            )
        )
    return tuple(found)
