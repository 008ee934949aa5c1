"""Binomial, preference, Holm, pass^k, spread, power, percentiles, A/B."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.binary import binomial_p, preference
from harness_cli.stats.multiple import holm
from harness_cli.stats.online import assign, bucket, ratio_uplift
from harness_cli.stats.percentiles import across_runs, percentile
from harness_cli.stats.power import (
    can_pass,
    difference_sd,
    gate_items_needed,
    items_needed,
    minimum_detectable,
    noninferiority_power,
    power_of,
)
from harness_cli.stats.trials import pass_hat_k, sigma_reading, spread


def test_the_blind_test_of_the_report_comes_out():
    found = preference(35, 1, ties=64)
    assert found.win_rate == pytest.approx(0.972, abs=5e-4)  # TR §5.6: 97.2 %
    assert found.p == pytest.approx(1.077e-9, rel=1e-3)
    assert found.ties == 64


def test_a_blind_test_of_ties_only_decides_nothing():
    found = preference(0, 0, ties=5)
    assert (found.win_rate, found.interval, found.p) == (None, None, 1.0)


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.5, 0.3, 0.9]))
def test_the_binomial_test_agrees_with_scipy(k, more, p):
    stats = pytest.importorskip("scipy.stats")
    n = k + more
    assert binomial_p(k, n, p) == pytest.approx(stats.binomtest(k, n, p).pvalue, rel=1e-6)


def test_a_count_beyond_n_is_refused():
    with pytest.raises(ValueError, match="no count"):
        binomial_p(4, 3)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_monotone_and_never_below_the_raw_p(ps):
    adjusted = holm(ps)
    assert all(a >= p or math.isclose(a, p) for a, p in zip(adjusted, ps, strict=True))
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    ranked = [adjusted[i] for i in order]
    assert ranked == sorted(ranked)
    assert all(a <= 1 for a in adjusted)


def test_holm_gives_the_textbook_values():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


T2_SFT = [(71.3, 51.0, 73.0), (69.7, 59.0, 75.0), (66.2, 58.5, 72.1), (63.8, 55.0, 72.5),
          (66.2, 54.0, 74.8)]  # fmt: skip
T2_RL = [(67.5, 62.5, 87.1), (68.6, 55.0, 82.7), (69.1, 55.0, 84.6), (67.8, 56.0, 88.2),
         (67.3, 55.5, 86.8)]  # fmt: skip


def _column(runs, i):
    return [run[i] for run in runs]


@pytest.mark.parametrize(
    ("a", "b", "delta", "rounded", "sigma", "significance", "reading"),
    [
        # T2, "Evaluation Details": retail Δ 0.7 (0.6 from raw means), σ 3.1, 0.2 σ.
        (_column(T2_SFT, 0), _column(T2_RL, 0), 0.6, 0.7, 3.1, 0.2, "within random variation"),
        (_column(T2_SFT, 1), _column(T2_RL, 1), 1.3, 1.3, 4.6, 0.3, "within random variation"),
        (_column(T2_SFT, 2), _column(T2_RL, 2), 12.4, 12.4, 2.6, 4.8, "definitive"),
        # Average over the three domains first: Δ 4.7 printed, 4.8 from raw means, 2.3 σ.
        ([sum(r) / 3 for r in T2_SFT], [sum(r) / 3 for r in T2_RL], 4.8, 4.7, 2.0, 2.3,
         "significant"),
    ],
)  # fmt: skip
def test_spread_over_runs_gives_the_table_of_t2(a, b, delta, rounded, sigma, significance, reading):
    found = spread(a, b)
    assert round(found.delta, 1) == delta
    assert found.delta_rounded == pytest.approx(rounded)
    assert found.sigma_combined == pytest.approx(sigma, abs=0.07)
    assert found.significance == pytest.approx(significance, abs=0.06)
    assert found.reading == reading


def test_no_spread_has_no_significance():
    assert spread([1.0], [2.0]).significance is None
    assert sigma_reading(None).startswith("undefined")
    assert [sigma_reading(s) for s in (3.1, -2.5, 1.0, 0.9)] == [
        "definitive", "significant", "suggestive", "within random variation",
    ]  # fmt: skip


@given(st.integers(1, 7), st.data())
def test_pass_hat_k_is_the_share_of_k_subsets_that_all_pass(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    outcomes = [1] * c + [0] * (n - c)
    subsets = list(combinations(outcomes, k))
    share = sum(all(s) for s in subsets) / len(subsets)
    assert pass_hat_k([(n, c)], k) == pytest.approx(share)


def test_pass_hat_k_is_undefined_with_too_few_trials():
    assert pass_hat_k([(4, 4), (1, 1)], 2) is None
    assert pass_hat_k([], 1) is None
    assert pass_hat_k([(4, 2), (4, 4)], 1) == 0.75
    with pytest.raises(ValueError, match="k starts at 1"):
        pass_hat_k([(1, 1)], 0)
    with pytest.raises(ValueError, match="5 passes of 4"):
        pass_hat_k([(4, 5)], 1)


def test_power_and_sample_size_undo_each_other():
    n = items_needed(0.03, 0.4)
    assert n == 1396  # ((1.959964 + 0.841621) · 0.4 / 0.03)²
    assert power_of(n, 0.4, 0.03) == pytest.approx(0.8, abs=0.001)
    found = minimum_detectable(n, 0.4)
    assert found is not None
    assert found.difference == pytest.approx(0.03, abs=1e-4)
    assert items_needed(0.0, 0.4) is None
    assert minimum_detectable(0, 0.4) is None


def test_a_simulation_sees_the_difference_as_often_as_promised():
    rng = np.random.default_rng(1)
    n, seen = 400, 0
    sd = difference_sd(0.8)
    found = minimum_detectable(n, sd)
    assert found is not None
    gain = found.difference
    for _ in range(400):
        draws = rng.choice([1, -1, 0], size=n, p=[0.1 + gain / 2, 0.1 - gain / 2, 0.8])
        half = 1.96 * draws.std(ddof=1) / math.sqrt(n)
        seen += draws.mean() - half > 0
    assert 0.73 < seen / 400 < 0.87


def test_a_gate_that_cannot_pass_says_so_and_names_the_n():
    assert not can_pass(100, 0.45, 0.02)
    needed = gate_items_needed(0.45, 0.02, power=0.8)
    assert needed is not None
    assert noninferiority_power(needed, 0.45, 0.02) == pytest.approx(0.8, abs=0.001)
    assert can_pass(needed, 0.45, 0.02)
    assert gate_items_needed(0.45, 0.02, difference=-0.02) is None
    assert not can_pass(0, 0.45, 0.02)


def test_without_variance_power_is_all_or_nothing():
    assert power_of(10, 0.0, 0.1) == 1.0
    assert power_of(10, 0.0, 0.0) == 0.0
    assert noninferiority_power(10, 0.0, 0.02) == 1.0
    with pytest.raises(ValueError, match="no share"):
        difference_sd(1.2)


@pytest.mark.parametrize(
    ("q", "nearest", "linear"), [(0, 1, 1), (50, 2, 2.5), (95, 4, 3.85), (100, 4, 4), (25, 1, 1.75)]
)
def test_percentiles_follow_their_definition(q, nearest, linear):
    values = [4.0, 1.0, 3.0, 2.0]
    assert percentile(values, q) == nearest
    assert percentile(values, q, "linear") == pytest.approx(linear)
    assert percentile(values, q, "linear") == pytest.approx(np.percentile(values, q))


def test_p95_of_a_hundred_is_the_95th_value():
    assert percentile([float(i) for i in range(1, 101)], 95) == 95.0
    assert percentile([], 50) is None
    with pytest.raises(ValueError, match="no percentile"):
        percentile([1.0], 101)


def test_runs_are_shown_by_mean_and_range():
    found = across_runs([12.9, 13.8, 13.1])
    assert found is not None
    assert (found.low, found.high, found.runs) == (12.9, 13.8, 3)
    assert across_runs([]) is None


@given(st.text(), st.text(max_size=5))
def test_a_user_stays_in_one_place_of_the_unit_interval(user, salt):
    here = bucket(user, salt)
    assert 0 <= here < 1
    assert bucket(user, salt) == here


def test_buckets_are_stable_across_versions_and_even():
    # printf 'saltuser-1' | sha256sum starts with db62e91f…: 0xdb62e91f / 2³².
    assert bucket("user-1", "salt") == pytest.approx(0xDB62E91F / 2**32, abs=1e-9)
    arms = [assign(f"u{i}", "s", {"a": 0.3, "b": 0.5}) for i in range(20_000)]
    assert arms.count("a") / 20_000 == pytest.approx(0.3, abs=0.01)
    assert arms.count("b") / 20_000 == pytest.approx(0.5, abs=0.01)
    assert arms.count(None) / 20_000 == pytest.approx(0.2, abs=0.01)
    with pytest.raises(ValueError, match="at most 1"):
        assign("u", "s", {"a": 0.8, "b": 0.4})


def test_uplift_is_of_ratios_and_its_interval_covers_the_truth():
    rng = np.random.default_rng(2)
    control = [(float(rng.poisson(1.0 * v)), float(v)) for v in rng.integers(1, 6, 3000)]
    treatment = [(float(rng.poisson(1.1 * v)), float(v)) for v in rng.integers(1, 6, 1500)]
    found = ratio_uplift(control, treatment, seed=1, resamples=2000)
    assert found.uplift == pytest.approx(0.1, abs=0.05)
    assert found.interval is not None
    assert found.interval.low < 0.1 < found.interval.high
    assert (found.users_control, found.users_treatment) == (3000, 1500)
    with pytest.raises(ValueError, match="nothing to divide by"):
        ratio_uplift([], treatment)
