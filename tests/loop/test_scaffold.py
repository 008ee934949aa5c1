"""`harness init`: a project that loads at once, and nothing of the user's overwritten."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli.errors import UsageError
from harness_cli.harness.load import load_state
from harness_cli.loop import scaffold
from harness_cli.loop.doctor import examine
from harness_cli.loop.scaffold import make_project
from harness_cli.loop.status import status_of
from harness_cli.records.canonical import write_json
from harness_cli.store.project import Project


def git(root: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_new_project_is_committed_loads_and_has_nothing_missing(tmp_path):
    made = make_project(tmp_path / "a b" / "店")
    project = Project.find(made.root)
    assert made.new_repository
    assert git(made.root, "status", "--porcelain") == ""
    assert git(made.root, "rev-parse", "HEAD") == made.commit
    assert not load_state(project).dirty
    assert not [f for f in examine(made.root) if f.state == "missing"]
    assert status_of(project).channels == ()


def test_a_project_inside_a_repository_is_a_commit_of_that_repository(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/info/exclude").write_text("*.json*\nmanifests\n")
    (tmp_path / "mine.txt").write_text("x")
    made = make_project(tmp_path / "shop")
    assert not made.new_repository
    assert git(tmp_path, "status", "--porcelain") == "?? mine.txt"
    left_out = git(tmp_path, "ls-files", "--others", "--ignored", "--exclude-standard", "shop")
    assert left_out == ""


@pytest.mark.parametrize("name", ["harness.yaml", "harness_repo", "evalsets"])
def test_what_stands_there_is_never_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=name):
        make_project(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_an_existing_gitignore_keeps_its_lines(tmp_path):
    (tmp_path / ".gitignore").write_text("*.log\n")
    make_project(tmp_path)
    assert (tmp_path / ".gitignore").read_text().splitlines() == ["*.log", ".harness/", ".*.part"]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("os.chmod", "evalset"),
        ("subprocess.Popen", "'init'"),
        ("subprocess.Popen", "'add'"),
        ("subprocess.Popen", "'--no-verify'"),
        ("os.rename", "project"),
    ],
)
def test_kill_9_in_init_leaves_no_folder_and_the_next_init_works(tmp_path, event, words):
    child = os.fork()
    if child == 0:

        def step(name, args):
            if name == event and words in str(args[:2]):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(step)
        make_project(tmp_path / "shop")
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not (tmp_path / "shop").exists()
    made = make_project(tmp_path / "shop")
    assert git(made.root, "status", "--porcelain") == ""


def test_what_stands_in_the_way_is_told_apart(tmp_path):
    made = make_project(tmp_path / "shop")
    with pytest.raises(UsageError) as caught:
        make_project(made.root)
    assert "is a project already" in (caught.value.hint or "")
    (made.root / "harness.yaml").unlink()
    with pytest.raises(UsageError) as caught:
        make_project(made.root)
    assert "interrupted `init`" in (caught.value.hint or "")


@pytest.mark.parametrize("inside", [False, True], ids=["a new repository", "a repository's"])
def test_of_two_inits_at_once_the_later_one_is_told_and_changes_nothing(
    tmp_path, monkeypatch, inside
):
    if inside:
        git(tmp_path, "init", "-q")
    gather = scaffold.gather

    def overtaken(place: Path) -> None:
        gather(place)
        monkeypatch.setattr(scaffold, "gather", gather)
        make_project(tmp_path / "x")

    monkeypatch.setattr(scaffold, "gather", overtaken)
    with pytest.raises(UsageError, match="already has `harness_repo`"):
        make_project(tmp_path / "x")
    assert git(tmp_path / "x", "status", "--porcelain") == ""
    assert len(git(tmp_path / "x", "log", "--format=%h").splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir() if p.name != ".git"] == ["x"]


def test_an_empty_folder_stays_the_same_folder(tmp_path):
    (tmp_path / "shop").mkdir()
    before = (tmp_path / "shop").stat().st_ino
    made = make_project(tmp_path / "shop")
    assert made.new_repository
    assert made.root.stat().st_ino == before
    assert git(made.root, "rev-parse", "HEAD") == made.commit
    assert git(made.root, "status", "--porcelain") == ""


def test_a_file_in_the_way_is_a_usage_error(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        make_project(tmp_path / "x")


def test_doctor_says_what_is_missing_and_the_command(tmp_path):
    found = {f.name: f for f in examine(tmp_path)}
    assert found["project"].state == "missing"
    assert "harness init" in found["project"].fix


def test_the_environment_goes_before_the_file_and_is_named_as_source(tmp_path, monkeypatch):
    root = make_project(tmp_path / "p").root
    monkeypatch.setenv("HARNESS_POLICY", "local")
    project = Project.find(root)
    assert project.config.policy == "local"
    assert project.sources["policy"] == "HARNESS_POLICY"
    assert project.sources["limits"] == "default"
    assert project.sources["gates"] == "harness.yaml"


def test_a_policy_without_its_key_is_missing_only_where_it_is_the_default(tmp_path):
    root = make_project(tmp_path / "p").root
    text = (root / "harness.yaml").read_text()
    more = (
        '  far: {kind: openai, base_url: "http://127.0.0.1:1/v1", model: m, api_key_env: NO_KEY}\n'
    )
    (root / "harness.yaml").write_text(text.replace("judges:", more + "judges:"))
    found = {f.name: f for f in examine(root)}
    assert (found["policy far"].state, found["policy far"].fix) == (
        "optional",
        "export NO_KEY=…",
    )


def test_a_value_that_looks_like_a_key_is_refused(tmp_path):
    root = make_project(tmp_path / "p").root
    with (root / "harness.yaml").open("a") as file:
        file.write("# sk-proj-abcdefghijklmnopqrstuvwx\n")
    done = subprocess.run(
        [sys.executable, "-m", "harness_cli.main", "doctor", "-C", str(root)],
        capture_output=True,
        text=True,
    )
    assert "looks like a secret" in done.stdout
    assert "sk-proj" not in done.stdout + done.stderr


def test_a_channel_without_history_is_shown(tmp_path):
    made = make_project(tmp_path / "shop")
    write_json(made.root / "manifests/channels/dev.json", {"name": "dev", "policy": "m"})
    [channel] = status_of(Project.find(made.root)).channels
    assert (channel.since, channel.by, channel.proven) == ("unknown", "unknown", False)
