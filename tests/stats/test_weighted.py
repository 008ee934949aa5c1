"""Pooled shares: the mean over units, the interval over the items that hold them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.intervals import t_interval
from harness_cli.stats.weighted import pooled_interval, weighted_mean

SHARES = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 5).map(float)), min_size=2, max_size=60)


def test_the_mean_is_that_of_all_units():
    """Two prompts: one with 1 of 1 followed, one with 1 of 3."""
    assert weighted_mean([1.0, 1 / 3], [1, 3]) == pytest.approx(2 / 4)


def test_a_hand_computed_interval():
    """m = 1/2, residuals w(x - m) = 1/2 and -1/2, s = sqrt(2 · 1/2) / 4, t(0.975; 1) = 12.706."""
    found = pooled_interval([1.0, 1 / 3], [1, 3])
    half = 12.7062 * 1.0 / 4
    assert (found.low, found.high) == (max(0, 0.5 - half), min(1, 0.5 + half))
    wide = pooled_interval([0.6, 0.5, 0.4, 0.55], [1, 2, 3, 1], level=0.5)
    mean = (0.6 + 1.0 + 1.2 + 0.55) / 7
    residuals = np.array([1, 2, 3, 1]) * (np.array([0.6, 0.5, 0.4, 0.55]) - mean)
    spread = np.sqrt(4 / 3 * (residuals**2).sum()) / 7
    assert wide.high - mean == pytest.approx(0.764892 * spread, rel=1e-4)


@given(SHARES)
def test_the_mean_lies_inside_and_the_interval_in_the_unit_range(pairs):
    values, weights = zip(*pairs, strict=True)
    found = pooled_interval(values, weights)
    assert 0 <= found.low <= found.high <= 1
    assert found.low - 1e-9 <= weighted_mean(values, weights) <= found.high + 1e-9


@given(st.lists(st.floats(0.4, 0.6), min_size=2, max_size=60))
def test_equal_weights_give_the_t_interval(values):
    found, plain = pooled_interval(values, [3.0] * len(values)), t_interval(values)
    assert found.low == pytest.approx(max(0, plain.low), abs=1e-9)
    assert found.high == pytest.approx(min(1, plain.high), abs=1e-9)


def test_one_item_has_no_interval():
    assert pooled_interval([1.0], [2.0]) is None


def test_it_covers_the_truth_about_as_often_as_it_says():
    """Prompts of 1 to 3 instructions that are followed alike within a prompt, true share 0.7."""
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        weights = rng.integers(1, 4, size=200).astype(float)
        easy = rng.beta(1.4, 0.6, size=200)
        values = rng.binomial(weights.astype(int), easy) / weights
        found = pooled_interval(values, weights)
        covered += found.low <= 0.7 <= found.high
    assert 0.91 <= covered / 400 <= 0.98
