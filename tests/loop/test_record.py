"""The evolution record: rows from runs and commits, and a stage that regressed."""

import pytest

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
