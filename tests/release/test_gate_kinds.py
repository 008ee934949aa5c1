"""What the gates ask beyond a mean: percentiles with intervals, categories, must-pass, repeats."""

import math
import random

import pytest

from harness_cli.records.gates import Gate, GatesFile
from harness_cli.records.manifest import EvidenceLine
from harness_cli.release.evidence import RunEvidence
from harness_cli.release.gates.all import run_gates
from harness_cli.release.gates.facts import Facts
from harness_cli.stats.percentiles import percentile_interval


def lines(scores, *, category="product-qa", walls=None, repeats=1, states=None):
    return tuple(
        EvidenceLine(
            run="r",
            item_id=f"{category}-{n // repeats:04d}",
            repeat=n % repeats,
            category=category,
            state=states[n] if states else ("passed" if s == 1 else "failed"),
            scores={"avg": s},
            wall_s=walls[n] if walls else 0.5,
        )
        for n, s in enumerate(scores)
    )


def evidence(made, **more):
    settings = {"run": "r", "planned": len(made), "judge_id": "j", "evalset_digest": "d"}
    return RunEvidence(lines=made, **{**settings, **more})


def ask(gate: Gate, **facts):
    return run_gates(GatesFile(gates=(gate,)), Facts(**facts))[0]


def business(new, old, **settings):
    gate = Gate(name="g", kind="regression", evalset="e", metric="avg", **settings)
    runs, before = {"g": evidence(new)}, {"g": evidence(old)}
    return ask(gate, runs=runs, incumbent_runs=before, incumbent="m1")


def test_a_category_that_got_worse_fails_though_the_mean_holds():
    many = lines([1.0] * 1000)
    result = business(
        (*many, *lines([0.0] * 12, category="refusal")),
        (*many, *lines([1.0] * 12, category="refusal")),
    )
    assert result.outcome == "FAIL"
    assert "worse after Holm: refusal -1.0000" in result.summary
    assert result.numbers["worse_categories"]["refusal"]["p_holm"] < 0.05


@pytest.mark.parametrize(
    ("n", "worse", "outcome"), [(7, 7, "PASS"), (12, 2, "PASS"), (12, 12, "FAIL")]
)
def test_few_items_or_little_difference_are_no_category_regression(n, worse, outcome):
    many = lines([1.0] * 1000)
    new = (*many, *lines([0.0] * worse + [1.0] * (n - worse), category="faq"))
    assert business(new, (*many, *lines([1.0] * n, category="faq"))).outcome == outcome


def test_holm_asks_more_of_a_category_among_many():
    def side(first):
        made = [line for c in range(20) for line in lines([1.0] * 12, category=f"c{c:02d}")]
        return (*made, *lines(first, category="first"))

    one = business(lines([0.0] * 6 + [1.0] * 400), lines([1.0] * 406))
    assert "worse_categories" in one.numbers
    among = business(side([0.0] * 6 + [1.0] * 400), side([1.0] * 406))
    assert "worse_categories" not in among.numbers


def test_a_must_pass_item_is_named_by_its_id():
    old = lines([1.0] * 400)
    new = lines([1.0] * 399 + [0.0])
    assert business(new, old).outcome == "PASS"
    result = business(new, old, must_pass=("product-qa-0399",))
    assert (result.outcome, result.summary) == ("FAIL", "must-pass items broke: product-qa-0399")


def test_a_must_pass_item_has_to_pass_even_where_it_never_did():
    """Not to have got worse is not enough, nor to have nothing to be compared with."""
    made = lines([1.0] * 399 + [0.0])
    kept = business(made, made, must_pass=("product-qa-0399",))
    assert (kept.outcome, kept.summary) == ("FAIL", "must-pass items fail: product-qa-0399")
    assert kept.numbers["delta"] == 0
    gate = Gate(name="g", kind="regression", evalset="e", must_pass=("product-qa",))
    assert ask(gate, runs={"g": evidence(made)}).outcome == "FAIL"
    assert ask(gate, runs={"g": evidence(lines([1.0] * 400))}).outcome == "PASS"
    silent = lines([1.0] * 400, states=["passed"] * 399 + ["unscored"])
    assert ask(gate, runs={"g": evidence(silent)}).outcome == "FAIL"


@pytest.mark.parametrize(("need", "outcome"), [(2, "PASS"), (3, "FAIL")])
def test_a_must_pass_item_over_repeats_passes_k_of_n(need, outcome):
    made = lines([1, 0, 1] * 40, repeats=3)
    gate = Gate(name="g", kind="regression", evalset="e", must_pass=("product-qa",))
    assert ask(gate, runs={"g": evidence(made, repeat=3, need=need)}).outcome == outcome


