"""Buckets, the sample-ratio check, and uplift over very many users."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.stats.distributions import beta_quantile, chi2_sf
from harness_cli.stats.online import arm_at, assign, checked_shares, ratio_uplift, sample_ratio
from harness_cli.stats.resampled_sums import MAX_CELLS, cells_of


def test_the_arm_sizes_of_the_report_fit_nine_to_one():
    # TR §6.4: 678,598 and 75,754 bucketed users, 89.96 % and 10.04 %.
    found = sample_ratio({"react": 678_598, "harness": 75_754}, {"react": 0.9, "harness": 0.1})
    stats = pytest.importorskip("scipy.stats")
    theirs = stats.chisquare([678_598, 75_754], [754_352 * 0.9, 754_352 * 0.1])
    assert found.chi2 == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue)
    assert not found.mismatch


def test_a_percent_of_lost_users_is_a_mismatch():
    found = sample_ratio({"a": 500_000, "b": 495_000}, {"a": 0.5, "b": 0.5})
    assert found.mismatch
    assert found.expected == {"a": 497_500, "b": 497_500}
    with pytest.raises(ValueError, match="have shares"):
        sample_ratio({"a": 1, "b": 2}, {"a": 0.5})
    with pytest.raises(ValueError, match="above 0"):
        sample_ratio({"a": 1, "b": 2}, {"a": 1.0, "b": 0.0})


@given(st.floats(0.001, 300), st.integers(1, 40))
def test_chi2_agrees_with_scipy(x, df):
    stats = pytest.importorskip("scipy.stats")
    assert chi2_sf(x, df) == pytest.approx(stats.chi2.sf(x, df), rel=1e-9, abs=1e-300)


@given(st.floats(0.001, 0.999), st.integers(1, 200), st.integers(1, 200))
def test_the_beta_quantile_agrees_with_scipy(p, a, b):
    stats = pytest.importorskip("scipy.stats")
    assert beta_quantile(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b), abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda s: sum(s) > 0))
def test_shares_that_sum_to_one_leave_nobody_out(weights):
    whole = sum(weights)
    shares = {f"a{n}": w / whole for n, w in enumerate(weights)}
    ends = checked_shares(shares)
    assert arm_at(1 - 2**-53, ends) is not None


def test_arms_stay_where_they_are_when_one_grows_at_the_end():
    few = [assign(f"u{i}", "s", {"new": 0.1, "old": 0.9}) for i in range(2000)]
    more = [assign(f"u{i}", "s", {"new": 0.2, "old": 0.8}) for i in range(2000)]
    assert all(m == "new" for f, m in zip(few, more, strict=True) if f == "new")
    with pytest.raises(ValueError, match="at most 1"):
        checked_shares({"a": float("nan")})


def brute(control, treatment, resamples=4000):
    rng = np.random.default_rng(11)
    drawn = []
    for arm in (control, treatment):
        rows = arm[rng.integers(0, len(arm), size=(resamples, len(arm)))].sum(axis=1)
        drawn.append(rows[:, 0] / rows[:, 1])
    return np.quantile(drawn[1] / drawn[0] - 1, (0.025, 0.975))


@pytest.mark.parametrize("denominator", ["one", "visits"])
def test_merged_cells_give_the_interval_of_drawing_every_user(denominator):
    rng = np.random.default_rng(5)

    def arm(n, lift):
        spent = np.where(rng.random(n) < 0.3, rng.lognormal(3, 1.2, n) * lift, 0.0)
        visits = np.ones(n) if denominator == "one" else 1.0 + rng.poisson(2, n)
        return np.column_stack([spent * visits, visits])

    control, treatment = arm(3000, 1.0), arm(1500, 1.1)
    found = ratio_uplift(control, treatment, seed=3)
    assert found.interval.method.endswith("users in cells")
    low, high = brute(control, treatment)
    width = high - low
    assert found.interval.low == pytest.approx(low, abs=0.06 * width)
    assert found.interval.high == pytest.approx(high, abs=0.06 * width)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]))
def test_merging_keeps_totals_variances_and_covariances(seed, columns):
    rng = np.random.default_rng(seed)
    rows = rng.pareto(2.5, size=(MAX_CELLS * 3, columns))
    cells = cells_of(rows)
    assert not cells.exact
    assert cells.mass.sum() == pytest.approx(1.0)
    mean = cells.mass @ cells.rows
    assert mean == pytest.approx(rows.mean(axis=0), rel=1e-9)
    off = cells.rows - mean
    covariance = (off * cells.mass[:, None]).T @ off
    assert covariance == pytest.approx(np.cov(rows.T, bias=True).reshape(columns, columns))


def test_few_distinct_rows_are_counted_and_no_user_is_merged():
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.poisson(0.4, 50_000), np.ones(50_000)]).astype(float)
    found = ratio_uplift(rows, rows, resamples=500)
    assert found.uplift == 0.0
    assert found.interval.method == "bootstrap over users 500, seed 0"
    assert found.interval.low < 0 < found.interval.high


def test_a_control_that_sold_nothing_has_no_uplift():
    found = ratio_uplift([(0.0, 1.0)] * 5, [(1.0, 1.0)] * 5)
    assert (found.uplift, found.interval) == (None, None)


def test_the_same_seed_gives_the_same_interval():
    rows = [(float(n % 7), 1.0) for n in range(400)]
    first, again = (ratio_uplift(rows, rows[:200], seed=8) for _ in range(2))
    assert first == again
    assert first != ratio_uplift(rows, rows[:200], seed=9)
