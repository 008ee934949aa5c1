"""Two switches: what proves a mixed pair, which axis carries a regression, what is live."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from released import GATES, edited, git, measured_project, promoted

from harness_cli.loop.status import status_of
from harness_cli.release.bisect import Effect, verdict
from harness_cli.release.channels import read_channel
from harness_cli.store.project import Project

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
