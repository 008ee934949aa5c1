"""A panel of endpoints on the loopback, calibrated: its members, its tree, its unscored replies."""

import asyncio
import json
import shutil

import pytest
from judging_endpoint import ROOT, JudgeEndpoint, in_turns, panel_project, saying, serving, verdict

from harness_cli.evaluation.calibrating import (
    measure_judge,
    record_of,
    record_path,
    standing_of,
)
from harness_cli.evaluation.labelled import labels_of
from harness_cli.evolution.judged import diagnose_judge
from harness_cli.judges.label_file import read_label_file
from harness_cli.records.canonical import write_json
from harness_cli.store.project import Project

ALL_GOOD = in_turns(verdict(accuracy=1, effectiveness=1))
MUTE = in_turns(saying("It looks fine to me."))
JUDGES = {"final": {"panel": ["a", "b", "c"]}}


def labels(root):
    """Four replies: two good ones, a wrong price, half an answer."""
    line = {
        "room": "room-beauty",
        "current_link": 1,
        "comments": ["how much is #1 and when does it ship"],
        "expect": {"answers": ["price", "delivery"]},
    }
    grades = [(1, 1), (1, 1), (0, 0.5), (1, 0.5)]
    rows = [
        {
            **line,
            "id": f"r-{n}",
            "reply": f"Reply {n}.",
            "labels": [{"annotator": "ann", "accuracy": a, "effectiveness": e}],
        }
        for n, (a, e) in enumerate(grades)
    ]
    path = root / "labels.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.fixture
def calibrated(tmp_path):
    """`calibrated(models)` → (project, measured) of a panel that asks these models."""

    def go(models):
        root = tmp_path / "project"
        with serving(JudgeEndpoint(models)) as url:
            project = panel_project(root, url, models, JUDGES)
            if not (root / "evalsets").exists():
                (root / "evalsets").mkdir()
            if not (root / "evalsets" / "catalogue").exists():
                shutil.copytree(ROOT / "evalsets" / "catalogue", root / "evalsets" / "catalogue")
            file = read_label_file(labels(root))
            found = labels_of(project, file, "live_stream_qa", None, "human")
            return project, asyncio.run(measure_judge(project, "final", found))

    return go


def test_a_panel_is_measured_by_its_majority_and_named_by_its_members(calibrated):
    project, measured = calibrated(
        {"a": ALL_GOOD, "b": ALL_GOOD, "c": in_turns(verdict(accuracy=0, effectiveness=0))}
    )
    report = measured.report
    assert (report.n, report.unscored) == (4, 0)
    assert (report.accuracy.raw, report.effectiveness.raw) == (0.75, 0.5)
    assert report.accuracy.confusion == ((0, 1), (0, 3))
    assert sorted(measured.judge.panel) == ["a", "b", "c"]
    assert len(measured.judge.tree) == 40
    assert measured.judge.rule.startswith("majority")
    write_json(record_path(project, "final"), record_of(measured, at="2026-11-29", by="Ann"))
    assert standing_of(project, "final").standing == "current"
    assert standing_of(project, "final", measured.judge.id).standing == "current"


def test_votes_that_are_none_are_unscored_and_never_leave_the_denominator(calibrated):
    _, measured = calibrated({"a": MUTE, "b": MUTE, "c": ALL_GOOD})
    report = measured.report
    assert (report.n, report.unscored, report.accuracy.raw) == (4, 4, 0.0)
    assert sum(report.accuracy.invalid) == 4
    made = diagnose_judge(measured)
    assert [(c.id, c.size) for c in made.clusters] == [("ungraded-accuracy", 4)]
    record = record_of(measured, at="2026-11-29", by="Ann")
    assert (record.unscored, record.agreement["accuracy"]) == (4, 0.0)


def test_another_model_behind_a_member_or_an_edited_rubric_is_another_judge(calibrated):
    models = {"a": ALL_GOOD, "b": ALL_GOOD, "c": ALL_GOOD}
    project, measured = calibrated(models)
    write_json(record_path(project, "final"), record_of(measured, at="2026-11-29", by="Ann"))
    rubric = project.harness / "judges" / "final" / "skills" / "rubric-accuracy" / "SKILL.md"
    rubric.write_text(rubric.read_text().replace("## Examples", "- One more rule.\n\n## Examples"))
    found = standing_of(project, "final")
    assert found.standing == "changed"
    assert any(c.startswith("its harness: tree") for c in found.changes)
    file = project.root / "harness.yaml"
    config = json.loads(file.read_text())
    config["policies"]["b"]["model"] = "another"
    file.write_text(json.dumps(config))
    changes = standing_of(Project.read(project.root), "final").changes
    assert any(c.startswith("member `b`") for c in changes)
