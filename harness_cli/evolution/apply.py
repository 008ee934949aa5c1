"""A confirmed proposal becomes one commit on `evolve/<n>`, or nothing at all.

The commit is made by plumbing: no working tree and no index is read or written, dirty or not. In
this order, each step before anything is written: every hunk decided; never used before; its base
still the newest harness of some branch; paths, regions and code allowed; every operation applies;
the result passes the harness check; its new and changed hooks do not fail on recorded rollouts.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, RepoError, Stale, UsageError
from harness_cli.evaluation.seal import openings
from harness_cli.evolution.ops import apply_ops
from harness_cli.evolution.paths import Refused
from harness_cli.evolution.proposal_file import chosen_ops, hunks
from harness_cli.evolution.rehearsal import Rehearsal, rehearse
from harness_cli.evolution.review import deciders, need_decisions
from harness_cli.evolution.safety import check_changes, check_ops
from harness_cli.evolution.single_use import applying, refuse_used, single_use, use_of
from harness_cli.harness.load import state_from_files
from harness_cli.harness.parts import JUDGES, content, judges
from harness_cli.harness.revisions import PREFIX, last_evolution
from harness_cli.records.diagnosis import Proposal
from harness_cli.records.harness import HarnessState
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import FILE, Entry


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    proposal: str
    commit: str
    branch: str
    harness_id: str
    files: tuple[str, ...]
    undo: str
    """The command that takes it back."""
    rehearsed: tuple[Rehearsal, ...] = ()
    """What the new and changed hooks do on recorded rollouts."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal's result before it is committed: checked, loadable, different."""

    base_commit: str
    harness_id: str
    changes: dict[str, bytes | None]
    rehearsed: tuple[Rehearsal, ...] = ()


def apply(
    project: Project,
    proposal: Proposal,
    *,
    allow_code: bool = False,
    judge: str | None = None,
    command: str = "harness edit review FILE",
) -> Applied:
    """Commit the accepted hunks of a proposal on a new branch.

    Raises `NeedsPerson` while hunks are undecided, `Stale` when the base is no branch's newest
    harness any more or the proposal was used, `BadFile` when an operation does not apply or the
    result is no valid harness, `Refused` for what no edit may touch. Nothing is written then.
    """
    need_decisions(proposal, command)
    repo = Repo.open(project.harness)
    refuse_used(project, repo, proposal)
    made = candidate(project, repo, proposal, allow_code=allow_code, judge=judge)
    with applying(project):
        refuse_used(project, repo, proposal)  # by another process, while this one looked
        branch = f"{PREFIX}{last_evolution(repo) + 1}"
        with single_use(project, proposal, branch) as record:
            commit = repo.commit_files(
                branch,
                made.base_commit,
                project.harness,
                made.changes,
                message_of(project, proposal),
            )
            record(commit)
    where = "" if _same(repo.root, project.root) else f" -C {project.config.harness}"
    return Applied(
        proposal=proposal.id,
        commit=commit,
        branch=branch,
        harness_id=made.harness_id,
        files=tuple(made.changes),
        undo=f"git{where} branch -D {branch}",
        rehearsed=made.rehearsed,
    )


def base_files(project: Project, proposal: Proposal) -> dict[str, bytes] | None:
    """The harness files a proposal was made for; None when they are not at hand any more."""
    repo = Repo.open(project.harness)
    try:
        judge = judge_of(proposal)
        rev = proposal.base_commit or find_base(project, repo, proposal, judge=judge)
        return {path: e.data for path, e in repo.files(rev, project.harness).items()}
    except (RepoError, Stale):
        return None


def candidate(
    project: Project,
    repo: Repo,
    proposal: Proposal,
    *,
    allow_code: bool = False,
    judge: str | None = None,
) -> Candidate:
    """The harness that the accepted hunks make, checked; nothing is written."""
    ops = chosen_ops(proposal)
    if not ops:
        raise UsageError(
            f"proposal `{proposal.id}` has no accepted hunk", hint="there is nothing to apply"
        )
    base = find_base(project, repo, proposal, judge=judge)
    entries = repo.files(base, project.harness)
    modes = {path: entry.mode for path, entry in entries.items()}
    check_ops(ops, modes, judge=judge, folder=project.harness)
    before = {path: entry.data for path, entry in entries.items()}
    changes = apply_ops(before, ops)
    if not changes:
        raise UsageError(f"proposal `{proposal.id}` changes nothing")
    check_changes(before, changes, allow_code=allow_code)
    made = _checked(repo, changed_entries(entries, changes), proposal, judge)
    tried = () if judge else rehearse(project, proposal.diagnosis, _sound(repo, entries), made)
    return Candidate(base_commit=base, harness_id=made.id, changes=changes, rehearsed=tried)


def changed_entries(
    entries: Mapping[str, Entry], changes: Mapping[str, bytes | None]
) -> dict[str, Entry]:
    """The files after the changes, each with the mode it had."""
    kept = {path: entry for path, entry in entries.items() if path not in changes}
    for path, data in changes.items():
        if data is not None:
            kept[path] = Entry(entries[path].mode if path in entries else FILE, data)
    return kept


