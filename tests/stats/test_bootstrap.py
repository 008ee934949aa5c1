"""The exact bootstrap distribution against brute force, resampling and its own laws."""

from itertools import product
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.stats.bootstrap import (
    bootstrap_mean,
    exact_mean,
    lattice_step,
    resampled_mean,
)
from harness_cli.stats.intervals import bootstrap_interval

HALVES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=5)


@given(HALVES)
def test_the_distribution_is_that_of_every_possible_resample(values):
    every = [sum(drawn) / len(values) for drawn in product(values, repeat=len(values))]
    found = exact_mean(values)
    assert found is not None
    for bound in (-1.0, -0.25, 0.0, 0.3, 1.0):
        share = sum(v <= bound + 1e-9 for v in every) / len(every)
        assert found.at_most(bound) == pytest.approx(share, abs=1e-12)


@given(st.lists(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), min_size=2, max_size=60))
def test_mean_and_variance_are_those_of_resampling(values):
    found = exact_mean(values)
    assert found is not None
    mean = float(found.values @ found.mass)
    variance = float(((found.values - mean) ** 2) @ found.mass)
    assert mean == pytest.approx(np.mean(values), abs=1e-9)
    assert variance == pytest.approx(np.var(values) / len(values), abs=1e-9)


def test_what_lies_outside_the_window_has_no_mass():
    rng = np.random.default_rng(7)
    values = rng.choice([0.0, 0.25, 0.5, 1.0], size=1024, p=[0.02, 0.03, 0.15, 0.8])
    every = np.bincount((values * 4).astype(int), minlength=5) / 1024
    for _ in range(10):  # two to the tenth: the sum of 1,024 draws, point by point
        every = np.convolve(every, every)
    found = exact_mean(values)
    first = round(found.values[0] * 4096)
    window = every[first : first + len(found.mass)]
    assert len(window) < len(every) / 2
    assert every.sum() - window.sum() == pytest.approx(0.0, abs=1e-12)
    assert found.mass == pytest.approx(window, abs=1e-14)


@given(HALVES)
def test_turning_the_signs_mirrors_the_interval(values):
    # The inverse CDF takes the lower of two values where mass meets a level exactly, so the
    # mirror may be off by one step of the lattice.
    here, there = bootstrap_interval(values), bootstrap_interval([-v for v in values])
    step = (lattice_step(values) or 1.0) / len(values) + 1e-9
    assert abs(here.low + there.high) <= step
    assert abs(here.high + there.low) <= step


def test_resampling_agrees_within_its_own_noise():
    rng = np.random.default_rng(3)
    values = rng.choice([-1, -0.5, 0, 0.5, 1], size=978, p=[0.06, 0.06, 0.7, 0.09, 0.09])
    exact, drawn = exact_mean(values), resampled_mean(values, seed=1)
    assert exact is not None
    for level in (0.025, 0.5, 0.975):
        assert drawn.quantile(level) == pytest.approx(exact.quantile(level), abs=0.002)


def test_the_seeded_form_repeats_itself_and_changes_with_the_seed():
    values = np.random.default_rng(0).normal(size=50)
    first, again = resampled_mean(values, seed=4), resampled_mean(values, seed=4)
    other = resampled_mean(values, seed=5)
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.0, 1.0], 1.0),
        ([-1.0, -0.5, 0.0], 0.5),
        ([0.25, 0.75], 0.5),
        ([0.0, 1 / 3, 0.5], 1 / 6),
        ([0.3, 0.35, 0.5], 0.05),
        ([7.0, 7.0], 1.0),
        ([0.0, 0.1234567890123], None),
        ([0.0, 2**0.5], None),
    ],
)
def test_the_widest_step_of_the_lattice_is_found(values, step):
    assert lattice_step(values) == (None if step is None else pytest.approx(step))


def test_off_the_lattice_the_seeded_form_takes_over_and_says_so():
    found = bootstrap_mean([0.1234567890123, 0.5, 0.7], seed=2)
    assert found.method == "bootstrap 10,000, seed 2"
    assert bootstrap_mean([0.5, 1.0]).method == "exact bootstrap"


def test_an_interval_of_978_items_costs_a_few_milliseconds():
    rng = np.random.default_rng(5)
    values = rng.choice([-1.0, 0.0, 1.0], size=978)
    exact_mean(values)
    start = process_time()
    for _ in range(20):
        exact_mean(values)
    assert (process_time() - start) / 20 < 0.02  # half a millisecond when the machine is idle


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_a_hundred_thousand_items_stay_exact(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 1.0], size=100_000, p=[0.4, 0.6])
    found = exact_mean(values)
    assert found is not None
    assert found.mass.sum() == pytest.approx(1.0)
    half = 1.96 * np.sqrt(values.var() / len(values))
    assert found.quantile(0.975) == pytest.approx(values.mean() + half, abs=3e-5)
