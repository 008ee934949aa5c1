"""A proposal is good for one use, whatever kills the program that applies it.

`.harness/applied/<nonce>.json` is written twice, each time whole: before the commit with the branch
that is about to move, after it with the commit. A record without a commit is what a killed program
left; the branch tells how far it came.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, Stale
from harness_cli.evolution.proposal_file import now, read_proposal, write_proposal
from harness_cli.records.canonical import write_json
from harness_cli.records.diagnosis import Proposal
from harness_cli.records.reader import read_json
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo

FOLDER = Path(".harness") / "applied"
"""Below the project: one file per used nonce, and the proposal as it was decided."""


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """What a proposal became, or was about to become."""

    proposal: str
    branch: str
    at: str
    commit: str | None = None
    """None until the branch has moved."""


def use_of(project: Project, repo: Repo, proposal: Proposal) -> Use | None:
    """The use that was made of a proposal; None when it may still be applied."""
    path = _path(project, proposal)
    if not path.exists():
        return None
    try:
        found = read_json(path, Use, name=f"{FOLDER}/{path.name}")
    except BadFile:  # cut short: nothing that was ended is
        return None
    if found.commit is not None:
        return found
    made = repo.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{found.branch}")
    told = "%(trailers:key=Proposal,valueonly,separator=)"
    if made is None or repo.ask("log", "-1", f"--format={told}", made) != proposal.id:
        return None
    return msgspec.structs.replace(found, commit=made)


def refuse_used(project: Project, repo: Repo, proposal: Proposal) -> None:
    """Raise `Stale` when the proposal has become a commit before."""
    found = use_of(project, repo, proposal)
    if found is not None:
        raise Stale(
            f"proposal `{proposal.id}` was applied before, as {(found.commit or '')[:12]} on "
            f"`{found.branch}`",
            hint="a proposal is good for one use; `harness edit` makes a new one",
        )


@contextmanager
def applying(project: Project) -> Iterator[None]:
    """One application at a time: branch numbers and nonces are taken under this lock."""
    path = project.root / ".harness" / "locks" / "apply"
    with locked(path, what="harness edit apply", if_locked="wait", timeout_s=60):
        yield


@contextmanager
def single_use(
    project: Project, proposal: Proposal, branch: str
) -> Iterator[Callable[[str], None]]:
    """Takes the nonce while the commit is made; a failure gives it back, a kill as well.

    The caller holds `applying` and has called `refuse_used`. Yields what is to be called with the
    commit once it is there.
    """
    path = _path(project, proposal)
    begun = Use(proposal=proposal.id, branch=branch, at=now())
    write_json(path, begun)
    made: list[str] = []

    write_proposal(_kept(project, proposal.id), proposal)

    def record(commit: str) -> None:
        made.append(commit)
        write_json(path, msgspec.structs.replace(begun, commit=commit))

    try:
        yield record
    finally:
        if not made:
            path.unlink(missing_ok=True)


def applied_proposals(project: Project) -> list[tuple[Use, Proposal]]:
    """Every proposal that became a commit here, with what it became, oldest first."""
    found = []
    for path in (project.root / FOLDER).glob("*.json"):
        use = read_json(path, Use, name=f"{FOLDER}/{path.name}")
        kept = _kept(project, use.proposal)
        if use.commit is not None and kept.is_file():
            found.append((use, read_proposal(kept)))
    return sorted(found, key=lambda x: x[0].at)


def _kept(project: Project, name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name):
        raise BadFile(
            f"the id of proposal `{name}` is no plain name",
            hint="letters, digits, `.`, `_` and `-`; `harness edit --plan-only` makes one",
        )
    return project.root / FOLDER / f"{name}.yaml"


def _path(project: Project, proposal: Proposal) -> Path:
    if not re.fullmatch(r"[0-9a-f]{16,64}", proposal.nonce):
        raise BadFile(
            f"the nonce of proposal `{proposal.id}` is no hexadecimal number",
            hint="make the proposal anew with `harness edit --plan-only`",
        )
    return project.root / FOLDER / f"{proposal.nonce}.json"
