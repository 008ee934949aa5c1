from hypothesis import given
from hypothesis import strategies as st

from harness_cli.stats.percentiles import percentile
from harness_cli.stats.weighted import weighted_percentile

VALUES = st.lists(st.integers(-50, 50), min_size=1, max_size=30)
Q = st.sampled_from([0, 1, 25, 50, 90, 95, 99, 100])


@given(VALUES, Q)
def test_equal_weights_give_the_nearest_rank(values, q):
    assert weighted_percentile(values, [2.5] * len(values), q) == percentile(values, q)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), min_size=1, max_size=20), Q)
def test_a_weight_of_n_is_n_equal_values(pairs, q):
    repeated = [value for value, weight in pairs for _ in range(weight)]
    if not repeated:
        return
    values, weights = zip(*pairs, strict=True)
    assert weighted_percentile(values, weights, q) == percentile(repeated, q)
