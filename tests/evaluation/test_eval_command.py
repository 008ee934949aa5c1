import asyncio
import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from faulty_endpoint import Endpoint, serving
from typer.testing import CliRunner

from harness_cli.errors import BudgetReached, UsageError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.main import app
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunStore


@pytest.fixture(scope="module")
def url():
    with serving(Endpoint()) as url:
        yield url


@pytest.fixture
def project(url, make_project, monkeypatch):
    project = make_project(url, items=20)
    monkeypatch.chdir(project.root)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return project


def harness(*words):
    result = CliRunner().invoke(app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_table_shows_intervals_and_of_n_and_cron_gets_a_line_a_tenth(project):
    result = harness("eval", "bench", "--judge", "none")
    assert result.exit_code == 0
    assert "passed 20 / failed 0 / unscored 0 / errored 0 of 20" in result.stdout
    assert "95 % interval" in result.stdout
    assert "20 of 20" in result.stdout
    tenths = [line for line in result.stderr.splitlines() if line.startswith("bench: ")]
    assert len(tenths) == 10
    assert tenths[0].startswith("bench: 2 of 20 done, 0 failed, 0 errored, ")
    assert "\x1b" not in result.output


def test_json_is_alone_on_stdout_and_has_a_schema(project):
    result = harness("eval", "bench", "--judge", "none", "--json")
    report = json.loads(result.stdout)
    assert report["schema"] == 1
    assert report["counts"]["passed"] == 20
    assert harness("eval", "bench", "-q", "--limit", "2").stderr == ""


def test_junit_and_the_step_summary_are_written(project, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    harness("eval", "bench", "--judge", "none", "--junit", str(tmp_path / "new/junit.xml"), "-q")
    assert len(ET.parse(tmp_path / "new/junit.xml").getroot()[0].findall("testcase")) == 20
    assert "passed 20 / failed 0" in (tmp_path / "summary.md").read_text()


def test_a_budget_ends_with_its_own_exit_code_after_showing_what_there_is(project):
    with pytest.raises(BudgetReached) as caught:
        harness("eval", "bench", "--judge", "none", "--max-tokens", "300")
    assert caught.value.exit_code == 13


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--agent", "robot"), "--agent takes harness, react, bare"),
        (("--if-locked", "run"), "--if-locked takes skip, wait, fail"),
        (("--record", "a", "--replay", "b"), "--record and --replay exclude each other"),
        (("--max-cost", "1"), "price of `stub` is unknown"),
        (("--max-cost", "nan"), "a budget of cost is a number"),
        (("--max-seconds", "nan"), "a budget of seconds is a number"),
        (("--junit", "evalsets"), "`evalsets` is a folder"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(project, words, message):
    with pytest.raises(UsageError, match=message):
        harness("eval", "bench", *words)
    assert RunStore(project.runs).list() == []


def test_no_evalset_is_refused(project):
    with pytest.raises(UsageError, match="no evalset is named"):
        harness("eval", "--limit", "3")


def test_on_a_terminal_there_is_a_bar(project):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "harness_cli.main", "eval", "bench", "--judge", "none"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=env)
    os.close(slave)
    seen = b""
    with contextlib.suppress(OSError):  # EIO: the last writer is gone
        while data := os.read(master, 1 << 20):
            seen += data
    os.close(master)
    out, shown = process.communicate(timeout=60)[0].decode(), seen.decode()
    assert process.returncode == 0
    assert "passed 20" in out
    assert "20/20" in shown
    assert "0 failed, 0 errored" in shown


def test_recorded_answers_are_replayed_marked_and_never_timed(project, url, tmp_path):
    cassette = str(tmp_path / "cassette.jsonl")
    harness("eval", "bench", "--judge", "none", "--record", cassette, "-q")
    result = harness("eval", "bench", "--judge", "none", "--replay", cassette, "--json", "-q")
    report = json.loads(result.stdout)
    assert report["counts"]["passed"] == 20
    assert report["run"]["fresh"] is False
    assert report["timing"]["fresh"] is False
    assert "ttft_s" not in report["timing"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--replay", "{cassette}"), "--replay FILE"),
        (("--responses", "{replies}"), "--responses FILE"),
        (("--rescore", "latest"), "harness eval --resume"),
    ],
)
def test_what_no_policy_answered_goes_on_only_with_its_source(project, tmp_path, words, hint):
    named = {"cassette": str(tmp_path / "c.jsonl"), "replies": str(tmp_path / "replies.jsonl")}
    (tmp_path / "replies.jsonl").write_text('{"id": "item-0000", "reply": "hi"}\n')
    harness("eval", "bench", "--judge", "none", "--limit", "1", "--record", named["cassette"], "-q")
    evalset = () if "--rescore" in words else ("bench", "--judge", "none", "--limit", "1")
    given = [word.format(**named) for word in words]
    assert harness("eval", *evalset, *given, "-q").exit_code == 0
    with pytest.raises(UsageError) as caught:
        harness("eval", "--resume", "latest")
    assert hint in caught.value.hint
    if "--rescore" not in words:
        assert harness("eval", "--resume", "latest", *given, "-q").exit_code == 0


def test_runs_are_listed_shown_pruned_with_their_refs_and_protected(project):
    block = project.root / "harness_repo/prompts/blocks/base.md"
    block.write_text(block.read_text() + "uncommitted\n")
    for _ in range(3):
        asyncio.run(evaluate(project, EvalOptions(evalset="bench", judge="none", limit=1)))
    store = RunStore(project.runs)
    ids = [run.id for run in store.list()]
    assert len(ids) == 3
    assert harness("runs", "-q").stdout.split() == ids
    assert "complete" in harness("runs", "show", ids[0]).stdout
    assert "bench" in harness("runs", "list", "--evalset", "bench").stdout
    assert json.loads(harness("runs", "--evalset", "x", "--json").stdout)["runs"] == []
    refs = Repo.open(project.harness).refs("refs/harness/runs/")
    assert len(refs) == 3
    assert (
        "would drop 2 runs and 2 refs"
        in harness("runs", "prune", "--keep", "1", "--dry-run").stdout
    )
    assert len(store.list()) == 3
    assert "dropped 2 runs and 2 refs" in harness("runs", "prune", "--keep", "1").stdout
    assert [run.id for run in store.list()] == ids[:1]
    assert list(Repo.open(project.harness).refs("refs/harness/runs/")) == [
        f"refs/harness/runs/{ids[0]}"
    ]


def test_incidents_are_counted_by_version(project):
    asyncio.run(evaluate(project, EvalOptions(evalset="bench", judge="none", limit=4)))
    assert "no incidents" in harness("incidents").stdout


def test_evalsets_are_listed_checked_digested_sealed_and_exported(project):
    assert "bench" in harness("evalset", "list").stdout
    assert "bench: nothing wrong" in harness("evalset", "check").stdout
    digest = harness("evalset", "digest", "bench", "-q").stdout.strip()
    assert len(digest) == 64
    assert len(harness("evalset", "export", "bench").stdout.splitlines()) == 20
    harness("evalset", "seal", "bench", "dev")
    with pytest.raises(UsageError, match="is sealed"):
        harness("evalset", "export", "bench")
    harness("evalset", "export", "bench", "--reason", "a look")
    assert "a look" in (project.evalsets / "seal.log.jsonl").read_text()
    file = project.evalsets / "bench/items.jsonl"
    file.write_text(file.read_text().replace("today", "tonight"))
    with pytest.raises(UsageError, match="1 finding in 1 evalset"):
        harness("evalset", "check")


def test_aa_runs_twice_with_other_seeds_and_shows_what_a_run_can_see(project):
    result = harness("eval", "bench", "--aa", "--limit", "12", "--repeat", "2", "-q")
    runs = RunStore(project.runs).list()
    assert sorted(run.config().seed for run in runs) == [0, 2]
    assert "differ by their seeds alone" in result.stdout
    assert "12 of 12" in result.stdout
    assert all((run.path / "noise.json").is_file() for run in runs)
    asked = ("eval", "bench", "--aa", "--limit", "4", "--seed", "9", "-q", "--json")
    found = json.loads(harness(*asked).stdout)
    assert [r["run"]["seed"] for r in found["reports"]] == [9, 10]
    assert found["noise"][0]["runs"] == [r["run"]["id"] for r in found["reports"]]


def cut(run, keep):
    """As a kill leaves a run: no reports, and of its journal so many lines."""
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join(lines[:keep]))
    for file in (run.report_file, run.canonical):
        file.unlink()


