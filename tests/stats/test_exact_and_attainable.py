"""Exact shares, the seeded form of the paired bootstrap, attainable p, T2's whole table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.binary import binomial_p
from harness_cli.stats.intervals import clopper_pearson, wilson
from harness_cli.stats.paired import mcnemar, paired
from harness_cli.stats.power import attainable_p, changed_needed
from harness_cli.stats.trials import sigma_table

DOMAINS = ("retail", "airline", "telecom")
SFT = [(71.3, 51.0, 73.0), (69.7, 59.0, 75.0), (66.2, 58.5, 72.1), (63.8, 55.0, 72.5),
       (66.2, 54.0, 74.8)]  # fmt: skip
RL = [(67.5, 62.5, 87.1), (68.6, 55.0, 82.7), (69.1, 55.0, 84.6), (67.8, 56.0, 88.2),
      (67.3, 55.5, 86.8)]  # fmt: skip


@given(st.integers(0, 80), st.integers(1, 80), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_exact_interval_agrees_with_scipy(k, more, level):
    stats = pytest.importorskip("scipy.stats")
    n = k + more
    mine = clopper_pearson(k, n, level=level)
    theirs = stats.binomtest(k, n).proportion_ci(level, method="exact")
    assert (mine.low, mine.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_exact_interval_covers_always_and_wilsons_on_average():
    stats = pytest.importorskip("scipy.stats")
    n, exact, score = 20, [], []
    for p in [i / 200 for i in range(1, 200)]:
        mass = [stats.binom.pmf(k, n, p) for k in range(n + 1)]
        for kind, covers in ((clopper_pearson, exact), (wilson, score)):
            ends = [kind(k, n) for k in range(n + 1)]
            hit = [m for m, e in zip(mass, ends, strict=True) if e.low <= p <= e.high]
            covers.append(sum(hit))
    assert min(exact) >= 0.95 - 1e-9
    assert min(score) < 0.95
    assert sum(score) / len(score) == pytest.approx(0.95, abs=0.01)


def test_the_seeded_form_of_the_paired_bootstrap_is_the_exact_one_but_for_its_noise():
    diffs = [1.0] * 105 + [-1.0] * 37 + [0.0] * 836  # TR Table 15, T1 Accuracy, n = 978
    exact = paired(diffs)
    ends = [paired(diffs, resamples=10_000, seed=s) for s in range(5)]
    assert {e.method for e in ends} == {f"bootstrap 10,000, seed {s}" for s in range(5)}
    assert paired(diffs, resamples=10_000, seed=3) == ends[3]
    for found in ends:
        assert found.low == pytest.approx(exact.low, abs=0.0011)
        assert found.high == pytest.approx(exact.high, abs=0.0011)
        assert found.p_le_0 == pytest.approx(exact.p_le_0, abs=0.0005)


def test_the_seeded_form_draws_single_values_where_they_are_many():
    values = [n / 7 + (n * n % 11) / 13 for n in range(90)]
    found = paired(values, resamples=2000, seed=1)
    assert found.t is not None
    assert found.low == pytest.approx(found.t.low, abs=0.25)
    assert found.high == pytest.approx(found.t.high, abs=0.25)


@given(st.integers(1, 30))
def test_attainable_p_is_the_least_that_mcnemar_can_give(changed):
    least = mcnemar([0.0] * changed + [1.0], [1.0] * changed + [1.0]).p
    assert attainable_p(changed) == pytest.approx(least)
    assert attainable_p(changed) == pytest.approx(binomial_p(changed, changed))


@given(st.sampled_from([0.05, 0.01, 0.001]), st.integers(1, 20))
def test_so_many_items_must_change_and_one_fewer_is_too_few(alpha, comparisons):
    needed = changed_needed(alpha, comparisons)
    assert attainable_p(needed, comparisons) <= alpha
    assert attainable_p(needed - 1, comparisons) > alpha


def test_six_items_must_change_for_five_percent():
    assert changed_needed() == 6
    assert attainable_p(5) == 0.0625
    assert attainable_p(0.9) == 1.0
    with pytest.raises(ValueError, match="no chance"):
        changed_needed(0.0)


def test_the_whole_table_of_t2_comes_out():
    runs = [[dict(zip(DOMAINS, r, strict=True)) for r in side] for side in (SFT, RL)]
    table = sigma_table(*runs)
    shown = {
        name: (round(s.delta, 1), s.delta_rounded, round(s.significance, 1), s.reading)
        for name, s in table.items()
    }
    assert shown == {
        "retail": (0.6, 0.7, 0.2, "within random variation"),
        "airline": (1.3, 1.3, 0.3, "within random variation"),
        "telecom": (12.4, 12.4, 4.8, "definitive"),
        "overall": (4.8, 4.7, 2.3, "significant"),
    }
    # T2's "± " columns: 67.4 ± 3.0, 65.5 ± 1.5; 85.9 ± 2.2, 70.2 ± 1.4.
    assert (round(table["retail"].mean_a, 1), round(table["retail"].sd_a, 1)) == (67.4, 3.0)
    assert (round(table["overall"].mean_a, 1), round(table["overall"].sd_a, 1)) == (65.5, 1.5)
    assert (round(table["telecom"].mean_b, 1), round(table["telecom"].sd_b, 1)) == (85.9, 2.2)
    assert (round(table["overall"].mean_b, 1), round(table["overall"].sd_b, 1)) == (70.2, 1.4)


def test_runs_of_other_domains_make_no_table():
    with pytest.raises(ValueError, match="covers"):
        sigma_table([{"x": 1.0}], [{"y": 1.0}])
    with pytest.raises(ValueError, match="no run"):
        sigma_table([], [{"y": 1.0}])
    assert list(sigma_table([{"x": 1.0}], [{"x": 2.0}])) == ["x"]
