"""Paired differences, McNemar and the sign-flip test."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.binary import binomial_p
from harness_cli.stats.paired import mcnemar, paired, sign_flip_p

DIFFS = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=9)


def test_no_pairs_say_nothing():
    found = paired([])
    assert (found.n, found.mean, found.low, found.p_le_0, found.method) == (
        0, None, None, None, "no pairs",
    )  # fmt: skip


def test_better_worse_and_ties_add_up():
    found = paired([1.0, 0.5, 0.0, 0.0, -1.0])
    assert (found.better, found.worse, found.ties, found.tie_rate) == (2, 1, 2, 0.4)
    assert found.t is not None
    assert found.mean == pytest.approx(0.1)


def test_the_t_interval_stands_beside_only_below_a_hundred_pairs():
    assert paired([0.0, 1.0] * 49).t is not None
    assert paired([0.0, 1.0] * 50).t is None


@pytest.mark.parametrize(
    ("n", "better", "worse", "mean", "low", "high", "tolerance"),
    [
        # TR Table 15, "Ours − Base" on IFEval, n = 541: +2.03 [−1.11, +5.18]. The number of changed
        # answers is not printed; 49 gained and 38 lost give the printed mean and, within 0.2
        # points, the printed ends.
        (541, 43, 32, 2.03, -1.11, 5.18, 0.25),
        # "Ours − Naive SFT": +8.50 [+4.44, +12.38]; 87 gained, 41 lost.
        (541, 87, 41, 8.50, 4.44, 12.38, 0.25),
        # "Naive SFT − Base": −6.47 [−10.72, −2.22]; 51 gained, 86 lost.
        (541, 51, 86, -6.47, -10.72, -2.22, 0.25),
        # T1, Accuracy, n = 978: +6.95 [+4.60, +9.41]; 105 gained, 37 lost.
        (978, 105, 37, 6.95, 4.60, 9.41, 0.25),
    ],
)
def test_contrasts_of_the_report_come_out(n, better, worse, mean, low, high, tolerance):
    found = paired([1.0] * better + [-1.0] * worse + [0.0] * (n - better - worse))
    assert 100 * found.mean == pytest.approx(mean, abs=0.01)
    assert 100 * found.low == pytest.approx(low, abs=tolerance)
    assert 100 * found.high == pytest.approx(high, abs=tolerance)


def test_p_boot_of_the_report_comes_out():
    # TR Table 15: P_boot(Δ ≤ 0) 0.1134 at +2.03 and 0.9992 at −6.47.
    assert paired([1.0] * 43 + [-1.0] * 32 + [0.0] * 466).p_le_0 == pytest.approx(0.1134, abs=0.006)
    assert paired([1.0] * 51 + [-1.0] * 86 + [0.0] * 404).p_le_0 == pytest.approx(0.9992, abs=5e-4)


@given(DIFFS)
def test_sign_flips_are_counted_exactly(diffs):
    total = abs(sum(diffs))
    sums = [
        abs(sum(s * abs(d) for s, d in zip(signs, diffs, strict=True)))
        for signs in product((1, -1), repeat=len(diffs))
    ]
    share = sum(s >= total - 1e-9 for s in sums) / len(sums)
    assert sign_flip_p(diffs) == pytest.approx(share, abs=1e-9)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 5))
def test_on_binary_pairs_sign_flips_are_mcnemar(gained, lost, both):
    a = [0.0] * gained + [1.0] * lost + [1.0] * both
    b = [1.0] * gained + [0.0] * lost + [1.0] * both
    found = mcnemar(a, b)
    assert (found.gained, found.lost) == (gained, lost)
    flips = sign_flip_p([y - x for x, y in zip(a, b, strict=True)])
    assert flips == pytest.approx(found.p, abs=1e-9)


def test_off_the_lattice_sign_flips_are_drawn():
    values = np.random.default_rng(0).normal(0.3, 1, size=200)
    p = sign_flip_p(values)
    assert 0 < p < 0.01


def test_mcnemar_refuses_half_scores():
    with pytest.raises(ValueError, match="0 and 1"):
        mcnemar([0.5], [1.0])
    with pytest.raises(ValueError, match="no pairs"):
        mcnemar([1.0], [1.0, 0.0])


def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs():
    assert mcnemar([0] * 9 + [1] * 2, [1] * 9 + [0] * 2).p == pytest.approx(binomial_p(9, 11))
