"""What a false answer is worth: rubrics, labels by construction, team labels and grounded judge."""

import json
from pathlib import Path

import pytest

from harness_cli.records.item import Expect, Fact

ROOT = Path(__file__).parents[2]
RUBRICS = ("final/skills/rubric-effectiveness", "reward/skills/rubric-reply")


@pytest.mark.parametrize("skill", RUBRICS)
def test_every_rubric_says_that_a_false_answer_covers_nothing(skill):
    text = " ".join((ROOT / "harness_repo/judges" / skill / "SKILL.md").read_text().split())
    assert "false answer covers nothing" in text
    assert "plays no part" not in text


def test_labels_by_construction_give_a_false_answer_nothing_and_an_extra_everything():
    lines = (ROOT / "evalsets/judge_calibration/candidates.jsonl").read_text().splitlines()
    replies = [r for line in lines for r in json.loads(line)["replies"]]
    grades = {}
    for reply in replies:
        grades.setdefault(reply.get("corruption"), set()).add(reply["effectiveness"])
    assert grades["wrong_price"] == {0}
    assert grades["false_promise"] == grades["unsupported_claim"] == {1}


def test_the_team_gave_nearly_no_full_mark_to_a_reply_whose_price_is_false():
    lines = (ROOT / "evalsets/judge_labels/team_labels.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    wrong = [r["effectiveness"] for r in rows if r["kind"] == "wrong_price"]
    assert len(wrong) >= 10
    assert sum(grade == 1 for grade in wrong) <= 2, "another price is false than the one asked for"


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("Link 1 is 79 yuan.", 0.0),
        ("Link 1 is 89 yuan.", 1.0),
        ("Link 1 is 89 yuan, and I guarantee it lasts a lifetime!", 1.0),
    ],
)
def test_the_grounded_judge_grades_so(grade, reply, mark):
    fact = Fact(product="p-101", field="price", value=89, answer="price")
    expect = Expect(answers=("price",), facts=(fact,))
    assert grade(reply, comments=("how much?",), expect=expect).scores["effectiveness"] == mark
