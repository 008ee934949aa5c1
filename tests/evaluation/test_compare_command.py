"""`harness compare` on run folders."""

import json

import msgspec
import pytest
from typer.testing import CliRunner

from harness_cli.errors import UnknownName, UsageError
from harness_cli.main import app
from harness_cli.records.canonical import write_json
from harness_cli.records.journal import ItemRecord
from harness_cli.records.run import EvalsetRef, Report, RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.store.journal import line_of
from harness_cli.store.runs import RunStore


def harness(*words):
    done = CliRunner().invoke(app, words)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def make_run(project, run, scores, *, evalset="qa", judge_id="grounded@1", status="complete"):
    config = RunConfig(
        id=run,
        evalset=EvalsetRef(name=evalset, split="dev", digest="d", n=len(scores)),
        harness_id="h" * 40,
        policy="builtin",
        policy_id="builtin@1",
        judge="grounded",
        judge_id=judge_id,
    )
    folder = RunStore(project / ".harness" / "runs").create(config)
    results = [
        ItemResult(
            item_id=f"item-{n}",
            category="chat",
            state="passed" if score == 1 else "failed",
            scores={"accuracy": score},
        )
        for n, score in enumerate(scores)
    ]
    records = [msgspec.json.encode(ItemRecord(item=r.item_id, result=r)) for r in results]
    folder.journal.write_bytes(b"".join(line_of(data) for data in records))
    report = Report(run=config, status=status, counts={}, planned=len(scores), metrics=())
    write_json(folder.report_file, report)
    return folder


def test_without_names_the_two_newest_runs_of_one_evalset_are_compared(project):
    make_run(project, "20260101-a", [1, 0, 0])
    make_run(project, "20260102-b", [1, 1], evalset="other")
    make_run(project, "20260103-c", [1, 1, 0])
    shown = harness("compare")
    assert shown.exit_code == 0
    assert "20260101-a" in shown.stdout
    assert "fixed: 1 of 3" in shown.stdout
    assert "item-1  chat  accuracy 0 → 1" in shown.stdout
    assert "\x1b" not in shown.output


def test_json_and_markdown_hold_the_comparison(project):
    make_run(project, "r1", [1.0, 0.0])
    make_run(project, "r2", [0.0, 0.0])
    found = json.loads(harness("compare", "r1", "r2", "--json").stdout)
    assert found["schema"] == 1
    assert found["metrics"][0]["metric"] == "pass"
    assert [c["item_id"] for c in found["broken"]] == ["item-0"]
    assert "| accuracy |" in harness("compare", "r1", "r2", "--markdown").stdout


def test_a_job_summary_gets_markdown(project, monkeypatch):
    make_run(project, "r1", [1.0])
    make_run(project, "r2", [1.0])
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    harness("compare", "r1", "r2", "--quiet")
    assert (project / "summary.md").read_text().startswith("### Comparison")


def test_runs_of_another_judge_need_force(project):
    make_run(project, "r1", [1.0])
    make_run(project, "r2", [1.0], judge_id="grounded@2")
    with pytest.raises(UsageError, match="judges differ"):
        harness("compare", "r1", "r2")
    forced = harness("compare", "r1", "r2", "--force")
    assert forced.exit_code == 0
    assert "warning: judges differ" in forced.stderr


def test_a_run_with_itself_or_alone_or_unknown_is_refused(project):
    make_run(project, "r1", [1.0])
    with pytest.raises(UsageError, match="compared with itself"):
        harness("compare", "r1", "r1")
    with pytest.raises(UnknownName, match="no finished run"):
        harness("compare")
    with pytest.raises(UnknownName, match="no run named `nope`"):
        harness("compare", "nope", "r1")


def test_cases_are_cut_where_asked(project):
    make_run(project, "r1", [0.0] * 5)
    make_run(project, "r2", [1.0] * 5)
    shown = harness("compare", "r1", "r2", "--cases", "2").stdout
    assert "… 3 more, --cases N shows them" in shown
