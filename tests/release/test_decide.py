"""The decision over gates, and the order in which outcomes win."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_cli.records.gates import GateResult
from harness_cli.release.decide import EXIT_CODES, decide


def gate(outcome: str, mode: str = "enforce", name: str = "g") -> GateResult:
    return GateResult(name=name, kind="judge", mode=mode, outcome=outcome, summary="")


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["PASS"], 0),
        (["PASS", "PENDING"], 3),
        (["PENDING", "INCONCLUSIVE"], 11),
        (["PENDING", "INCONCLUSIVE", "FAIL"], 10),
        (["FAIL", "DRIFT"], 12),
        (["DRIFT", "ERROR", "FAIL"], 1),
    ],
)
def test_of_several_outcomes_the_first_of_1_12_10_11_3_wins(outcomes, code):
    assert decide([gate(o) for o in outcomes]).exit_code == code


def test_a_gate_in_dry_run_never_decides():
    assert decide([gate("PASS"), gate("FAIL", mode="dry_run")]).promotes


def test_no_enforced_gate_at_all_does_not_promote():
    assert decide([]).exit_code == 11
    assert decide([gate("PASS", mode="dry_run")]).exit_code == 11


@given(st.lists(st.sampled_from(sorted(EXIT_CODES)), min_size=1))
def test_only_all_passes_promote_and_order_does_not_matter(outcomes):
    results = [gate(o) for o in outcomes]
    assert decide(results).promotes == (set(outcomes) == {"PASS"})
    assert decide(results).outcome == decide(results[::-1]).outcome


def test_what_blocks_is_named():
    assert decide([gate("PASS", name="a"), gate("FAIL", name="b")]).blocking == ("b",)
