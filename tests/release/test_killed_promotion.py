"""kill -9 in the middle of a promotion: what serves is proven, and the next promotion mends git."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_cli.errors import RepoError
from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.loop.scaffold import make_project
from harness_cli.records.manifest import Approval
from harness_cli.release.candidate import named_run, pair_of_run, read_gates
from harness_cli.release.channels import list_manifests, read_channel
from harness_cli.release.clock import now
from harness_cli.release.gather import candidate, gather, read_approvals
from harness_cli.release.promote import Promotion, promote, record_approval
from harness_cli.release.rollback import roll_back
from harness_cli.release.verify import verified, verify
from harness_cli.store.project import Project

GATES = """\
schema: 1
gates:
  - {name: provenance, kind: provenance}
  - {name: judge, kind: judge, accept_judges: [grounded]}
  - {name: business, kind: regression, evalset: live_stream_qa, split: dev, minimum_n: 2}
  - {name: approvals, kind: approvals, approvals: 1}
"""


def git(root: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def measured(tmp_path_factory, isolated_session) -> Path:
    """A project with one complete run."""
    root = tmp_path_factory.mktemp("killed") / "shop"
    make_project(root)
    (root / "gates.yaml").write_text(GATES)
    git(root, "commit", "-qam", "gates of the test")
    asyncio.run(evaluate(Project.find(root), EvalOptions(evalset="live_stream_qa", limit=2)))
    return root


@pytest.fixture
def project(measured, tmp_path) -> Project:
    return Project.find(shutil.copytree(measured, tmp_path / "shop", symlinks=True))


def promoted(project: Project) -> Promotion:
    """One promotion of the run there is; the servers are taken to list what was locked."""
    run = named_run(project, None)
    pair = pair_of_run(run.config())
    record_approval(project, Approval(by="Ann", at=now(), subject=pair.subject))
    chosen = candidate(project, read_gates(project), pair, run)
    facts = gather(chosen, drift=(), approvals=read_approvals(project))
    return promote(chosen, facts, at=now(), by="Ann")


def killed_at(project: Project, event: str, words: str) -> None:
    """Promote in a process that kills itself before the step that mentions `words`."""
    child = os.fork()
    if child == 0:

        def step(name, args):
            if name == event and words in str(args[:2]):
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(step)
        promoted(project)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize(
    ("event", "words", "switched"),
    [
        ("os.rename", ".jsonl.zst.", False),
        ("os.rename", "-1.json.", False),
        ("os.rename", ".dev.json.", False),
        ("subprocess.Popen", "'add', '--force', '--', ", True),
        ("subprocess.Popen", "'--no-verify'", True),
    ],
)
def test_a_killed_promotion_has_switched_or_not_and_the_next_one_commits_it_all(
    project, event, words, switched, tmp_path
):
    killed_at(project, event, words)
    assert (read_channel(project.manifests, "dev").harness is not None) is switched
    for name in list_manifests(project.manifests):
        assert verified(verify(project, name)[1])
    assert promoted(project).decision.promotes
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(project.root), str(clone))
    served = read_channel(clone / "manifests", "dev")
    assert served == read_channel(project.manifests, "dev")
    known = list_manifests(clone / "manifests")
    assert {event.harness for event in served.history} <= known.keys()
    assert git(project.root, "status", "--porcelain", "--", "manifests/channels") == ""


def in_a_merge(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    git(root, "commit", "-q", "--allow-empty", "-m", "side")
    git(root, "checkout", "-q", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "main")
    git(root, "merge", "-q", "--no-commit", "--no-ff", "side")


def locked_index(root: Path) -> None:
    (root / ".git" / "index.lock").touch()


@pytest.mark.parametrize(
    ("busy", "says"), [(in_a_merge, "a merge is going on"), (locked_index, "another git command")]
)
def test_where_git_could_not_commit_nothing_is_switched(project, busy, says):
    busy(project.root)
    with pytest.raises(RepoError, match=says) as caught:
        promoted(project)
    assert caught.value.hint
    assert read_channel(project.manifests, "dev").harness is None
    assert list_manifests(project.manifests) == {}


def test_a_rollback_waits_for_git_as_well(project):
    promoted(project)
    before = read_channel(project.manifests, "dev")
    locked_index(project.root)
    with pytest.raises(RepoError, match="another git command"):
        roll_back(project, "dev", axes=frozenset({"harness"}), by="Ann", reason="")
    assert read_channel(project.manifests, "dev") == before


def test_verifying_writes_nothing_into_the_repository(project):
    promoted(project)
    (project.root / ".git" / "worktrees").write_text("no worktree can be made here")
    for name in list_manifests(project.manifests):
        assert verified(verify(project, name)[1])
