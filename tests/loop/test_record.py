"""The evolution record: rows from runs and commits, and a stage that regressed.

`recorded/` is such a stage as it happened, by `python -m benchmarks.record_stages`.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli.harness.load import load_state
from harness_cli.loop.chart import draw
from harness_cli.loop.record import evolution_record
from harness_cli.loop.scaffold import make_project
from harness_cli.records.canonical import write_json
from harness_cli.records.run import EvalsetRef, MetricSummary, Report, RunConfig
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunStore

TABLE_14 = [
    ("react", None, 80.33, 84.58),
    ("harness", 0, 82.40, 87.16),
    ("harness", 1, 92.13, 84.16),
    ("harness", 2, 92.55, 92.75),
    ("harness", 4, 91.51, 89.96),
]
"""TR Table 14: agent, evolution number (0: the base), Acc., Eff. Evolution 3 has no numbers."""


@pytest.fixture
def project(tmp_path) -> Project:
    return Project.find(make_project(tmp_path / "shop").root)


def evolve(project: Project, number: int) -> str:
    """A commit on evolve/<n> with the message of an applied proposal."""
    repo = Repo.open(project.harness)
    text = b"One more rule.\n" * number
    changes = {"prompts/blocks/boundaries.md": text}
    message = f"Evolution {number}\n\n- boundaries: rule {number}\n\nProposal: p{number}\n"
    return repo.commit_files(
        f"evolve/{number}", repo.resolve("HEAD"), project.harness, changes, message
    )


def record(project: Project, agent: str, commit: str, tree: str, scores: dict, n: int = 482):
    """A finished run with these means, as the engine leaves it."""
    store = RunStore(project.runs)
    config = RunConfig(
        id=store.new_id(),
        evalset=EvalsetRef(name="live_stream_qa", split="dev", digest="d", n=n),
        agent=agent, harness_id=tree, harness_commit=commit, policy="builtin", policy_id="b@1",
        judge="grounded", judge_id="g@1",
    )  # fmt: skip
    run = store.create(config)
    metrics = tuple(
        MetricSummary(metric=m, mean=v, scored=n, of=n) for m, v in sorted(scores.items())
    )
    report = Report(run=config, status="complete", counts={"passed": n}, planned=n, metrics=metrics)
    write_json(run.report_file, report)
    return run


def fill(project: Project) -> None:
    head = Repo.open(project.harness).resolve("HEAD")
    for agent, number, accuracy, effectiveness in TABLE_14:
        commit = evolve(project, number) if number else head
        scores = {"accuracy": accuracy / 100, "effectiveness": effectiveness / 100}
        record(project, agent, commit, f"tree{number}", scores)


def test_table_14_comes_out_in_order_with_evolution_2_selected(project):
    fill(project)
    rows, advice = evolution_record(project, evalset="live_stream_qa", split="dev")
    assert [r.stage for r in rows] == ["ReAct", "base", "evolution 1", "evolution 2", "evolution 4"]
    assert rows[3].changes == ("boundaries: rule 2",)
    assert advice.selected == "evolution 2"
    assert not any(r.served for r in rows)


def test_a_stage_that_regressed_is_shown_and_not_selected(project):
    fill(project)
    rows, advice = evolution_record(project, evalset="live_stream_qa", split="dev")
    last = rows[-1]
    assert last.stage == "evolution 4"
    assert last.scores["effectiveness"] < rows[-2].scores["effectiveness"]
    assert advice.selected != last.stage


def test_harnesses_that_are_no_evolution_have_names_of_their_own(project):
    head = Repo.open(project.harness).resolve("HEAD")
    record(project, "harness", head, "first-tree", {"accuracy": 0.5, "effectiveness": 0.5})
    record(project, "harness", head, "later-tree", {"accuracy": 0.4, "effectiveness": 0.5})
    rows, advice = evolution_record(project, evalset="live_stream_qa", split="dev")
    assert [r.stage for r in rows] == ["base", "base later-tr"]
    assert advice.selected == "base"


def test_the_larger_run_of_a_harness_counts(project):
    head = Repo.open(project.harness).resolve("HEAD")
    record(project, "harness", head, "t", {"accuracy": 0.5}, n=482)
    record(project, "harness", head, "t", {"accuracy": 1.0}, n=8)
    rows, _ = evolution_record(project, evalset="live_stream_qa", split="dev")
    assert [(r.n, r.scores["accuracy"]) for r in rows] == [(482, 0.5)]


def test_the_chart_puts_each_score_on_its_line():
    drawn = draw([("base", 0.80, 0.90), ("evolution 1", 0.90, 0.90)]).splitlines()
    assert drawn[0].startswith("  90.0 │")
    assert drawn[0].count("E") == 1
    assert drawn[0].count("*") == 1
    assert drawn[12].strip().endswith("A")
    assert draw([("base", None, None)]) == "nothing measured"


RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Project:
    """The repository and the two runs of the recorded stage, unchanged."""
    root = tmp_path_factory.mktemp("recorded") / "shop"
    bundle = str(RECORDED / "harness.bundle")
    for words in (
        ["clone", "-q", "-b", "main", bundle, str(root)],
        ["-C", str(root), "branch", "evolve/1", "origin/evolve/1"],
    ):
        subprocess.run(["git", *words], check=True, capture_output=True)
    shutil.copytree(RECORDED / "runs", root / ".harness" / "runs")
    return Project.find(root)


def test_the_recorded_runs_are_of_the_two_harnesses_of_the_repository(recorded):
    runs = [run.config() for run in reversed(RunStore(recorded.runs).list())]
    assert [r.harness_id for r in runs] == [
        load_state(recorded, x).id for x in ("main", "evolve/1")
    ]
    assert len({(r.policy_id, r.judge_id, r.evalset.digest) for r in runs}) == 1
    assert all(r.fresh and not r.dirty for r in runs)


def test_a_recorded_stage_that_regressed_is_shown_as_it_was_and_not_selected(recorded):
    rows, advice = evolution_record(recorded, evalset="fell", split="dev")
    base, evolved = rows
    assert [r.stage for r in rows] == ["base", "evolution 1"]
    assert evolved.scores["avg"] < base.scores["avg"]
    assert len(evolved.changes) == 8
    assert base.changes == ()
    assert [r.diagnosis for r in rows] == ["Wrong skill (18)", "Wrong skill (21)"]
    judged = advice.stages[-1]
    assert (judged.against, judged.passed, judged.improved) == ("base", False, False)
    assert advice.selected == "base"
    assert "not the newest, `evolution 1`" in advice.reasons[-1]


def test_log_and_chart_show_the_fall(recorded):
    words = ["log", "--evalset", "fell", "--chart"]
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", *words],
        cwd=recorded.root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = {line.split("  ")[0].strip(): line for line in done.stdout.splitlines() if line}
    assert "selected" in shown["base"]
    assert "selected" not in shown["evolution 1"]
    assert "34.29" in shown["base"]
    assert "27.14" in shown["evolution 1"]
    drawn = [line.partition("│")[2] for line in done.stdout.splitlines() if "│" in line]
    columns = [line.index("E") for line in drawn if "E" in line]
    assert len(columns) == 2, "one mark a stage"
    assert columns[0] < columns[1], "the later stage is drawn below the earlier one"
    assert "not the newest" in done.stderr
    said = json.loads(
        subprocess.run(
            [sys.executable, "-m", "harness_cli.main", "log", "--evalset", "fell", "--json"],
            cwd=recorded.root, capture_output=True, text=True, check=True,
        ).stdout
    )  # fmt: skip
    assert said["advice"]["selected"] == "base"
