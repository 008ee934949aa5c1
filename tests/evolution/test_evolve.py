"""`harness evolve`: stops for people, goes on with their decisions, survives being killed."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest
from small_shop import git, make_shop

from harness_cli.errors import BadFile, UsageError
from harness_cli.evolution.proposal_file import hunks, read_proposal, write_proposal
from harness_cli.evolution.review import decide
from harness_cli.loop.evolve.events import FILE, Event, append, fold, read
from harness_cli.loop.evolve.steps import standing
from harness_cli.main import main
from harness_cli.records.diagnosis import Decision
from harness_cli.store.runs import RunStore

HARNESS = [sys.executable, "-m", "harness_cli.main"]


def slow_shop(root):
    """Every reply waits a fifth of a second in a command hook."""
    project = make_shop(root)
    hooks = root / "harness_repo/hooks"
    (hooks / "slow.py").write_text(
        'import time\ntime.sleep(0.2)\nprint(\'{"decision": "allow"}\')\n'
    )
    (hooks / "slow.yaml").write_text(
        "schema: 1\nname: slow\nevent: before_reply\ncommand: ['{python}', hooks/slow.py]\n"
    )
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "slow")
    return project


def evolve(project, *words, code=3):
    """The program's own `main` in this process, where scikit-learn loads once."""
    out, err, ended = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(project.root)
        patch.setattr(sys, "argv", ["harness", *words])
        patch.setattr(sys, "stdin", io.StringIO())
        try:
            main()
        except SystemExit as exc:
            ended = exc.code or 0
    assert ended == code, err.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())


def decided(project, state):
    """Every hunk of the waiting proposal decided by a person, in the file."""
    path = project.root / standing(project).file
    proposal = read_proposal(path)
    for name, _, _ in hunks(proposal):
        made = Decision(state=state, by="ann", at="2026-01-01T00:00:00Z", reason="r")
        proposal = decide(proposal, name, made)
    write_proposal(path, proposal)


def test_the_loop_stops_for_budget_review_and_choice_and_goes_on(tmp_path):
    project = make_shop(tmp_path)
    asked = evolve(project, "evolve", "--evalset", "shop")
    assert "54 items of `shop` was not allowed" in asked.stdout
    assert "--authorise 54" in asked.stderr
    assert RunStore(project.runs).list() == [], "no call before a person allows it"
    waits = evolve(project, "evolve", "--authorise", "120", "--by", "ann")
    assert "wait for a decision" in waits.stdout
    assert standing(project).allowance == 66
    again = evolve(project, "evolve")
    assert again.stdout == waits.stdout, "asking twice changes nothing"
    assert len(RunStore(project.runs).list()) == 1
    decided(project, "accept")
    chosen = evolve(project, "evolve")
    assert "fixed: " in chosen.stdout
    assert "advice: " in chosen.stdout
    assert standing(project).now.branch == "evolve/1"
    assert standing(project).allowance == 12
    told = json.loads(evolve(project, "log", "--evalset", "shop", "--json", code=0).stdout)
    base, first = told["stages"]
    assert base["promised"] is None
    assert (first["came"], first["promised"] > 0) == (0, True), "the scripted policy does not learn"
    with_reason = ("--choose", "stop", "--by", "ann", "--reason", "enough")
    assert "ended: stop" in evolve(project, "evolve", *with_reason, code=0).stdout
    last = read(project.root)[-1]
    assert (last.by, last.reason, last.choice) == ("ann", "enough", "stop")


def test_trials_are_spent_out_of_what_a_person_allowed(tmp_path):
    project = make_shop(tmp_path)
    words = ["evolve", "--evalset", "shop", "--trials", "400"]
    asked = evolve(project, *words, "--authorise", "54", "--by", "ann")
    assert "trying edits with 400 rollouts was not allowed" in asked.stdout
    assert "--authorise 400" in asked.stderr
    done = evolve(project, "evolve", "--authorise", "400", "--by", "ann")
    spent = next(e for e in reversed(read(project.root)) if e.kind in ("proposed", "nothing"))
    assert 0 < spent.items <= 400
    assert f"{spent.items} rollouts spent on trials" in done.stderr
    assert standing(project).allowance == 400 - spent.items
    assert "goes on with trials `400`" in evolve(project, "evolve", "--trials", "9", code=2).stderr


def test_back_goes_on_from_the_selected_stage_and_remembers_what_was_rejected(tmp_path):
    project = make_shop(tmp_path)
    evolve(project, "evolve", "--evalset", "shop", "--authorise", "200", "--by", "ann")
    first = standing(project)
    decided(project, "reject")
    evolve(project, "evolve")
    after = standing(project)
    assert (after.step, after.now) == ("choose", first.now)
    evolve(project, "evolve", "--choose", "back", "--by", "ann")
    assert (project.root / ".harness/rejected.jsonl").is_file()
    assert standing(project).now.commit == first.begun.commit


