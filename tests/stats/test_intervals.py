"""Wilson, t and the choice between them; tails against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.distributions import binomial_pmf, normal_cdf, t_cdf, t_quantile
from harness_cli.stats.intervals import mean_interval, t_interval, wilson


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [
        (0, 20, 0.0, 0.1611),  # Newcombe 1998, table I
        (1, 29, 0.0061, 0.1718),
        (15, 148, 0.0624, 0.1605),
        (81, 263, 0.2553, 0.3662),
        (56, 70, 0.6918, 0.8770),
    ],
)
def test_wilson_gives_published_intervals(passed, n, low, high):
    found = wilson(passed, n)
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-3)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_share_and_stays_in_range(n, data):
    passed = data.draw(st.integers(0, n))
    found = wilson(passed, n)
    assert 0 <= found.low <= passed / n <= found.high <= 1


def test_a_share_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no share"):
        wilson(0, 0)


@pytest.mark.parametrize("df", [1, 2, 5, 30, 977])
@pytest.mark.parametrize("p", [0.005, 0.3, 0.5, 0.975, 0.9995])
def test_student_t_agrees_with_scipy(df, p):
    stats = pytest.importorskip("scipy.stats")
    assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-8, abs=1e-10)
    assert t_cdf(1.7, df) == pytest.approx(stats.t.cdf(1.7, df), rel=1e-10)
    assert t_cdf(-0.4, df) == pytest.approx(stats.t.cdf(-0.4, df), rel=1e-10)


def test_binomial_masses_sum_to_one_and_do_not_overflow():
    assert sum(binomial_pmf(k, 3000, 0.3) for k in range(3001)) == pytest.approx(1.0)
    assert binomial_pmf(3, 3, 1.0) == 1.0
    assert binomial_pmf(2, 3, 0.0) == 0.0
    assert normal_cdf(0) == 0.5


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ([0.0, 1.0, 1.0], "Wilson"),
        ([0.0, 0.5, 1.0], "t"),
        ([0.0, 0.5] * 50, "exact bootstrap"),
        (list(np.random.default_rng(0).random(120)), "bootstrap 10,000, seed 0"),
    ],
)
def test_the_interval_fits_the_scores(values, method):
    found = mean_interval(values)
    assert found is not None
    assert found.method == method
    assert found.low <= np.mean(values) <= found.high


def test_what_cannot_be_said_is_none():
    assert mean_interval([]) is None
    assert mean_interval([0.5]) is None
    assert t_interval([1.0]) is None


def test_the_t_interval_is_clipped_to_the_scores_range_unless_told_otherwise():
    values = [0.5, 1.0, 1.0, 1.0]
    clipped, free = mean_interval(values), mean_interval(values, bounds=None)
    assert clipped is not None
    assert free is not None
    assert clipped.high == 1.0 < free.high