def _sound(repo: Repo, files: Mapping[str, Entry]) -> HarnessState | None:
    """The base as a state; None for one that is broken, which a proposal may mend."""
    try:
        return state_from_files(files, object_format=repo.object_format)
    except BadFile:
        return None


def _checked(
    repo: Repo, files: Mapping[str, Entry], proposal: Proposal, judge: str | None
) -> HarnessState:
    part = judges(files).get(judge, {}) if judge else files
    try:
        return state_from_files(part, object_format=repo.object_format, judge=judge is not None)
    except BadFile as exc:
        raise BadFile(
            f"proposal `{proposal.id}` would break the harness; nothing was written\n{exc}",
            hint="reject or change the hunk that touches this file, then apply again",
        ) from exc


def find_base(project: Project, repo: Repo, proposal: Proposal, *, judge: str | None = None) -> str:
    """The commit to build on: a branch tip (HEAD first, then `evolve/*`) that holds the base.

    Raises `Stale` when no branch's newest harness is the base any more.
    """
    tips = [head] if (head := repo.head()) else []
    refs = repo.refs("refs/heads/")
    tips += sorted(set(refs.values()) - set(tips))
    for tip in tips:
        if base_id(project, repo, tip, judge) == proposal.base:
            return tip
    if proposal.base_commit is None:
        raise Stale(
            f"the base of proposal `{proposal.id}` was never committed",
            hint="commit the harness, evaluate it, and make the proposal anew",
        )
    raise Stale(
        f"proposal `{proposal.id}` was made for harness {proposal.base[:12]}, which is no branch's "
        "newest harness any more",
        hint="evaluate the harness as it is now, then `harness diagnose` and `harness edit`",
    )


def base_id(project: Project, repo: Repo, rev: str, judge: str | None = None) -> str | None:
    """The harness id (or that of a judge) at a commit; None where there is none."""
    try:
        files = repo.files(rev, project.harness)
    except RepoError:
        return None
    part = judges(files).get(judge, {}) if judge else content(files)
    return repo.tree_id(part) if part else None


def is_stale(project: Project, proposal: Proposal, *, judge: str | None = None) -> str | None:
    """Why a proposal could not be applied now; None when it could."""
    repo = Repo.open(project.harness)
    if use_of(project, repo, proposal) is not None:
        return "it was applied before"
    try:
        find_base(project, repo, proposal, judge=judge)
    except Stale as exc:
        return str(exc)
    return None


def refuse_stale(project: Project, proposal: Proposal, *, judge: str | None = None) -> None:
    """Raise `Stale` where a proposal cannot be applied any more, before anyone is asked.

    A judge's proposal without the judge's name is `Refused`: nobody edits a judge in passing.
    """
    named = judge_of(proposal)
    if judge is None and named is not None:
        raise Refused(
            f"proposal `{proposal.id}` edits the judge `{named}`, whose files are protected",
            hint=f"`harness edit apply FILE --judge {named}` when that is meant",
        )
    repo = Repo.open(project.harness)
    refuse_used(project, repo, proposal)
    find_base(project, repo, proposal, judge=judge)


def message_of(project: Project, proposal: Proposal) -> str:
    """Subject, the accepted edits, and trailers that link everything back."""
    taken: dict[str, tuple[str, int]] = {}
    for _, edit, op in hunks(proposal):
        if op.decision.state in ("accept", "modify"):
            words = edit.rationale.strip().splitlines() or [""]
            taken[edit.id] = (words[0], taken.get(edit.id, ("", 0))[1] + 1)
    lines = [f"- {name}: {words}" for name, (words, _) in taken.items()]
    people, scripts = deciders(proposal)
    trailers = [f"Proposal: {proposal.id}", f"Diagnosis: {proposal.diagnosis}"]
    trailers += [f"Base: {proposal.base}", f"Proposer: {proposal.proposer}"]
    trailers += [f"Reviewed-by: {name}" for name in people]
    trailers += [f"Accepted-by-script: {name}" for name in scripts]
    trailers += _after_opening(project)
    plural = "edit" if len(taken) == 1 else "edits"
    judge = judge_of(proposal)
    what = f"the judge `{judge}`" if judge else "the harness"
    subject = f"Evolve {what}: {len(taken)} {plural} from diagnosis {proposal.diagnosis}"
    listed = "\n".join(lines)
    return f"{subject}\n\n{listed}\n\n" + "\n".join(map(_one_line, trailers)) + "\n"


def judge_of(proposal: Proposal) -> str | None:
    """The judge whose folder every path of a proposal lies in; None for a host's.

    For telling alone: what may be touched is for the caller of `apply` to say.
    """
    paths = [op.path.split("/") for _, _, op in hunks(proposal)]
    folders = {p[1] if p[0] == JUDGES and len(p) > 2 else None for p in paths}
    return folders.pop() if len(folders) == 1 else None


def _after_opening(project: Project) -> list[str]:
    """A sealed split was opened before this edit: the edit is marked (TR §5.5)."""
    opened = openings(project.evalsets / "seal.log.jsonl")
    named = sorted({f"{o.evalset}/{o.split}" for o in opened})
    return [f"After-opening: {', '.join(named)}"] if named else []


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()