@pytest.mark.parametrize(("need", "mean"), [(1, 1.0), (2, 1.0), (3, 0.0), (None, 1.0)])
def test_repeats_give_an_item_one_verdict_of_k_of_n(need, mean):
    made = lines([1, 0, 1] * 40, repeats=3)
    gate = Gate(name="g", kind="capability", evalset="e", metric="passed")
    result = ask(gate, runs={"g": evidence(made, repeat=3, need=need)})
    assert (result.numbers["mean"], result.numbers["n"]) == (mean, 40)


def capability(new, base, **more):
    gate = Gate(name="g", kind="capability", evalset="e", metric="passed", base_policy="small")
    return ask(gate, runs={"g": evidence(new)}, base_runs=base, **more)


def test_a_capability_gate_holds_against_the_base_policy_as_well():
    good, bad = lines([1.0] * 200), lines([0.0] * 60 + [1.0] * 140)
    equal = capability(good, {"g": evidence(good)})
    assert equal.outcome == "PASS"
    assert "base policy: Δ +0.0000" in equal.summary
    assert capability(bad, {"g": evidence(good)}).outcome == "FAIL"
    old = {"g": evidence(bad)}
    worse = capability(bad, {"g": evidence(good)}, incumbent_runs=old, incumbent="m1")
    assert (worse.outcome, worse.numbers["delta"]) == ("FAIL", 0.0)
    assert worse.numbers["base_delta"] == -0.3
    assert capability(good, {}).outcome == "INCONCLUSIVE"


def latency(walls, **settings):
    gate = Gate(name="g", kind="latency", evalset="e", warm_up=0, attainment=0.9, **settings)
    return ask(gate, runs={"g": evidence(lines([1.0] * len(walls), walls=walls))})


def test_latency_gives_the_percentile_and_the_attainment_with_their_intervals():
    walls = [n / 100 for n in range(1, 201)]
    result = latency(walls)
    numbers = result.numbers
    assert (result.outcome, numbers["p95_s"]) == ("PASS", 1.9)
    assert numbers["p95_low_s"] < 1.9 < numbers["p95_high_s"]
    assert numbers["attainment_low"] < 1.0 == numbers["attainment_high"]
    assert "P95 1.90 [" in result.summary


@pytest.mark.parametrize(
    ("n", "bound", "outcome"),
    [(200, 3.0, "PASS"), (200, 1.9, "INCONCLUSIVE"), (200, 1.0, "FAIL"), (50, 3.0, "INCONCLUSIVE")],
)
def test_a_bound_on_the_percentile_is_held_by_its_interval(n, bound, outcome):
    assert latency([2 * k / n for k in range(1, n + 1)], p95_s=bound).outcome == outcome


@pytest.mark.parametrize(
    ("declared", "had", "outcome"),
    [
        (None, (1,), "PASS"),
        (None, (), "PASS"),  # an older manifest, which bound no number
        (None, (8,), "INCONCLUSIVE"),
        (4, (4,), "PASS"),
        (4, (1,), "INCONCLUSIVE"),
        (4, (4, 8), "INCONCLUSIVE"),
    ],
)
def test_latency_is_taken_at_the_declared_concurrency_alone(declared, had, outcome):
    more = {} if declared is None else {"concurrency": declared}
    gate = Gate(name="g", kind="latency", evalset="e", minimum_n=100, **more)
    result = ask(gate, runs={"g": evidence(lines([1.0] * 110), concurrency=had)})
    assert result.outcome == outcome
    if outcome == "INCONCLUSIVE":
        assert result.needs == f"harness eval e --profile replay --concurrency {declared or 1}"


def test_cached_latency_samples_decide_nothing():
    gate = Gate(name="g", kind="latency", evalset="e", warm_up=0)
    result = ask(gate, runs={"g": evidence(lines([1.0] * 200), fresh=False)})
    assert result.outcome == "INCONCLUSIVE"
    assert "fresh samples only" in result.summary


def test_the_percentile_interval_covers_as_it_says():
    drawn = random.Random(7)
    truth, hits, tries = -math.log(0.05), 0, 400
    for _ in range(tries):
        low, high = percentile_interval([drawn.expovariate(1) for _ in range(150)], 95)
        hits += low <= truth <= high
    assert hits / tries >= 0.93


def test_too_few_values_leave_the_upper_end_open():
    assert percentile_interval([1.0] * 71, 95)[1] is None
    assert percentile_interval([1.0] * 73, 95)[1] == 1.0
    assert percentile_interval([], 95) == (None, None)
