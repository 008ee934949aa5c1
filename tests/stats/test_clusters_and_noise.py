"""Repeats of items: components of variance, and the noise floor of an A/A run."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.bootstrap import exact_mean
from harness_cli.stats.clustered import clustered, variance_components
from harness_cli.stats.noise import exchanged, noise_of
from harness_cli.stats.paired import sign_flip_p

# Shrout & Fleiss 1979, table 2: four judges rate six targets; ICC(1,1) = 0.17, MSW 6.26, MSB 11.24.
TARGETS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
HALVES = st.sampled_from([0.0, 0.5, 1.0])


def test_components_give_the_published_intraclass_correlation():
    within, between = variance_components(TARGETS)
    assert within == pytest.approx(6.26, abs=0.005)
    assert within + 4 * between == pytest.approx(11.24, abs=0.005)
    assert clustered(TARGETS, bounds=None).icc == pytest.approx(0.17, abs=0.005)


@given(st.lists(st.lists(HALVES, min_size=2, max_size=5), min_size=2, max_size=8))
def test_components_are_those_of_analysis_of_variance(groups):
    stats = pytest.importorskip("scipy.stats")
    within, between = variance_components(groups)
    k, n = len(groups), sum(map(len, groups))
    pooled = sum(len(g) * np.var(g) for g in groups) / (n - k)
    assert within == pytest.approx(pooled, abs=1e-12)
    if pooled > 1e-9:
        n0 = (n - sum(len(g) ** 2 for g in groups) / n) / (k - 1)
        f = stats.f_oneway(*groups).statistic
        assert between == pytest.approx(max(0.0, (f - 1) * pooled / n0), abs=1e-9)


@given(st.lists(st.lists(HALVES, min_size=2, max_size=2), min_size=2, max_size=4))
def test_the_clustered_interval_is_that_of_resampling_whole_items(groups):
    every = sorted(
        np.mean([np.mean(groups[i]) for i in drawn])
        for drawn in product(range(len(groups)), repeat=len(groups))
    )
    found = exact_mean([float(np.mean(g)) for g in groups])
    for q in (0.025, 0.5, 0.9):
        at = int(np.ceil(q * len(every) - 1e-9)) - 1
        assert found.quantile(q) == pytest.approx(every[at], abs=1e-9)


def test_repeats_of_an_item_that_always_ends_alike_are_worth_one():
    found = clustered([[1.0] * 4, [0.0] * 4] * 30)
    assert (found.items, found.rollouts, found.within, found.icc) == (60, 240, 0.0, 1.0)
    assert found.design_effect == pytest.approx(4.0, rel=0.02)
    assert found.interval.method == "Wilson"
    assert found.interval.high - found.interval.low > 0.24  # n = 60, not 240: that gives 0.13


def test_repeats_of_nothing_but_chance_are_worth_as_much_as_items():
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 2, size=(2000, 4)).astype(float).tolist()
    found = clustered(groups)
    assert found.icc < 0.03
    assert found.design_effect == pytest.approx(1.0, abs=0.1)


def test_what_is_not_identified_is_none():
    assert clustered([]) is None
    assert clustered([[], [1.0]]).within is None
    assert variance_components([[1.0], [0.0]]) == (None, None)
    assert variance_components([[1.0, 0.0]]) == (0.5, None)


@given(st.lists(st.lists(HALVES, min_size=2, max_size=3), min_size=1, max_size=4))
def test_exchanging_runs_is_every_choice_of_two_runs_an_item(items):
    every = [
        sum(d) / len(items)
        for d in product(
            *[[x[i] - x[j] for i in range(len(x)) for j in range(len(x)) if i != j] for x in items]
        )
    ]
    found = exchanged(items)
    for bound in (-0.5, 0.0, 0.25, 1.0):
        share = sum(d <= bound + 1e-9 for d in every) / len(every)
        assert found.at_most(bound) == pytest.approx(share, abs=1e-12)


@given(st.lists(st.tuples(HALVES, HALVES), min_size=1, max_size=30))
def test_two_runs_exchanged_are_the_sign_flip_test(items):
    diffs = [b - a for a, b in items]
    found = exchanged(items)
    size = abs(sum(diffs)) / len(items)
    tails = found.at_most(-size) + 1 - found.at_most(size - 1e-6)
    assert min(1.0, tails) == pytest.approx(sign_flip_p(diffs), abs=1e-9)


def test_the_noise_of_a_coin_is_what_binomials_say():
    rng = np.random.default_rng(1)
    items = rng.integers(0, 2, size=(4000, 2)).astype(float).tolist()
    found = noise_of("accuracy", items)
    assert found.tie_rate == pytest.approx(0.5, abs=0.03)
    assert found.sd == pytest.approx(np.sqrt(0.5), abs=0.02)
    assert found.interval.high == pytest.approx(1.96 * np.sqrt(0.5 / 4000), abs=0.001)
    assert found.interval.low == -found.interval.high
    assert found.detectable == pytest.approx(2.8016 * found.sd / np.sqrt(4000), rel=1e-4)


def test_ninety_five_of_a_hundred_aa_differences_lie_inside_the_noise_interval():
    rng = np.random.default_rng(7)
    rates = rng.beta(2, 1, size=300)
    inside = 0
    for _ in range(400):
        three = (rng.random((300, 3)) < rates[:, None]).astype(float)
        found = noise_of("pass", three.tolist())
        a, b = ((rng.random(300) < rates).mean() for _ in range(2))
        inside += found.interval.low - 1e-9 <= b - a <= found.interval.high + 1e-9
    assert 0.92 < inside / 400 < 0.985


def test_a_policy_that_repeats_itself_has_no_noise_and_needs_a_whole_item():
    found = noise_of("pass", [[1.0, 1.0]] * 50)
    assert (found.sd, found.tie_rate, found.interval.high) == (0.0, 1.0, 0.0)
    assert found.detectable == 1 / 50
    assert found.attainable_p == 1.0
    assert noise_of("pass", [[1.0], [0.0]]) is None


def test_off_the_lattice_the_normal_interval_stands_in_and_says_so():
    rng = np.random.default_rng(2)
    found = noise_of("x", rng.normal(size=(200, 2)).tolist())
    assert found.interval.method == "normal"
    assert found.interval.high == pytest.approx(1.96 * found.sd / np.sqrt(200), rel=1e-3)