def test_an_aa_that_was_cut_short_is_measured_once_both_runs_are_whole(project):
    harness("eval", "bench", "--aa", "--limit", "6", "-q")
    runs = sorted(RunStore(project.runs).list(), key=lambda run: run.config().seed)
    for run in runs:
        (run.path / "noise.json").unlink()
        cut(run, 9)
    first = harness("eval", "--resume", runs[0].id, "-q")
    assert f"no noise floor yet: run {runs[1].id} of this A/A is killed" in first.stderr
    second = harness("eval", "--resume", runs[1].id, "-q")
    assert "differ by their seeds alone" in second.stdout
    floors = [json.loads((run.path / "noise.json").read_text()) for run in runs]
    assert floors[0]["runs"] == [run.id for run in runs] == floors[1]["runs"]
    assert len(RunStore(project.runs).list()) == 2


def test_an_aa_whose_second_run_was_never_started_says_so_and_goes_on_as_one(project):
    harness("eval", "bench", "--aa", "--limit", "6", "--seed", "4", "-q")
    first, second = sorted(RunStore(project.runs).list(), key=lambda run: run.config().seed)
    shutil.rmtree(second.path)
    (first.path / "noise.json").unlink()
    cut(first, 9)
    alone = harness("eval", "--resume", first.id, "-q")
    assert f"`harness eval --resume {first.id} --aa` makes it" in alone.stderr
    assert not (first.path / "noise.json").exists()
    found = json.loads(harness("eval", "--resume", first.id, "--aa", "-q", "--json").stdout)
    assert [r["run"]["seed"] for r in found["reports"]] == [4, 5]
    assert found["noise"][0]["runs"] == [r["run"]["id"] for r in found["reports"]]
    assert [r["run"]["harness_id"] for r in found["reports"]] == 2 * [first.config().harness_id]


def test_an_aa_goes_on_with_both_runs_in_one_command(project):
    harness("eval", "bench", "--aa", "--limit", "6", "-q")
    runs = sorted(RunStore(project.runs).list(), key=lambda run: run.config().seed)
    for run in runs:
        (run.path / "noise.json").unlink()
        cut(run, 9)
    result = harness("eval", "--resume", runs[0].id, "--aa", "-q")
    assert "differ by their seeds alone" in result.stdout
    assert {run.id for run in RunStore(project.runs).list()} == {run.id for run in runs}
    with pytest.raises(UsageError, match="no pair of runs"):
        harness("eval", "--rescore", runs[0].id, "--aa")


def test_items_that_repeat_get_a_verdict_of_k_of_n(project):
    result = harness("eval", "bench", "--limit", "3", "--repeat", "3", "--need", "3", "-q")
    assert "items, 3 of 3 repeats: passed 3" in result.stdout
    (run,) = RunStore(project.runs).list()
    assert (run.config().need, run.report().repeats.need) == (3, 3)
    with pytest.raises(UsageError, match="--need 3 passes of 2 repeats"):
        harness("eval", "bench", "--repeat", "2", "--need", "3")
