"""The JUnit file of a decision: a case a gate, and nothing green that did not pass."""

from xml.etree import ElementTree

import pytest

from harness_cli.records.gates import GateResult
from harness_cli.release.decide import EXIT_CODES, decide
from harness_cli.release.junit import TAGS, gates_junit


def gate(outcome: str, **given) -> GateResult:
    fields = {"name": "business", "kind": "regression", "summary": "avg -0.04 [-0.06, -0.02]"}
    return GateResult(outcome=outcome, **(fields | given))


def suite(*gates: GateResult) -> ElementTree.Element:
    return ElementTree.fromstring(gates_junit(gates, {"policy": "pro@1", "manifest": ""}))[0]


@pytest.mark.parametrize(
    ("outcome", "tag"),
    [
        ("PASS", None),
        ("FAIL", "failure"),
        ("INCONCLUSIVE", "failure"),
        ("ERROR", "error"),
        ("DRIFT", "error"),
        ("PENDING", "skipped"),
    ],
)
def test_every_outcome_has_its_element(outcome, tag):
    found = [child.tag for child in suite(gate(outcome)).find("testcase")]
    assert found == ([] if tag is None else [tag])


def test_every_outcome_that_there_is_has_one():
    assert set(TAGS) == set(EXIT_CODES)


def test_a_gate_that_only_watches_is_skipped_and_says_what_it_saw():
    skipped = suite(gate("FAIL", mode="dry_run")).find("testcase/skipped")
    assert skipped.get("message") == "dry_run, FAIL: avg -0.04 [-0.06, -0.02]"


def test_counts_are_those_of_the_elements():
    found = suite(*(gate(o) for o in EXIT_CODES))
    assert [found.get(n) for n in ("tests", "failures", "errors", "skipped")] == list("6221")


def test_what_it_needs_and_its_numbers_are_there_whatever_they_hold():
    failed = gate("FAIL", summary='<b> & "x"\x00', needs="n = 900", numbers={"delta": "]]><&"})
    failure = suite(failed).find("testcase/failure")
    assert failure.get("message") == 'FAIL: <b> & "x"\ufffd; needs n = 900'
    assert failure.text == '{"delta":"]]><&"}'
    assert failure.get("type") == "FAIL"


def test_only_what_is_known_is_a_property():
    names = [p.get("name") for p in suite(gate("PASS")).iter("property")]
    assert names == ["policy"]


@pytest.mark.parametrize("outcome", ["FAIL", "INCONCLUSIVE", "ERROR", "DRIFT"])
def test_a_decision_that_is_not_waiting_for_a_person_is_red_in_the_file_too(outcome):
    gates = (gate("PASS"), gate(outcome))
    assert not decide(gates).promotes
    assert {c.tag for case in suite(*gates) for c in case} & {"failure", "error"}
