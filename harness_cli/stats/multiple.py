"""Many comparisons at once."""

from collections.abc import Sequence

MIN_ITEMS = 8
"""Categories with fewer items are shown as "too few", never as regressions (METHODS §3, choice)."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given (Holm 1979).

    p̃_(i) = max_{j ≤ i} min(1, (m − j + 1) · p_(j)); controls the family-wise error under any
    dependence.
    """
    m = len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    adjusted = [1.0] * m
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (m - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted
