"""A perfect policy under the shipped harness: no hook objects, every fact is said, judges agree.

An item that even this policy fails is a fault of the item, of a hook, or of a judge.
"""

import asyncio
from collections import Counter

import pytest
from gold import Gold
from test_scenarios import ITEMS, SCENARIOS, WORLD
from test_shipped_harness import STATE

from harness_cli.judges.grounded.judge import GroundedJudge
from harness_cli.records.trajectory import Route, StopReason


@pytest.fixture(scope="module")
def golds():
    gold = Gold(STATE, WORLD, SCENARIOS)
    chosen = [i for i in ITEMS if i.split == "dev"] + [i for i in ITEMS if i.split == "test"][::4]
    return [(item, gold.run(item)) for item in chosen]


def test_no_hook_objects_to_a_perfect_policy(golds):
    objected = []
    for item, trajectory in golds:
        hooks = [h for h in trajectory.hooks if h.outcome != "allow"]
        hooks += [h for s in trajectory.steps for h in s.hooks if h.outcome != "allow"]
        ended = trajectory.stop in (StopReason.COMPLETED, StopReason.REFUSED)
        if hooks or not ended or trajectory.route is not Route.NORMAL:
            objected.append((item.id, [(h.hook, h.reason) for h in hooks], trajectory.error))
    assert not objected


def test_every_expected_call_is_answered(golds):
    failed = [
        (item.id, call.name, call.result.content)
        for item, trajectory in golds
        for call in trajectory.calls
        if not call.result.ok
    ]
    assert not failed


def test_the_loaded_skills_are_the_expected_ones(golds):
    for item, trajectory in golds:
        assert trajectory.skills_loaded == item.expect.skills, item.id


def test_an_item_that_wants_silence_gets_it(golds):
    for item, trajectory in golds:
        assert bool(trajectory.reply) != ("silent" in item.expect.answers), item.id


def test_the_grounded_judge_finds_nothing_false_in_a_perfect_policy(golds):
    judge = GroundedJudge()

    async def verdicts():
        return [await judge.judge(item, trajectory, WORLD) for item, trajectory in golds]

    scored = asyncio.run(verdicts())
    wrong = [
        (item.id, trajectory.reply, [(f.kind, f.detail) for f in verdict.findings])
        for (item, trajectory), verdict in zip(golds, scored, strict=True)
        if verdict.scores["accuracy"] != 1 or any(a.passed is False for a in verdict.assertions)
    ]
    assert not wrong
    missed = Counter(
        item.category
        for (item, _), verdict in zip(golds, scored, strict=True)
        if verdict.scores["effectiveness"] != 1
    )
    assert missed.total() / len(golds) <= 0.05, missed
