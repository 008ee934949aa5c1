"""`harness diagnose` and `harness edit` as a user types them, at a real terminal and without one."""

import io
import json
import os
import pty
import re
import select
import signal
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest
from small_shop import git, make_shop, run_shop

from harness_cli.evolution.proposal_file import read_proposal
from harness_cli.main import main

# ruff: noqa: E501  rows of tables read best on one line


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A project with one finished run of its dev split."""
    project = make_shop(tmp_path_factory.mktemp("shop") / "shop")
    run_shop(project)
    return project


def harness(shop, *args, **env):
    """The program's own `main`, in this process (scikit-learn loads once), without a terminal."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(shop.root)
        patch.setattr(sys, "argv", ["harness", *args])
        patch.setattr(sys, "stdin", io.StringIO())
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            main()
        except SystemExit as exc:
            code = exc.code or 0
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), returncode=code)


def at_terminal(shop, *args, keys=(), env=None):
    """Run under a pseudo-terminal, typing one key after each question; returns (output, exit)."""
    child, fd = pty.fork()
    if child == 0:
        os.chdir(shop.root)
        # What runs in the background of a script ignores ^C and hands that on; no terminal does.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update(env or {}, TERM="xterm")
        os.execv(sys.executable, [sys.executable, "-m", "harness_cli.main", *args])
    out, left, answered, end = b"", list(keys), 0, time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        questions = len(re.findall(rb"\]\? |Why not\? ", out))
        if questions > answered:
            answered += 1
            os.write(fd, left.pop(0).encode() + b"\n" if left else b"\x04")
    else:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(fd)
    return out.decode("utf-8", "replace"), os.waitstatus_to_exitcode(status)


def test_diagnose_writes_and_shows_the_classes_of_a_run(shop):
    done = harness(shop, "diagnose", "--json")
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert [c["id"] for c in made["clusters"]] == [
        "tool-not-called-get-inventory",
        "wrong-skill-item-qa-aftersale",
    ]
    assert made["failures"] == 36
    run = made["run"]
    kept = json.loads((shop.runs / run / "diagnosis.json").read_text())
    assert kept["clusters"] == made["clusters"]
    text = harness(shop, "diagnose", "show", "--run", run)
    assert "unexplained: 0%" in text.stdout
    assert "advice: continue" in text.stdout
    assert re.search(r"stock-\d\d:1 ", text.stdout)
    assert harness(shop, "diagnose", "show", run).stdout == text.stdout


def test_diagnose_of_a_sealed_split_is_refused(shop):
    run = run_shop(shop, split="test", reason="a test of the seal")
    done = harness(shop, "diagnose", run)
    assert done.returncode == 2
    assert "sealed split `test`" in done.stderr
    assert json.loads(harness(shop, "diagnose", "--json").stdout)["run"] != run
    assert harness(shop, "edit", "--run", run, "--plan-only").returncode == 2


def test_a_run_that_a_promotion_made_is_diagnosed_only_by_name(shop):
    run = run_shop(shop, limit=6)
    path = shop.runs / run / "run.json"
    config = json.loads(path.read_text())
    assert json.loads(harness(shop, "diagnose", "--json").stdout)["run"] == run
    path.write_text(json.dumps({**config, "command": ["harness", "promote"]}))
    assert json.loads(harness(shop, "diagnose", "--json").stdout)["run"] != run
    assert json.loads(harness(shop, "diagnose", run, "--json").stdout)["run"] == run
    path.unlink()


def test_where_only_imported_runs_are_the_hint_names_one(tmp_path):
    project = make_shop(tmp_path)
    chat = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hi"}]}\n'
    (tmp_path / "chat.jsonl").write_text(chat)
    assert harness(project, "evalset", "import", "openai-chat", "chat.jsonl").returncode == 0
    done = harness(project, "diagnose")
    assert done.returncode == 2
    named = re.search(r"the newest run is `(\S+)`", done.stderr)[1]
    assert harness(project, "diagnose", named).returncode == 0


def test_diagnose_show_without_a_diagnosis_and_of_an_unknown_run(shop):
    assert harness(shop, "diagnose", "show", "--run", "nope").returncode == 2
    other = run_shop(shop, limit=6)
    done = harness(shop, "diagnose", "show", other)
    assert done.returncode == 2
    assert f"harness diagnose {other}" in done.stderr
    (shop.runs / other / "run.json").unlink()


