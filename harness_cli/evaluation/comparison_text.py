"""A comparison in words, rows and Markdown; the numbers are those of `Comparison` alone."""

from collections.abc import Sequence

from harness_cli.evaluation.comparison import CategoryDelta, Comparison, MetricDelta, Side
from harness_cli.evaluation.rubrics import NATURAL
from harness_cli.records.counting import counted
from harness_cli.stats.paired import Paired

METRIC_COLUMNS = ("metric", "a %", "b %", "Δ points", "95 % interval", "P(Δ≤0)", "p", "pairs")
CATEGORY_COLUMNS = ("category", "metric", "a %", "b %", "Δ points", "p (Holm)", "n", "reading")


def side_line(letter: str, side: Side) -> str:
    """One run: what it ran and how its rollouts ended."""
    counts = " / ".join(f"{name} {n}" for name, n in side.counts.items())
    parts = [side.run, side.evalset, f"harness {side.harness[:12]}", side.policy, counts]
    return f"{letter}  " + " · ".join(p for p in parts if p and p != "harness ")


def metric_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One row a metric."""
    return [
        (
            m.metric, percent(m.mean_a), percent(m.mean_b), points(m.paired.mean),
            interval(m.paired), chance(m.paired.p_le_0), chance(m.p), f"{m.paired.n} of {m.of}",
        )
        for m in comparison.metrics
    ]  # fmt: skip


def category_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """One row a category and metric, the largest categories first."""
    return [
        (
            c.category, c.metric, percent(c.mean_a), percent(c.mean_b), points(c.paired.mean),
            chance(c.p_holm), str(c.paired.n), c.reading,
        )
        for c in comparison.categories
    ]  # fmt: skip


def remarks(comparison: Comparison) -> list[str]:
    """What the table does not say: pairs of 0/1, small samples, missing scores, power."""
    found = [w for m in comparison.metrics[:4] for w in _metric_remarks(m)]
    found += _repeat_remarks(comparison)
    worse = [c for c in comparison.categories if c.reading == "regression"]
    if worse:
        found.append("regressions: " + ", ".join(_category(c) for c in worse))
    for letter, only in (("a", comparison.only_a), ("b", comparison.only_b)):
        if only:
            found.append(f"only in {letter}: {counted(len(only), 'item')} ({listed(only)})")
    return found


def _metric_remarks(delta: MetricDelta) -> list[str]:
    found = [errors_line(delta)] if delta.metric == NATURAL and delta.mcnemar else []
    if delta.mcnemar:
        test = delta.mcnemar
        found.append(
            f"{delta.metric}: {test.gained} gained, {test.lost} lost, McNemar p {chance(test.p)}"
        )
    if delta.paired.t and delta.paired.sd:
        low, high = points(delta.paired.t.low), points(delta.paired.t.high)
        found.append(f"{delta.metric}: t interval {low} … {high} (fewer than 100 pairs)")
    if delta.of > delta.paired.n:
        found.append(
            f"{delta.metric}: {delta.of - delta.paired.n} of {counted(delta.of, 'item')} unscored "
            "or errored on one side; counted 0 the difference is "
            f"{points(delta.with_missing_as_zero)}"
        )
    if delta.detectable and delta.paired.sd:
        power, ties = delta.detectable.power, delta.paired.tie_rate or 0
        least = 100 * delta.detectable.difference
        found.append(
            f"{delta.metric}: {counted(delta.paired.n, 'pair')} with {ties:.0%} ties see a true "
            f"difference of {least:.1f} points with {power:.0%} power"
        )
    return found


def errors_line(delta: MetricDelta) -> str:
    """Total errors of a 0/1 metric on both sides and their reduction (TR §5.5, METHODS §8).

    reduction = (before - after) / before, over the items that are scored on both sides.
    """
    before, after = (round(delta.paired.n * (1 - (m or 0.0))) for m in (delta.mean_a, delta.mean_b))
    less = f"{(before - after) / before:.1%} fewer" if before else "none before"
    return f"{delta.metric}: {before} errors → {after} of {delta.paired.n}, {less}"


def _repeat_remarks(comparison: Comparison) -> list[str]:
    """Verdicts of k of n, flaky items by name, what of the difference is noise."""
    found = []
    for letter, side, flaky in (
        ("a", comparison.a, comparison.flaky_a),
        ("b", comparison.b, comparison.flaky_b),
    ):
        if side.verdicts:
            counts = " / ".join(f"{name} {n}" for name, n in side.verdicts.items() if n)
            found.append(f"items of {letter} by verdict: {counts}")
        if flaky:
            found.append(f"flaky in {letter}: {counted(len(flaky), 'item')} ({listed(flaky)})")
    for m in comparison.metrics[:4]:
        if m.spread is not None and m.spread.significance is not None:
            found.append(
                f"{m.metric}: over repeats Δ {m.spread.delta:+.1f} (of rounded means "
                f"{m.spread.delta_rounded:+.1f}), σ {m.spread.sigma_combined:.1f}, "
                f"{m.spread.significance:+.1f} σ, {m.spread.reading}"
            )
        if m.noise is not None and m.paired.mean is not None:
            inside = "inside" if abs(m.paired.mean) <= m.noise + 1e-9 else "outside"
            found.append(
                f"{m.metric}: two runs of the same thing differ by up to ±{100 * m.noise:.2f} "
                f"points (A/A {', '.join(comparison.noise_runs)}); {points(m.paired.mean)} is "
                f"{inside}"
            )
    return found


def _category(delta: CategoryDelta) -> str:
    return f"{delta.category} {delta.metric} {points(delta.paired.mean)}"


def markdown(comparison: Comparison, cases: int = 20) -> str:
    """The whole comparison for a pull request or a job summary."""
    parts = [
        "### Comparison",
        side_line("a", comparison.a),
        side_line("b", comparison.b),
        *(f"**warning**: {w}" for w in comparison.warnings),
        _table(METRIC_COLUMNS, metric_rows(comparison)),
        "\n".join(f"- {r}" for r in remarks(comparison)),
        _table(CATEGORY_COLUMNS, category_rows(comparison)),
        f"fixed {len(comparison.fixed)}: {listed([c.item_id for c in comparison.fixed], cases)}",
        f"broken {len(comparison.broken)}: {listed([c.item_id for c in comparison.broken], cases)}",
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _table(columns: Sequence[str], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def listed(ids: Sequence[str], most: int = 8) -> str:
    """Ids, the first `most` of them."""
    if not ids:
        return "none"
    return ", ".join(ids[:most]) + (f", … {len(ids) - most} more" if len(ids) > most else "")


def percent(value: float | None) -> str:
    """A share in percent with one decimal."""
    return "–" if value is None else f"{100 * value:.1f}"


def points(value: float | None) -> str:
    """A difference in percentage points, with its sign."""
    return "–" if value is None else f"{100 * value:+.2f}"


def interval(found: Paired) -> str:
    """The interval of a difference in points."""
    return "–" if found.low is None else f"{points(found.low)} … {points(found.high)}"


def chance(value: float | None) -> str:
    """A probability; small ones as a bound, since the last digits of 1e-12 say nothing."""
    if value is None:
        return "–"
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
