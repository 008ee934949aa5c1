"""Comments come in bursts: the arrival process against its own formulas."""

import random
from statistics import mean, pvariance

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import UsageError
from harness_cli.simulator.live.arrivals import Arrivals, arrival_times

PARAMETERS = st.builds(
    Arrivals,
    base=st.floats(0.01, 0.5),
    branching=st.floats(0, 0.8),
    decay=st.floats(0.05, 2.0),
    stir=st.floats(0, 5),
)


def counts(arrivals: Arrivals, seconds: float, sessions: int, **more) -> list[int]:
    return [
        len(arrival_times(arrivals, seconds, random.Random(f"a/{n}"), **more))
        for n in range(sessions)
    ]


@settings(max_examples=60, deadline=None)
@given(PARAMETERS, st.integers(0, 2**32), st.lists(st.floats(0, 400), max_size=5))
def test_times_ascend_within_the_session_and_the_same_seed_gives_the_same(arrivals, seed, stirs):
    times = arrival_times(arrivals, 300.0, random.Random(seed), happenings=stirs)
    assert times == sorted(times)
    assert len(set(times)) == len(times)
    assert all(0 <= t < 300 for t in times)
    assert times == arrival_times(arrivals, 300.0, random.Random(seed), happenings=stirs)


@pytest.mark.parametrize(
    ("base", "branching", "decay"), [(0.1, 0.0, 0.2), (0.1, 0.5, 0.2), (0.05, 0.7, 0.1)]
)
def test_the_mean_number_is_the_formulas(base, branching, decay):
    arrivals = Arrivals(base=base, branching=branching, decay=decay)
    found = counts(arrivals, 600.0, 400)
    error = (pvariance(found) / len(found)) ** 0.5
    assert abs(mean(found) - arrivals.expected(600.0)) < 4 * error


def test_without_branching_the_process_is_poisson_and_with_it_bursts():
    """Fano factor: 1 for Poisson, towards 1/(1−n)² for long sessions of a Hawkes process."""
    calm = counts(Arrivals(base=0.2, branching=0.0), 600.0, 300)
    wild = counts(Arrivals(base=0.1, branching=0.5, decay=0.5), 600.0, 300)
    assert 0.75 < pvariance(calm) / mean(calm) < 1.3
    assert 2.8 < pvariance(wild) / mean(wild) < 5.5


def test_a_happening_brings_as_many_comments_as_its_size_says():
    still = Arrivals(base=0.05, branching=0.0, decay=0.5, stir=6.0)
    before, after = (mean(counts(still, 200.0, 400, happenings=h)) for h in ((), (50.0, 100.0)))
    assert after - before == pytest.approx(12.0, abs=0.8)
    times = [
        t
        for n in range(200)
        for t in arrival_times(still, 100.0, random.Random(n), happenings=(50.0,))
    ]
    assert sum(50 <= t < 60 for t in times) > 5 * sum(40 <= t < 50 for t in times)


def test_a_session_that_never_stops_commenting_is_refused():
    with pytest.raises(UsageError, match="more than"):
        arrival_times(Arrivals(base=5000.0), 100.0, random.Random(1))
