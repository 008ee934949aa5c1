"""Agreement of raters: raw, Cohen's κ plain and weighted, Krippendorff's α (TR App. D)."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from harness_cli.records.run import Interval
from harness_cli.stats.bootstrap import RESAMPLES, Floats

Weights = Literal["none", "linear", "quadratic"]
Metric = Literal["nominal", "ordinal", "interval"]
Invalid = Literal["wrong", "drop"] | float
"""How a verdict that is none is counted: as one that agrees with no label, not at all, or as the
label given (PandaLM reads garbage as a tie, LLMBar's κ reads it as 0)."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters on the same items."""

    n: int
    raw: float
    raw_interval: Interval
    kappa: float | None
    """None when chance agreement is 1 (both raters used one and the same label)."""
    kappa_interval: Interval | None
    weights: str
    labels: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    """Row: reference label, column: the other rater's, in the order of `labels`."""
    invalid: tuple[int, ...] = ()
    """Reference label → verdicts that are none, where they count as wrong."""


def confusion(
    reference: Sequence[Hashable], other: Sequence[Hashable], labels: Sequence[Hashable]
) -> list[list[int]]:
    """Counts: row = reference label, column = the other's, in the order of `labels`."""
    if len(reference) != len(other):
        raise ValueError(f"{len(reference)} and {len(other)} labels are no pairs")
    at = {label: i for i, label in enumerate(labels)}
    table = [[0] * len(labels) for _ in labels]
    for a, b in zip(reference, other, strict=True):
        table[at[a]][at[b]] += 1
    return table


def cohen_kappa(table: Sequence[Sequence[int]], weights: Weights = "none") -> float | None:
    """κ = 1 − Σ w·observed / Σ w·expected over a square confusion table.

    Source: Cohen 1960; weighted form Cohen 1968, w = |i − j|^p / (k − 1)^p with p = 0 (plain: off
    the diagonal 1), 1 or 2. Labels count as equally spaced, which 0, ½, 1 are. None when undefined.
    """
    counts = np.asarray(table, dtype=np.float64)
    value = _kappas(counts[None], _disagreement(len(counts), weights))[0]
    return None if np.isnan(value) else float(value)


def agreement(
    reference: Sequence[float],
    other: Sequence[float | None],
    *,
    weights: Weights = "none",
    labels: Sequence[float] | None = None,
    invalid: Invalid = "wrong",
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Agreement:
    """Raw agreement and κ with percentile bootstrap intervals over items.

    A verdict that is None is counted as `invalid` says; as `wrong` it is a column of its own, as
    far from every label as labels can be. Resampling items is a multinomial draw of the confusion
    cells, so all replicates are made at once. Raises ValueError for no pairs.
    """
    reference, given = _counted(reference, other, invalid)
    if not reference:
        raise ValueError("no labelled pairs")
    seen = {g for g in given if g is not None}
    names = tuple(labels) if labels is not None else tuple(sorted({*reference, *seen}))
    n, k = len(reference), len(names)
    table = np.asarray(confusion(reference, given, (*names, None)), dtype=np.float64)
    weight = _disagreement(k + 1, weights)
    weight[:k, k] = weight[:k, :k].max(initial=1.0)
    drawn = np.random.default_rng(seed).multinomial(n, table.ravel() / n, size=resamples)
    tables = drawn.reshape(resamples, k + 1, k + 1).astype(np.float64)
    kappas = _kappas(tables, weight)
    kappas = kappas[~np.isnan(kappas)]
    point = _kappas(table[None], weight)[0]
    method = f"bootstrap {resamples:,}, seed {seed}"
    raws = np.trace(tables, axis1=1, axis2=2) / n
    counts = table.astype(np.int64)
    return Agreement(
        n=n,
        raw=float(np.trace(table) / n),
        raw_interval=_ends(raws, method),
        kappa=None if np.isnan(point) else float(point),
        kappa_interval=_ends(kappas, method) if len(kappas) and not np.isnan(point) else None,
        weights=weights,
        labels=tuple(float(x) for x in names),
        confusion=tuple(tuple(int(c) for c in row[:k]) for row in counts[:k]),
        invalid=tuple(int(c) for c in counts[:k, k]) if None in given else (),
    )


def _counted(
    reference: Sequence[float], other: Sequence[float | None], invalid: Invalid
) -> tuple[list[float], list[float | None]]:
    if len(reference) != len(other):
        raise ValueError(f"{len(reference)} and {len(other)} labels are no pairs")
    pairs = list(zip(reference, other, strict=True))
    if invalid == "drop":
        pairs = [(r, g) for r, g in pairs if g is not None]
    elif invalid != "wrong":
        pairs = [(r, invalid if g is None else g) for r, g in pairs]
    return [r for r, _ in pairs], [g for _, g in pairs]


def agreement_of(
    table: Sequence[Sequence[int]], invalid: Sequence[int], weights: Weights
) -> tuple[float, float | None]:
    """Raw agreement and κ of a confusion table with its column of invalid verdicts (or none)."""
    k = len(table)
    whole = np.zeros((k + 1, k + 1))
    whole[:k, :k] = table
    whole[:k, k] = invalid if len(invalid) else 0
    weight = _disagreement(k + 1, weights)
    weight[:k, k] = weight[:k, :k].max(initial=1.0)
    kappa = _kappas(whole[None], weight)[0]
    return float(np.trace(whole) / whole.sum()), None if np.isnan(kappa) else float(kappa)


class Macro(msgspec.Struct, frozen=True, kw_only=True):
    """Precision, recall and F1, each the plain mean over the labels."""

    precision: float
    recall: float
    f1: float


def macro_scores(found: Agreement) -> Macro:
    """Macro averages over the labels of an agreement; a ratio without a denominator is 0."""
    table = np.asarray(found.confusion, dtype=np.float64)
    missed = np.asarray(found.invalid or (0,) * len(table), dtype=np.float64)
    hits = table.diagonal()
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.nan_to_num(hits / table.sum(axis=0))
        recall = np.nan_to_num(hits / (table.sum(axis=1) + missed))
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    return Macro(
        precision=float(precision.mean()), recall=float(recall.mean()), f1=float(f1.mean())
    )


def _ends(values: Floats, method: str) -> Interval:
    low, high = np.quantile(values, (0.025, 0.975))
    return Interval(low=float(low), high=float(high), method=method)


def _disagreement(k: int, weights: Weights) -> Floats:
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(np.float64)
    if weights == "none":
        return (gap > 0).astype(np.float64)
    return gap ** (1 if weights == "linear" else 2)


def _kappas(tables_B: Floats, weight: Floats) -> Floats:
    """κ of each of B tables, shape (B, k, k); NaN where chance disagreement is 0."""
    n = tables_B.sum(axis=(1, 2))
    rows, columns = tables_B.sum(axis=2), tables_B.sum(axis=1)
    expected = np.einsum("bi,bj,ij->b", rows, columns, weight) / n
    observed = np.einsum("bij,ij->b", tables_B, weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(expected > 0, 1 - observed / expected, np.nan))


def krippendorff_alpha(
    units: Sequence[Sequence[float | None]], metric: Metric = "nominal"
) -> float | None:
    """α = 1 − D_o/D_e from the coincidence matrix; None ratings are missing.

    `units` holds one row of ratings per item. Source: Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability", §C and §D. None when nothing is pairable or nothing varies.
    """
    rated = [[r for r in row if r is not None] for row in units]
    rated = [row for row in rated if len(row) > 1]
    labels = sorted({r for row in rated for r in row})
    if len(labels) < 2:
        return None
    at = {label: i for i, label in enumerate(labels)}
    pairs = np.zeros((len(labels), len(labels)))
    for row in rated:
        counts = np.zeros(len(labels))
        for rating in row:
            counts[at[rating]] += 1
        pairs += (np.outer(counts, counts) - np.diag(counts)) / (len(row) - 1)
    totals = pairs.sum(axis=0)
    delta = _DELTAS[metric](np.asarray(labels, dtype=np.float64), totals)
    expected = (np.outer(totals, totals) * delta).sum() / (totals.sum() - 1)
    return float(1 - (pairs * delta).sum() / expected) if expected > 0 else None


def _nominal(labels: Floats, totals: Floats) -> Floats:  # noqa: ARG001  one signature for all
    return 1.0 - np.eye(len(labels))


def _interval(labels: Floats, totals: Floats) -> Floats:  # noqa: ARG001
    return np.asarray(np.subtract.outer(labels, labels) ** 2)


def _ordinal(labels: Floats, totals: Floats) -> Floats:
    """(Σ_{g=c..k} n_g − (n_c + n_k)/2)²."""
    upto = np.cumsum(totals)
    size = len(labels)
    between = np.abs(np.subtract.outer(upto, upto))
    low = np.minimum.outer(np.arange(size), np.arange(size))
    high = np.maximum.outer(np.arange(size), np.arange(size))
    return np.asarray((between + totals[low] - (totals[low] + totals[high]) / 2) ** 2)


_DELTAS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "nominal": _nominal,
    "ordinal": _ordinal,
    "interval": _interval,
}


def majority(ratings: Sequence[float]) -> float:
    """The most frequent rating; the median one (the lower of two) where several are as frequent."""
    counts = Counter(ratings)
    most = max(counts.values())
    tied = sorted(r for r, c in counts.items() if c == most)
    if len(tied) == 1:
        return tied[0]
    return sorted(ratings)[(len(ratings) - 1) // 2]
