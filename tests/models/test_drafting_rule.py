import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.models.drafting_rule import (
    Thresholds,
    accepts,
    after_rejection,
    distribution,
    pick,
    shaped,
)

WEIGHTS = st.lists(st.floats(0, 1), min_size=2, max_size=12).filter(lambda w: sum(w) > 1e-3)


def law(weights):
    return np.asarray(weights) / sum(weights)


@given(WEIGHTS, st.data())
def test_exact_thresholds_leave_the_distribution_as_it_is(weights, data):
    p = law(weights)
    draft = data.draw(st.integers(0, len(p) - 1))
    np.testing.assert_allclose(distribution(p, draft), p, atol=1e-12)


@given(WEIGHTS, st.floats(0.05, 1), st.floats(0.05, 1), st.data())
def test_lossy_thresholds_favour_the_draft_and_nothing_else(weights, single, acc, data):
    p = law(weights)
    draft = data.draw(st.integers(0, len(p) - 1))
    made = distribution(p, draft, Thresholds(single, acc))
    assert made.sum() == pytest.approx(1)
    assert made[draft] >= p[draft] - 1e-12
    others = np.delete(made, draft), np.delete(p, draft)
    # Among themselves the others keep their odds.
    np.testing.assert_allclose(others[0] * others[1].sum(), others[1] * others[0].sum(), atol=1e-9)


@given(WEIGHTS, st.floats(0, 1, exclude_max=True), st.data())
def test_nothing_is_sampled_that_the_policy_never_says(weights, u, data):
    p = law(weights)
    draft = data.draw(st.integers(0, len(p) - 1))
    assert p[pick(p, u)] > 0
    if p[draft] == 0:
        assert not accepts(p, draft, u)
    if p[draft] < 1:
        assert after_rejection(p, draft)[draft] == 0 or p[draft] == pytest.approx(1)


@pytest.mark.parametrize(
    ("chance", "u", "thresholds", "taken"),
    [
        (0.4, 0.39, Thresholds(), True),
        (0.4, 0.41, Thresholds(), False),
        (0.5, 0.99, Thresholds(0.5, 0.7), True),  # p ≥ single: always
        (0.35, 0.49, Thresholds(0.5, 0.7), True),  # u ≤ 0.35 / 0.7
        (0.35, 0.51, Thresholds(0.5, 0.7), False),
        (1.0, 0.999, Thresholds(), True),
    ],
)
def test_the_rule_is_sglangs(chance, u, thresholds, taken):
    assert accepts(np.array([chance, 1 - chance]), 0, u, thresholds) is taken


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=20), st.floats(0.1, 2), st.floats(0.05, 1))
def test_top_p_keeps_the_fewest_likeliest_tokens_that_reach_it(logits, temperature, top_p):
    whole = shaped(np.array(logits), temperature, 1.0)
    kept = shaped(np.array(logits), temperature, top_p)
    assert kept.sum() == pytest.approx(1)
    inside = whole[kept > 0]
    assert inside.sum() >= top_p - 1e-9
    assert inside.sum() - inside.min() < top_p or top_p == 1
    if (kept == 0).any():
        assert inside.min() >= whole[kept == 0].max()