def test_nobody_chooses_without_a_name_or_before_a_choice_is_asked_for(tmp_path):
    project = make_shop(tmp_path)
    assert "--by NAME" in evolve(project, "evolve", "--choose", "stop", code=2).stderr
    evolve(project, "evolve", "--evalset", "shop")
    wrong = evolve(project, "evolve", "--choose", "promote", "--by", "ann", code=2)
    assert "no choice is asked for" in wrong.stderr
    other = evolve(project, "evolve", "--limit", "3", code=2)
    assert "goes on with limit `None`" in other.stderr


def wait_for(there, seconds=60):
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def first_item_is_durable(project):
    """A run with an item in its journal: the progress lines come too seldom on a busy machine."""
    return any(
        run.journal.is_file() and b'"kind":"item"' in run.journal.read_bytes()
        for run in RunStore(project.runs).list()
    )


def test_a_killed_evaluation_is_gone_on_with_and_no_call_is_paid_twice(tmp_path):
    project = slow_shop(tmp_path)
    child = subprocess.Popen(
        [*HARNESS, "evolve", "--evalset", "shop", "--authorise", "54", "--by", "ann"],
        cwd=project.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: first_item_is_durable(project))
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (run,) = RunStore(project.runs).list()
    assert run.status() == "killed"
    evolve(project, "evolve")
    assert [r.id for r in RunStore(project.runs).list()] == [run.id], "the same run, resumed"
    assert standing(project).allowance == 0


def test_a_commit_made_right_before_a_kill_is_taken_up(tmp_path):
    project = make_shop(tmp_path)
    evolve(project, "evolve", "--evalset", "shop", "--authorise", "54", "--by", "ann")
    path = standing(project).file
    evolve(project, "edit", "apply", path, "--accept", "all", code=0)
    evolve(project, "evolve")
    assert standing(project).now.branch == "evolve/1"


def test_two_at_once_are_told_apart(tmp_path):
    project = slow_shop(tmp_path)
    words = ["evolve", "--evalset", "shop", "--limit", "12", "--authorise", "12", "--by", "ann"]
    first = subprocess.Popen([*HARNESS, *words], cwd=project.root, stderr=subprocess.DEVNULL)
    wait_for(lambda: RunStore(project.runs).list())
    second = evolve(project, "evolve", code=12)
    assert "harness evolve" in second.stderr
    assert first.wait() == 3


def test_a_torn_line_is_cut_and_a_strange_one_is_named(tmp_path):
    append(tmp_path, Event(kind="begun", at="t", commit="c"))
    with (tmp_path / FILE).open("a") as file:
        file.write('{"kind":"evalu')
    assert len(read(tmp_path)) == 1
    append(tmp_path, Event(kind="evaluated", at="t", run="r", items=3))
    assert [e.kind for e in read(tmp_path)] == ["begun", "evaluated"]
    with (tmp_path / FILE).open("a") as file:
        file.write('{"kind":"dreamt","at":"t"}\n')
    with pytest.raises(BadFile, match=r"evolve.jsonl:3"):
        read(tmp_path)


def test_the_loop_after_a_base_alone_has_no_stage_to_go_back_from():
    events = [
        Event(kind="begun", at="t", commit="c"),
        Event(kind="authorised", at="t", items=10, by="a"),
        Event(kind="evaluated", at="t", run="r0", items=4),
        Event(kind="applied", at="t", commit="d", branch="evolve/1"),
        Event(kind="evaluated", at="t", run="r1", items=4),
    ]
    at = fold(events)
    assert (at.step, at.allowance, at.now.run, at.selected.run) == ("choose", 2, "r1", "r0")
    forth = fold([*events, Event(kind="chosen", at="t", choice="another")])
    back = fold([*events, Event(kind="chosen", at="t", choice="back")])
    assert (forth.now.run, forth.selected.run, forth.step) == ("r1", "r1", "propose")
    assert (back.now.run, back.selected.run, back.step) == ("r0", "r0", "propose")
    assert fold([]) is None


def test_a_project_without_commits_is_told_what_to_do(tmp_path):
    from harness_cli.loop.evolve.steps import begin

    project = make_shop(tmp_path)
    subprocess.run(["git", "update-ref", "-d", "HEAD"], cwd=tmp_path, check=True)
    with pytest.raises(UsageError, match="nothing is committed yet"):
        begin(project, evalset=None, split=None, policy=None, limit=None)