def test_a_run_that_goes_on_is_diagnosed_anew(shop, tmp_path):
    run = run_shop(shop, limit=6)
    report = shop.runs / run / "report.json"
    whole = report.read_bytes()
    report.unlink()
    assert f"note: run `{run}` is killed: 6 finished items" in harness(shop, "diagnose", run).stderr
    report.write_bytes(whole)
    file = shop.runs / run / "diagnosis.json"
    diagnosis = json.loads(file.read_text())
    file.write_text(json.dumps({**diagnosis, "of": 5, "failures": 1, "clusters": []}))
    words = ("edit", "--run", run, "--plan-only", "-o", str(tmp_path / "p.yaml"))
    done = harness(shop, *words)
    assert (done.returncode, "is killed" in done.stderr) == (0, False)
    assert json.loads(file.read_text())["clusters"] == diagnosis["clusters"]
    (shop.runs / run / "run.json").unlink()


def test_an_empty_proposal_is_a_result_that_says_why_and_changes_nothing(shop, tmp_path):
    run, plan = run_shop(shop, limit=2), tmp_path / "none.yaml"
    before = git(shop.root, "for-each-ref"), git(shop.root, "status", "--porcelain")
    why = r"nothing to propose: \d failures? of 2, and no cause"
    done = harness(shop, "edit", "--run", run, "--plan-only", "-o", str(plan))
    assert (done.returncode, done.stdout.strip()) == (0, str(plan)), done.stderr
    assert re.search(rf"run `{run}`: {why}", done.stderr)
    assert "0 edits" in done.stderr
    assert "evaluate more items" in done.stderr
    shown = harness(shop, "edit", "show", str(plan))
    assert shown.returncode == 0
    assert re.search(why, shown.stdout)
    applied = harness(shop, "edit", "apply", str(plan), "--accept", "all")
    assert (applied.returncode, applied.stdout) == (0, "")
    assert "nothing to apply, the harness stays as it is" in applied.stderr
    asked = json.loads(harness(shop, "edit", "apply", str(plan), "--json").stdout)
    assert asked["applied"] is None
    assert re.search(why, asked["why"])
    assert before == (git(shop.root, "for-each-ref"), git(shop.root, "status", "--porcelain"))
    (shop.runs / run / "run.json").unlink()


