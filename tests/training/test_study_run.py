"""A whole study by its command: base, lessons, arms, sets, tables; again; as another study."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli.records.study import ArmScore
from harness_cli.training.study.run import scores_of

PROJECT = Path(__file__).parents[2] / "benchmarks" / "hat_tiny" / "project"
STUDY = f"""\
schema: 1
name: smallest
project: {PROJECT}
base: {{steps: 1, threads: 1}}
training_set: tiny_train
recipe: recipes/train.yaml
data: {{two: {{items: 6, states: 1, each: 2, together: 2}}}}
variants: {{tiny_renamed: recipes/renamed.yaml}}
variant_states: 1
seeds: [5]
sets:
  - {{column: T1, evalset: tiny_qa}}
  - {{column: Reward, evalset: tiny_qa, metric: reward}}
limit: 2
stages:
  sft: {{verb: sft, job: {{steps: 1, batch: 2}}}}
arms:
  - {{name: sft, start: base, stage: sft, more: {{data: [train/two.jsonl]}}}}
  - {{name: later, start: sft, stage: sft, more: {{data: [train/two.jsonl]}}, on_request: true}}
tables:
  - title: The table
    rows:
      - {{label: Base, arm: base}}
      - {{label: + SFT, arm: sft, against: base}}
      - {{label: + more, arm: later, against: sft}}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def command(home):
    (home / "STUDY.yaml").write_text(STUDY, encoding="utf-8")
    given = os.environ | {"XDG_STATE_HOME": str(home / "state"), "OMP_NUM_THREADS": "1"}

    def ran(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "harness_cli.main", "train", "study", "STUDY.yaml", *arguments],
            cwd=home,
            env=given,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return ran


@pytest.fixture(scope="module")
def first(command, home):
    return command("--json", "-o", str(home / "out"))


def test_the_command_trains_measures_and_prints_its_tables(first, home):
    assert first.returncode == 0, first.stderr
    (table,) = json.loads(first.stdout)["tables"]
    base, sft, later = table["rows"]
    assert [row["label"] for row in table["rows"]] == ["Base", "+ SFT", "+ more"]
    assert set(base["cells"]) == set(sft["cells"]) == {"T1", "Reward"}
    assert {name: cell["mean"] for name, cell in later["cells"].items()} == {
        "T1": None,
        "Reward": None,
    }
    assert sft["cells"]["T1"]["change"] == pytest.approx(
        sft["cells"]["T1"]["mean"] - base["cells"]["T1"]["mean"]
    )
    folder = home / "state" / "harness" / "studies" / "smallest"
    for seed, arm in ((0, "base"), (5, "sft")):
        lines = scores_of(folder, seed).read(ArmScore)
        assert [(s.arm, s.column, len(s.scores)) for s in lines] == [
            (arm, "T1", 2),
            (arm, "Reward", 2),
        ]
    rows = (folder / "project" / "train" / "two.jsonl").read_text().splitlines()
    assert [json.loads(row)["id"].count("+") for row in rows] == [1] * 6
    curves = json.loads((home / "out" / "curves.json").read_bytes())
    assert curves["sft"]["5"]["step"] == [1]
    assert len(curves["sft"]["5"]["loss"]) == 1
    assert "not run" in (home / "out" / "tables.md").read_text()
    assert {t["arm"] for t in json.loads((home / "out" / "times.json").read_bytes())} == {
        "base",
        "lessons",
        "sft",
    }


def test_the_same_command_goes_on_and_does_nothing_twice(first, command, home):
    folder = home / "state" / "harness" / "studies" / "smallest"
    before = scores_of(folder, 5).path.read_bytes()
    again = command("--arm", "later", "--json")
    assert again.returncode == 0, again.stderr
    after = scores_of(folder, 5).path.read_bytes()
    assert after.startswith(before)
    assert {s.arm for s in scores_of(folder, 5).read(ArmScore)} == {"sft", "later"}
    (table,) = json.loads(again.stdout)["tables"]
    assert table["rows"][2]["cells"]["T1"]["mean"] is not None


def test_another_study_of_the_name_is_refused(first, command, home):
    (home / "STUDY.yaml").write_text(STUDY.replace("limit: 2", "limit: 3"), encoding="utf-8")
    told = command("--tables")
    assert told.returncode == 2
    assert "begun with another `limit`" in told.stderr
