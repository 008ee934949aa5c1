"""Calibration sets are read for judges, refused to policies, and every fault has its place."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.evalsets import findings, load_evalset, split_digests
from harness_cli.evaluation.judge_set import load_judge_set
from harness_cli.evaluation.labelled import constructed, part_of
from harness_cli.store.project import Project

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    for name in ("catalogue", "live_stream_qa", "judge_calibration"):
        shutil.copytree(ROOT / "evalsets" / name, tmp_path / "evalsets" / name)
    return Project.read(tmp_path)


def rewrite(project, change):
    path = project.evalsets / "judge_calibration" / "candidates.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_replies_come_with_the_shared_items(project):
    made = load_judge_set(project)
    assert len(made.replies) == 960
    assert made.items.ref.n == 482
    assert {r.item.id for r in made.replies} == {i.id for i in made.items.items}
    assert all(r.labels[0].annotator == "construction" for r in made.replies)


def test_a_part_is_spread_over_the_kinds_and_always_the_same(project):
    whole = constructed(project)
    part = part_of(whole, 45)
    assert part == part_of(whole, 45)
    counts = Counter(r.corruption for r in part.replies)
    assert (sum(counts.values()), set(counts.values())) == (45, {5})
    assert len(part_of(whole, 10_000).replies) == 960


def test_the_digest_binds_the_shared_items_as_well(project):
    before = load_judge_set(project).digest
    header = project.evalsets / "live_stream_qa" / "evalset.yaml"
    header.write_text(header.read_text().replace("version: '1'", "version: '2'"))
    assert load_judge_set(project).digest != before


@pytest.mark.parametrize("use", [load_evalset, split_digests])
def test_no_policy_is_evaluated_on_it(project, use):
    with pytest.raises(UsageError, match="never a test set of a policy") as caught:
        use(project, "judge_calibration")
    assert "harness eval live_stream_qa" in caught.value.hint


def test_an_evalset_of_policies_calibrates_no_judge(project):
    with pytest.raises(UsageError, match="calibrates no judge"):
        load_judge_set(project, "live_stream_qa")


def foreign(lines):
    lines[2]["item_id"] = "lsq-9999"


def twice(lines):
    lines[2]["replies"].append(lines[1]["replies"][0])


def grade(lines):
    lines[2]["replies"][0]["effectiveness"] = 0.7


def kind(lines):
    lines[2]["replies"][0]["corruption"] = "typo"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (foreign, "item `lsq-9999` is none of the shared evalset"),
        (twice, "stands twice"),
        (grade, "effectiveness is 0, 0.5 or 1"),
        (kind, "no corruption `typo`"),
    ],
)
def test_a_wrong_line_is_refused_with_its_place(project, change, message):
    rewrite(project, change)
    with pytest.raises(BadFile, match=message) as caught:
        load_judge_set(project)
    assert "candidates.jsonl:3" in str(caught.value)
    assert findings(project, "judge_calibration")


def test_a_changed_or_shortened_set_is_refused(project):
    rewrite(project, lambda lines: lines[0]["replies"][0].update(reply="Hello."))
    with pytest.raises(BadFile, match="it has changed"):
        load_judge_set(project)
    rewrite(project, lambda lines: lines.pop())
    with pytest.raises(BadFile, match="481 items"):
        load_judge_set(project)
