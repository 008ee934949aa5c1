"""Labels files and what `harness judge agree` reports."""

import asyncio
import json

import pytest

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.bounded_judging import Bounds, judge_within
from harness_cli.judges.agreeing import measure
from harness_cli.judges.label_file import read_labels
from harness_cli.judges.labels import as_item, as_trajectory
from harness_cli.judges.open import open_judge
from harness_cli.records.config import JudgeConfig
from harness_cli.records.verdict import Finding, Verdict

GOOD = {
    "id": "r-1",
    "reply": "It's 89 yuan.",
    "room": "room-beauty",
    "current_link": 1,
    "comments": ["how much"],
    "expect": {
        "answers": ["price"],
        "facts": [{"product": "p-101", "field": "price", "value": 89}],
    },
    "labels": [
        {"annotator": "a", "accuracy": 1, "effectiveness": 1},
        {"annotator": "b", "accuracy": 1, "effectiveness": 0.5},
        {"annotator": "c", "accuracy": 1, "effectiveness": 1},
    ],
}
BAD = {
    **GOOD,
    "id": "r-2",
    "reply": "It's 79 yuan.",
    "corruption": "wrong_price",
    "labels": [
        {"annotator": "a", "accuracy": 0, "effectiveness": 0, "kinds": ["wrong_price"]},
        {"annotator": "b", "accuracy": 0, "effectiveness": 0, "kinds": ["wrong_price"]},
        {"annotator": "c", "accuracy": 1, "effectiveness": 0},
    ],
}


def written(folder, *lines):
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def judged(judge, replies, world):
    cases = [(as_item(r, world), as_trajectory(r)) for r in replies]
    return asyncio.run(judge_within(judge, cases, world, Bounds()))


def test_a_labels_file_is_judged_and_measured(tmp_path, judge, world):
    replies = read_labels(written(tmp_path, GOOD, BAD))
    verdicts = judged(judge, replies, world)
    report = measure(judge.id, replies, verdicts)
    assert (report.n, report.unscored, report.annotators) == (2, 0, ("a", "b", "c"))
    assert report.accuracy.raw == report.effectiveness.raw == 1.0
    assert report.accuracy.confusion == ((1, 0), (0, 1))
    assert report.effectiveness.weights == "quadratic"
    assert [(k.kind, k.n, k.caught, k.alike, k.named) for k in report.kinds] == [
        ("wrong_price", 1, 1, 1, 1)
    ]
    assert {(c.category, c.metric, c.n, c.alike) for c in report.categories} == {
        ("uncategorised", "accuracy", 2, 2),
        ("uncategorised", "effectiveness", 2, 2),
    }
    assert report.disagreements == ()
    assert 0 < report.alpha["accuracy"] < 1


def test_an_unscored_reply_is_counted_and_listed(tmp_path, world):
    replies = read_labels(written(tmp_path, GOOD, BAD))
    empty = {"accuracy": None, "effectiveness": None}
    full = Verdict(
        judge="j@1",
        scores={"accuracy": 1.0, "effectiveness": 1.0},
        findings=(Finding(kind="wrong_price", detail="x"),),
    )
    report = measure("j@1", replies, [full, Verdict(judge="j@1", scores=empty)])
    assert report.unscored == 1
    assert (report.accuracy.n, report.accuracy.raw, report.accuracy.invalid) == (2, 0.5, (1, 0))
    left = measure("j@1", replies, [full, Verdict(judge="j@1", scores=empty)], unscored="drop")
    assert (left.accuracy.n, left.accuracy.raw, left.unscored) == (1, 1.0, 1)
    assert [k.caught for k in report.kinds] == [0]  # what is not graded is not caught
    assert [(d.id, d.judge) for d in report.disagreements] == [("r-2", None), ("r-2", None)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": []}, "no label"),
        ({"labels": [{"annotator": "a", "accuracy": 2, "effectiveness": 1}]}, "accuracy is 0 or 1"),
        ({"labels": [{"annotator": "a", "accuracy": 1, "effectiveness": 0.7}]}, "0, 0.5 or 1"),
        ({"labels": GOOD["labels"][:1] * 2}, "labelled it twice"),
        ({"colour": "red"}, "unknown field"),
        ({"reply": None}, "Expected `str`"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(tmp_path, change, message):
    path = written(tmp_path, GOOD, {**BAD, **change})
    with pytest.raises(BadFile, match=message) as caught:
        read_labels(path)
    assert "labels.jsonl:2" in str(caught.value)


def test_a_repeated_id_or_an_empty_file_is_refused(tmp_path):
    with pytest.raises(BadFile, match="stands twice"):
        read_labels(written(tmp_path, GOOD, GOOD))
    with pytest.raises(BadFile, match="no labelled reply"):
        read_labels(written(tmp_path))


def test_an_unknown_room_is_refused(tmp_path, judge, world):
    replies = read_labels(written(tmp_path, {**GOOD, "room": "room-nowhere"}))
    with pytest.raises(BadFile, match="room-nowhere"):
        judged(judge, replies, world)


def test_a_panel_is_not_opened_as_something_else():
    assert open_judge("grounded", JudgeConfig(kind="grounded")).name == "grounded"
    with pytest.raises(UsageError, match="panel"):
        open_judge("final", JudgeConfig(kind="panel", panel=("a", "b", "c")))
