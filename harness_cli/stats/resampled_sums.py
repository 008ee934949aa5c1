"""Bootstrap of sums over very many users, by cells: one multinomial draw in place of n indices.

Resampling n users draws how often each distinct row occurs, a multinomial over the distinct rows.
With few of them (orders, turns, 0/1) that is the bootstrap itself. Amounts have as many rows as
users: then the rows are merged into some hundred cells that keep the total, the variance and the
covariance of the empirical distribution exactly, and the most extreme users stay cells of their
own, so that the tails keep their shape. One arm of a million users takes well under a second.
"""

from dataclasses import dataclass

import numpy as np

from harness_cli.stats.bootstrap import Floats

MAX_CELLS = 500
"""More distinct rows than this are merged; every cell costs one binomial draw a resample."""
BINS = 150
EXTREMES = 100
"""Users at either end that stay by themselves."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A distribution of rows: `rows[i]` (shape (d,)) with probability `mass[i]`; n users."""

    rows: Floats
    mass: Floats
    n: int
    exact: bool
    """False where rows were merged."""

    def sums(self, rng: np.random.Generator, resamples: int) -> Floats:
        """Column sums of `resamples` bootstrap samples of n users, shape (resamples, d)."""
        found = np.empty((resamples, self.rows.shape[1]))
        block = max(1, 2_000_000 // len(self.mass))
        for start in range(0, resamples, block):
            stop = min(resamples, start + block)
            drawn = rng.multinomial(self.n, self.mass, size=stop - start)
            found[start:stop] = drawn @ self.rows
        return found


def cells_of(rows: Floats) -> Cells:
    """The cells of users × columns (one or two columns)."""
    n = len(rows)
    distinct, counts = _distinct(rows)
    if len(distinct) <= MAX_CELLS:
        return Cells(distinct, counts / n, n, exact=True)
    order = np.argsort(_spread(rows), kind="stable")
    parts = [rows[order[:EXTREMES]], rows[order[n - EXTREMES :]]]
    masses = [np.full(2 * EXTREMES, 1 / n)]
    for part in np.array_split(order[EXTREMES : n - EXTREMES], BINS):
        points = _points(rows[part])
        parts.append(points)
        masses.append(np.full(len(points), len(part) / n / len(points)))
    mass = np.concatenate(masses)
    return Cells(np.concatenate(parts), mass / mass.sum(), n, exact=False)


def _distinct(rows: Floats) -> tuple[Floats, Floats]:
    """Distinct rows and their counts, sorted by the columns."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    starts = np.ones(len(rows), dtype=bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    at = np.flatnonzero(starts)
    counts = np.diff(np.append(at, len(rows))).astype(np.float64)
    return ordered[at], counts


def _spread(rows: Floats) -> Floats:
    """What the users are ordered by: the value, or what a ratio's numerator lies off it by."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    total = rows.sum(axis=0)
    ratio = total[0] / total[1] if total[1] else 0.0
    return np.asarray(rows[:, 0] - ratio * rows[:, 1])


def _points(rows: Floats) -> Floats:
    """A few points of equal weight with the mean and the covariance of the rows.

    mean ± √d · columns of a square root of the covariance (the sigma points of Julier & Uhlmann
    1997): 2 points for one column, 4 for two.
    """
    mean = rows.mean(axis=0)
    d = rows.shape[1]
    off = rows - mean
    values, vectors = np.linalg.eigh(off.T @ off / len(rows))
    root = vectors * np.sqrt(np.clip(values, 0.0, None) * d)
    return np.concatenate([mean + root.T, mean - root.T])
