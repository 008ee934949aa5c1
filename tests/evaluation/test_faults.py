"""Every fault kind at 5 %, three seeds: N of N with a verdict, none silently wrong."""

import asyncio

import pytest
from faulty_endpoint import FAULTS, Endpoint, answer, serving

from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions

SEEDS = (1, 2, 3)


PATIENT_S = 30.0
"""Where no answer hangs, silence is only this machine's: under load the endpoint's thread waits."""


def evaluated(make_project, faults, seed, *, items, stall_s):
    stall_s = stall_s if "hang" in faults else PATIENT_S
    endpoint = Endpoint(faults=faults, seed=seed)
    with serving(endpoint) as url:
        project = make_project(url, items=items, stall_timeout_s=stall_s, attempt_timeout_s=30)
        options = EvalOptions(evalset="bench", concurrency=16)
        outcome = asyncio.run(evaluate(project, options))
    return endpoint, outcome


def check(endpoint, outcome, items):
    assert outcome.report.status == "complete"
    assert outcome.report.counts == {
        "passed": items,
        "failed": 0,
        "unscored": 0,
        "errored": 0,
        "missing": 0,
    }
    assert all(r.reply == answer(int(r.item_id[-4:])) for r in outcome.run.results())
    retries = outcome.report.incidents["provider retries"]
    asked_again = endpoint.calls.total() - 2 * items
    if "hang" in endpoint.faults:  # a slow answer may be taken for a hung one: one more retry
        assert retries >= asked_again >= endpoint.injected.total()
    else:
        assert retries == asked_again == endpoint.injected.total()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_one_kind_is_retried_and_nothing_is_silently_wrong(make_project, kind, seed):
    items = 40
    endpoint, outcome = evaluated(make_project, {kind: 0.05}, seed, items=items, stall_s=0.5)
    assert endpoint.injected[kind] >= 1
    check(endpoint, outcome, items)


@pytest.mark.accept
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_of_one_kind_at_full_size(make_project, kind, seed):
    items = 500
    endpoint, outcome = evaluated(make_project, {kind: 0.05}, seed, items=items, stall_s=2.0)
    assert endpoint.injected[kind] >= 25
    check(endpoint, outcome, items)


def test_all_faults_at_once_leave_every_item_with_a_verdict(make_project):
    items = 60
    faults = dict.fromkeys(FAULTS, 0.03)
    endpoint, outcome = evaluated(make_project, faults, 7, items=items, stall_s=0.5)
    assert len(endpoint.injected) >= 5
    check(endpoint, outcome, items)


def test_an_endpoint_that_always_fails_some_items_errors_those_and_no_others(make_project):
    endpoint = Endpoint()
    whole = endpoint._answer

    async def refusing(request, body):
        text = body["messages"][1]["content"] if len(body["messages"]) > 1 else ""
        if "SID=7 " in text or "SID=7 " in body["messages"][0]["content"]:
            endpoint.faults = {"500": 1.0}
        response = await whole(request, body)
        endpoint.faults = {}
        return response

    endpoint._answer = refusing
    with serving(endpoint) as url:
        project = make_project(url, items=20, max_attempts=2)
        outcome = asyncio.run(evaluate(project, EvalOptions(evalset="bench", concurrency=1)))
    assert outcome.report.counts["errored"] == 1
    assert outcome.report.counts["passed"] == 19
    outcome.check()
    bad = outcome.run.result("item-0007")
    assert bad.state == "errored"
    assert bad.error.startswith("policy: server")