def test_edit_without_a_file_leaves_none_where_there_is_nothing_to_propose(shop):
    run, there = run_shop(shop, limit=2), set(shop.root.glob("p-*.yaml"))
    done = harness(shop, "edit", "--run", run, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["applied"] is None
    assert set(shop.root.glob("p-*.yaml")) == there
    (shop.runs / run / "run.json").unlink()


def test_an_empty_proposal_is_never_too_old_nor_used_up(shop, tmp_path):
    plan = tmp_path / "gone.yaml"
    plan.write_text(
        "schema: 1\nid: p-0\nbase: 1b5d217029deeccd5dad74c016e2ab0911ddca07\nnonce: n\n"
        "diagnosis: none\nproposer: somebody\n"
    )
    for _ in range(2):
        done = harness(shop, "edit", "apply", str(plan))
        assert done.returncode == 0, done.stderr
        assert "it holds no edits" in done.stderr
    shown = harness(shop, "edit", "show", str(plan)).stdout
    assert "it holds no edits" in shown
    assert "STALE" not in shown


def test_the_whole_way_without_a_terminal(shop, tmp_path):
    plan = tmp_path / "p.yaml"
    done = harness(shop, "edit", "--plan-only", "-o", str(plan))
    assert done.returncode == 0, done.stderr
    shown = harness(shop, "edit", "show", str(plan))
    assert "+  Also for comments like" in shown.stdout
    waits = harness(shop, "edit", "apply", str(plan))
    assert waits.returncode == 3
    assert f"harness edit review {plan}" in waits.stderr
    assert harness(shop, "edit", "review", str(plan)).returncode == 3
    applied = harness(shop, "edit", "apply", str(plan), "--accept", "all", "--by", "ci", "--json")
    assert applied.returncode == 0, applied.stderr
    branch = json.loads(applied.stdout)["applied"]["branch"]
    assert "Accepted-by-script: ci" in git(shop.root, "log", "-1", "--format=%B", branch)
    again = harness(shop, "edit", "apply", str(plan), "--accept", "all")
    assert again.returncode == 12
    stale = harness(shop, "edit", "show", str(plan))
    assert stale.returncode == 0
    assert "STALE: it was applied before" in stale.stdout
    assert harness(shop, "edit", "--plan-only", "-o", str(shop.root / "s.yaml")).returncode == 2
    git(shop.root, "branch", "-D", branch)


def test_a_change_for_a_public_channel_says_that_two_others_must_approve(shop, tmp_path):
    plan, gates = tmp_path / "p.yaml", shop.root / "gates.yaml"
    assert harness(shop, "edit", "--plan-only", "-o", str(plan)).returncode == 0
    assert "two other people" not in harness(shop, "edit", "show", str(plan)).stdout
    kept = gates.read_text() if gates.exists() else None
    gates.write_text("schema: 1\ngates:\n  - {name: a, kind: approvals, public: true}\n")
    try:
        assert "two other people must approve" in harness(shop, "edit", "show", str(plan)).stdout
        done = harness(shop, "edit", "apply", str(plan), "--accept", "all", "--by", "ci")
        assert "two other people must approve" in done.stderr
        out, _ = at_terminal(shop, "edit", "--plan-only", "-o", str(tmp_path / "q.yaml"))
        out, _ = at_terminal(shop, "edit", "review", str(tmp_path / "q.yaml"), keys=["q"])
        assert "two other people must approve" in out
    finally:
        git(shop.root, "branch", "-D", done.stdout.split()[0])
        gates.unlink() if kept is None else gates.write_text(kept)


def test_some_edits_by_name_and_an_unknown_name(shop, tmp_path):
    plan = tmp_path / "p.yaml"
    harness(shop, "edit", "--plan-only", "-o", str(plan))
    wrong = harness(shop, "edit", "apply", str(plan), "--accept", "trigger-aftersales")
    assert wrong.returncode == 2
    assert "did you mean `trigger-aftersale" in wrong.stderr
    done = harness(shop, "edit", "apply", str(plan), "--accept", "trigger-aftersale", "--json")
    applied = json.loads(done.stdout)["applied"]
    assert applied["files"] == ["skills/aftersale/SKILL.md"]
    git(shop.root, "branch", "-D", applied["branch"])


def test_without_a_terminal_edit_leaves_a_file_and_says_what_decides(shop):
    done = harness(shop, "edit")
    assert done.returncode == 3
    path = re.search(r"harness edit review (\S+)`", done.stderr)[1]
    assert harness(shop, "edit", "show", path).returncode == 0
    (shop.root / path).unlink()


def test_a_review_at_a_real_terminal(shop, tmp_path):
    plan = tmp_path / "p.yaml"
    harness(shop, "edit", "--plan-only", "-o", str(plan))
    out, code = at_terminal(
        shop,
        "edit",
        "apply",
        str(plan),
        "--by",
        "ann",
        keys=["c", "?", "y", "n", "too broad", *["d", "no"] * 8],
    )
    assert code == 0, out
    assert "\x1b[32m+" in out
    assert "viewer: " in out
    branch = re.search(r"evolve/\d+", out)[0]
    assert "Reviewed-by: ann" in git(shop.root, "log", "-1", "--format=%B", branch)
    text = plan.read_text()
    assert "reason: too broad" in text
    git(shop.root, "branch", "-D", branch)
    later = harness(shop, "edit", "--plan-only", "-o", str(tmp_path / "q.yaml"))
    assert "was rejected before" in later.stderr
    (shop.root / ".harness/rejected.jsonl").unlink()


def test_quitting_a_review_keeps_what_was_decided_and_applies_nothing(shop, tmp_path):
    plan = tmp_path / "p.yaml"
    harness(shop, "edit", "--plan-only", "-o", str(plan))
    out, code = at_terminal(shop, "edit", "apply", str(plan), keys=["y", "q"])
    assert code == 3, out
    assert [op.decision.state for e in read_proposal(plan).edits for op in e.ops].count(
        "accept"
    ) == 1
    assert git(shop.root, "branch", "--list", "evolve/*") == ""


def test_an_interrupted_review_keeps_what_was_decided_and_says_how_to_go_on(shop, tmp_path):
    plan = tmp_path / "p.yaml"
    harness(shop, "edit", "--plan-only", "-o", str(plan))
    out, code = at_terminal(shop, "edit", "review", str(plan), "--by", "ann", keys=["y", "\x03"])
    assert code == 130, out
    assert f"go on: harness edit review {plan}" in out
    made = [op.decision for e in read_proposal(plan).edits for op in e.ops]
    assert [d.by for d in made if d.state == "accept"] == ["ann"]
    assert git(shop.root, "branch", "--list", "evolve/*") == ""


def test_e_opens_the_editor_at_a_real_terminal(shop, tmp_path):
    plan, editor = tmp_path / "p.yaml", tmp_path / "ed.sh"
    editor.write_text(
        "#!/bin/sh\nsed -i 's/Say what a tool gave/Say only what a tool gave/' \"$1\"\n"
    )
    editor.chmod(0o755)
    plan_op = ("schema: 1\nid: p-1\nbase: BASE\nnonce: aaaaaaaaaaaaaaaaaaaa\ndiagnosis: by file\nproposer: ann\nedits:\n"
               "- id: one\n  module: skills/greet/SKILL.md\n  rationale: r\n  ops:\n"
               "  - {op: replace, path: skills/greet/SKILL.md, search: '# greet', text: '# Greeting'}\n")  # fmt: skip
    base = json.loads(
        harness(shop, "edit", "--plan-only", "--json", "-o", str(tmp_path / "q.yaml")).stdout
    )
    plan.write_text(plan_op.replace("BASE", base["proposal"]["base"]))
    out, code = at_terminal(
        shop, "edit", "apply", str(plan), keys=["e"], env={"EDITOR": str(editor), "VISUAL": ""}
    )
    assert code == 0, out
    branch = re.search(r"evolve/\d+", out)[0]
    text = git(shop.root, "show", f"{branch}:harness_repo/skills/greet/SKILL.md")
    assert "# Greeting" in text
    assert "- Say only what a tool gave" in text
    git(shop.root, "branch", "-D", branch)


@pytest.mark.parametrize("other", [("--judge", "final"), ("--by-hand",)])
def test_trials_are_for_a_run_of_the_host_alone(shop, other):
    done = harness(shop, "edit", "--trials", "10", *other)
    assert done.returncode == 2
    assert "--trials goes neither" in done.stderr


def test_edits_by_hand(shop, tmp_path):
    editor = tmp_path / "ed.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/short/very short/' \"$1/fallback.md\"\n")
    editor.chmod(0o755)
    done = harness(shop, "edit", "--by-hand", "--by", "ann", EDITOR=str(editor), VISUAL="")
    assert done.returncode == 0, done.stderr
    branch = re.search(r"evolve/\d+", done.stdout)[0]
    assert (
        git(shop.root, "show", f"{branch}:harness_repo/fallback.md") == "One very short sentence."
    )
    git(shop.root, "branch", "-D", branch)
    nothing = harness(shop, "edit", "--by-hand", EDITOR="true", VISUAL="")
    assert (nothing.returncode, "nothing was changed" in nothing.stderr) == (0, True)
    nothing = harness(shop, "edit", "--by-hand", "--json", EDITOR="true", VISUAL="")
    assert json.loads(nothing.stdout)["applied"] is None
    failed = harness(shop, "edit", "--by-hand", EDITOR="false", VISUAL="")
    assert failed.returncode == 2
    for editor in ("no-such-editor", "'no-such editor", "no-such-editor 'a"):
        missing = harness(shop, "edit", "--by-hand", EDITOR=editor, VISUAL="")
        assert (missing.returncode, "does not start" in missing.stderr) == (2, True)


def test_an_evalset_that_changed_since_the_run_is_said_and_survived(shop):
    items = shop.evalsets / "shop/items.jsonl"
    kept = items.read_text()
    try:
        items.write_text(kept.replace("hello from", "hello  from", 1))
        done = harness(shop, "diagnose", "--json")
        assert done.returncode == 0, done.stderr
        assert "changed since this run" in done.stderr
        assert json.loads(done.stdout)["failures"] == 36
    finally:
        items.write_text(kept)
