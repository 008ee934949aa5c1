"""A small project with one measured candidate, keys of people, and promotions in-process."""

import asyncio
import subprocess
from pathlib import Path

from harness_cli.evaluation.engine import evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.loop.scaffold import make_project
from harness_cli.records.manifest import Approval
from harness_cli.release.candidate import named_run, pair_of_run, read_gates
from harness_cli.release.checks import Check
from harness_cli.release.clock import now
from harness_cli.release.gather import Candidate, candidate, gather, read_approvals
from harness_cli.release.promote import Promotion, promote, record_approval
from harness_cli.release.session import compared_anew
from harness_cli.release.signing import trust_of
from harness_cli.release.ssh import Trust
from harness_cli.release.verify import check_all
from harness_cli.store.project import Project

GATES = """\
schema: 1
gates:
  - {name: provenance, kind: provenance}
  - {name: judge, kind: judge, accept_judges: [grounded]}
  - {name: business, kind: regression, evalset: live_stream_qa, split: dev, minimum_n: 2}
  - {name: approvals, kind: approvals, approvals: 1}
"""
FOR_ALL = "git,harness-manifest,harness-approval"


def git(root: Path, *args: str, ok: bool = True) -> str:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=ok)
    return done.stdout.strip()


def make_key(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(words, check=True, capture_output=True)
    return folder / name


def public(key: Path) -> str:
    return " ".join(Path(f"{key}.pub").read_text().split()[:2])


def allow(key: Path, name: str, options: str = f'namespaces="{FOR_ALL}"') -> str:
    return f"{name} {options} {public(key)}\n".replace("  ", " ")


def measured_project(root: Path, gates: str = GATES, limit: int = 2) -> Project:
    """A committed project with one complete run."""
    make_project(root)
    (root / "gates.yaml").write_text(gates)
    git(root, "commit", "-qam", "gates of the test")
    project = Project.find(root)
    asyncio.run(evaluate(project, EvalOptions(evalset="live_stream_qa", limit=limit)))
    return project


def commit_allowed(project: Project, text: str) -> Path:
    path = project.manifests / "allowed_signers"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    git(project.root, "add", "manifests/allowed_signers")
    git(project.root, "commit", "-qm", "who may sign")
    return path


def chosen(project: Project) -> Candidate:
    run = named_run(project, None)
    return candidate(project, read_gates(project), pair_of_run(run.config()), run)


def promoted(
    project: Project,
    *,
    key: Path | None = None,
    approver: str | None = "Ann",
    at: str | None = None,
    by: str = "Ann",
) -> Promotion:
    """One promotion of the newest run; the servers are taken to list what was locked."""
    picked = chosen(project)
    if approver:
        record_approval(project, Approval(by=approver, at=at or now(), subject=picked.pair.subject))
    facts = gather(picked, drift=(), approvals=read_approvals(project))
    again = None if at else lambda old: compared_anew(old, ())
    return promote(picked, facts, at=at or now(), by=by, key=key, anew=again)


def edited(project: Project, *, author: str = "Ed <ed@example.invalid>") -> None:
    """The next candidate: one more rule in a skill, committed and measured."""
    skill = project.harness / "skills" / "thanks" / "SKILL.md"
    skill.write_text(skill.read_text() + "\n- One more rule.\n")
    git(project.root, "commit", "-qam", "a rule", f"--author={author}")
    remeasured(project)


def remeasured(project: Project) -> None:
    """The newest run is one of what is committed now."""
    asyncio.run(evaluate(project, EvalOptions(evalset="live_stream_qa", limit=2)))


def outcomes(project: Project, name: str, trust: Trust | None = None) -> dict[str, tuple[str, str]]:
    """What → (outcome, detail) of every check."""
    checks: list[Check] = check_all(project, name, trust or trust_of(project))
    return {c.what: (c.outcome, c.detail) for c in checks}


def wrong(project: Project, name: str, trust: Trust | None = None) -> dict[str, str]:
    """The checks that went wrong, with their reasons."""
    found = outcomes(project, name, trust)
    return {what: detail for what, (outcome, detail) in found.items() if outcome == "wrong"}
