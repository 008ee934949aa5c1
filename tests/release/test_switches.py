"""Two switches: what proves a mixed pair, which axis carries a regression, what is live."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from released import GATES, edited, git, measured_project, promoted

from harness_cli.loop.status import status_of
from harness_cli.release.bisect import Effect, verdict
from harness_cli.release.channels import read_channel, switched, write_channel
from harness_cli.serving.rooms import rooms
from harness_cli.store.locks import locked
from harness_cli.store.project import Project

WAIT_S = 90.0
SCRIPT = "rules:\n  - replies: [{text: It costs 7 yuan.}]\n"


@pytest.fixture(scope="module")
def two_releases(tmp_path_factory, isolated_session) -> Path:
    """Two releases that differ in both switches."""
    root = tmp_path_factory.mktemp("switches") / "shop"
    project = measured_project(root, GATES.replace("minimum_n: 2", "minimum_n: 2, margin: 1"))
    promoted(project)
    config = root / "harness.yaml"
    text = config.read_text().replace("policy: builtin\n", "policy: other\n")
    row = "policies:\n  other: {kind: scripted, script: script.yaml}\n"
    (root / "script.yaml").write_text(SCRIPT)
    config.write_text(text.replace("policies:\n", row, 1))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "another policy")
    project = Project.find(root)
    edited(project)
    promoted(project)
    return root


@pytest.fixture
def project(two_releases, tmp_path) -> Project:
    return Project.find(shutil.copytree(two_releases, tmp_path / "shop", symlinks=True))


def program(root: Path, *args: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "harness_cli.main", *args]
    return subprocess.run(words, cwd=root, capture_output=True, text=True)


def test_one_switch_alone_is_refused_with_the_evaluations_that_would_prove_the_pair(project):
    before = read_channel(project.manifests, "dev")
    done = program(project.root, "rollback", "dev", "--harness")
    assert done.returncode == 1
    assert "never proven together" in done.stderr
    assert "harness eval live_stream_qa --split dev --policy other --harness" in done.stderr
    assert "rollouts, about" in done.stderr
    assert read_channel(project.manifests, "dev") == before
    assert program(project.root, "rollback", "dev").returncode == 0


def test_bisecting_runs_the_mixed_pairs_once_and_names_the_axis(project):
    plan = program(project.root, "promote", "bisect-axes", "--plan", "--json")
    assert plan.returncode == 0, plan.stderr
    found = json.loads(plan.stdout)
    assert len(found["missing"]) == 2
    assert found["verdict"].startswith("not decided")
    done = program(project.root, "promote", "bisect-axes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(e["what"], e["n"]) for e in found["effects"]] == [
        ("harness", 2), ("policy", 2), ("both", 2)
    ]  # fmt: skip
    runs = len(list(project.runs.iterdir()))
    again = json.loads(program(project.root, "promote", "bisect-axes", "--json").stdout)
    assert (again["effects"], len(list(project.runs.iterdir()))) == (found["effects"], runs)
    grid = {(p.policy, p.harness): p.verdict for p in status_of(project).grid}
    assert sorted(grid.values()) == ["evaluated", "evaluated", "proven", "proven"]


def test_bisecting_stops_at_its_budget_and_goes_on(project):
    done = program(project.root, "promote", "bisect-axes", "--max-tokens", "1", "-q")
    assert done.returncode == 13, done.stderr
    before = {p.name for p in project.runs.iterdir()}
    done = program(project.root, "promote", "bisect-axes", "-q", "--json")
    assert done.returncode == 0, done.stderr
    assert len({p.name for p in project.runs.iterdir()} - before) == 1  # the other mixed pair


def effect(what, delta):
    return Effect(what=what, run="r", n=9, delta=delta, low=delta - 0.1, high=delta + 0.1)


@pytest.mark.parametrize(
    ("harness", "policy", "both", "says"),
    [
        (-0.5, 0.0, -0.5, "the harness carries it"),
        (0.0, -0.5, -0.4, "the policy carries it"),
        (-0.5, -0.5, -0.9, "both switches carry it"),
        (0.0, 0.0, -0.5, "do not go together"),
        (0.0, 0.0, 0.0, "no regression is seen"),
    ],
)
def test_the_verdict_of_the_four_pairs(harness, policy, both, says):
    rows = {"harness": harness, "policy": policy, "both": both}
    assert says in verdict({what: effect(what, delta) for what, delta in rows.items()})


def test_where_one_switch_moved_there_is_nothing_to_bisect(project):
    assert program(project.root, "rollback", "dev").returncode == 0
    path = project.manifests / "channels" / "dev.json"
    made = json.loads(path.read_text())
    made["history"] = made["history"][:1]
    path.write_text(json.dumps(made))
    done = program(project.root, "promote", "bisect-axes")
    assert (done.returncode, "one state only" in done.stderr) == (1, True)


def test_status_holds_what_serves_against_what_is_desired(project):
    name = "other"
    assert program(project.root, "serve", "up", name).returncode == 0
    try:
        live = status_of(project).live
        assert [(s.name, s.agrees) for s in live] == [(name, True)]
        assert program(project.root, "rollback", "dev").returncode == 0
        [now] = status_of(project).live
        assert (now.agrees, now.policy != now.desired) == (False, True)
        assert "NO" in program(project.root, "status").stdout
    finally:
        program(project.root, "serve", "down", name)


class OpenRoom:
    """`harness run --chat --channel dev` on a pipe, as a service keeps it."""

    def __init__(self, project: Project, *more: str) -> None:
        words = [
            sys.executable,
            "-m",
            "harness_cli.main",
            "run",
            "--chat",
            "--channel",
            "dev",
            "-q",
        ]
        self.process = subprocess.Popen(
            [*words, *more], cwd=project.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        end = time.monotonic() + WAIT_S
        while not rooms(project.root) and time.monotonic() < end:
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.05)

    def __enter__(self) -> "OpenRoom":
        return self

    def __exit__(self, *_) -> None:
        self.process.communicate("/quit\n", timeout=WAIT_S)


def test_a_live_room_reports_both_digests_diverges_after_a_rollback_and_follows(project):
    log = project.root / ".harness" / "served" / "room.jsonl"
    with OpenRoom(project, "--log", str(log)) as room:
        [live] = status_of(project).live
        assert (live.kind, live.agrees, live.url) == ("room", True, f"pid {room.process.pid}")
        assert (live.policy, live.harness) == (live.desired, live.desired_harness)
        served = live
        room.process.stdin.write("amy: how much is link 1?\n")
        room.process.stdin.flush()
        assert room.process.stdout.readline().startswith("host: ")
        assert program(project.root, "rollback", "dev").returncode == 0
        [live] = status_of(project).live
        assert not live.agrees
        assert (live.policy, live.harness) == (served.policy, served.harness)
        assert live.policy != live.desired
        assert live.harness != live.desired_harness
        assert "NO" in program(project.root, "status").stdout
    assert status_of(project).live == ()
    told = json.loads(log.read_text().splitlines()[0])["trajectory"]
    assert (told["policy_id"], told["harness_id"]) == (served.policy, served.harness)
    with OpenRoom(project):
        [live] = status_of(project).live
        assert (live.agrees, live.policy != served.policy) == (True, True)


def test_one_switch_alone_shows_on_its_own_axis(project):
    """A hand that moves the harness switch alone: the policy agrees, the harness does not."""
    with OpenRoom(project):
        channel = read_channel(project.manifests, "dev")
        first = channel.history[0].harness
        moved = switched(
            channel, policy=channel.policy, harness=first, action="rollback", by="x", at="y"
        )
        write_channel(project.manifests, moved)
        [live] = status_of(project).live
        assert live.policy == live.desired
        assert live.harness != live.desired_harness
        assert not live.agrees


def test_a_killed_room_is_not_live(project):
    room = OpenRoom(project)
    room.process.kill()
    room.process.communicate()
    assert list((project.root / ".harness" / "serve" / "rooms").glob("*.json"))
    assert status_of(project).live == ()
    assert not list((project.root / ".harness" / "serve" / "rooms").glob("*.json"))


def test_a_room_serves_nothing_but_what_the_manifest_binds(project):
    text = (project.root / "script.yaml").read_text()
    (project.root / "script.yaml").write_text(text.replace("7 yuan", "8 yuan"))
    done = program(project.root, "run", "hello", "--channel", "dev")
    assert done.returncode == 12
    assert "serves the policy" in done.stderr
    (project.root / "script.yaml").write_text(text)
    assert program(project.root, "run", "hello", "--channel", "dev").returncode == 0
    assert program(project.root, "run", "hello", "--channel", "live").returncode == 1
    both = program(project.root, "run", "hello", "--channel", "dev", "--policy", "other")
    assert both.returncode == 2


def test_a_switch_in_progress_is_waited_for_passed_over_or_refused(project):
    path = project.runs.parent / "promote.lock"
    with locked(path, what="another switch"):
        fail = program(project.root, "rollback", "dev", "--if-locked", "fail")
        assert (fail.returncode, "another switch" in fail.stderr) == (12, True)
        skip = program(project.root, "rollback", "dev", "--if-locked", "skip", "--json")
        assert (skip.returncode, "skipped" in json.loads(skip.stdout)) == (0, True)
    assert len(read_channel(project.manifests, "dev").history) == 2
    assert program(project.root, "rollback", "dev").returncode == 0


def test_a_clone_answers_a_release_managers_four_questions(project, tmp_path):
    """What serves, why, what would break, who approved: one command each, nothing but git."""
    before = read_channel(project.manifests, "dev")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(project.root), str(clone))
    serves = program(clone, "status")
    assert serves.returncode == 0
    assert "other@" in serves.stdout
    why = program(clone, "manifest", "verify", "--channel", "dev", "--why")
    assert why.returncode == 0, why.stdout
    assert "holds: the gate `business` decides on the evidence as is recorded" in why.stdout
    who = program(clone, "manifest", "show", "--channel", "dev")
    assert re.search(r"approved by +Ann, 20\d\d-\S+, by name", who.stdout)
    assert "Ed <ed@example.invalid>" in who.stdout
    back = program(clone, "rollback", "dev", "--dry-run")
    assert back.returncode == 0, back.stderr
    assert f"proven by {before.history[0].harness}" in back.stdout
    assert "skill thanks" in back.stdout
    assert "business: avg" in back.stdout
    told = json.loads(program(clone, "rollback", "dev", "--dry-run", "--json").stdout)
    [gate] = told["gates"]
    assert gate["n"] == 2
    assert gate["difference"] == pytest.approx(gate["then"] - gate["now"])
    assert len(gate["breaks"]) + len(gate["mends"]) <= 2
    assert read_channel(clone / "manifests", "dev") == before
    assert git(clone, "status", "--porcelain", "--", "manifests") == ""


def test_looking_at_one_switch_tells_what_would_prove_the_pair(project):
    before = read_channel(project.manifests, "dev")
    done = program(project.root, "rollback", "dev", "--harness", "--dry-run")
    assert done.returncode == 1
    assert "NOT proven together" in done.stdout
    assert "would prove it: harness eval live_stream_qa --split dev --policy other" in done.stdout
    assert "skill thanks" in done.stdout
    assert read_channel(project.manifests, "dev") == before
    back = json.loads(program(project.root, "rollback", "dev", "--dry-run", "--json").stdout)
    assert program(project.root, "rollback", "dev").returncode == 0
    now = read_channel(project.manifests, "dev")
    assert (now.policy, now.harness) == (back["policy"], back["harness"])
