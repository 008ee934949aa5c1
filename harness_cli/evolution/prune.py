"""`harness edit prune`: a proposal that takes out hunks which never earned their place.

A hunk goes when it hurt, or when leaving it out cost nothing on the items it could move. What only
outcomes could not tell stays: no evidence is not evidence against.
"""

from collections.abc import Iterable, Mapping

from harness_cli.errors import BadFile
from harness_cli.evolution.apply import base_id, changed_entries
from harness_cli.evolution.by_hand import changed_ops
from harness_cli.evolution.credit import Credit
from harness_cli.evolution.crediting import FOLDER, CreditReport
from harness_cli.evolution.ops import apply_ops
from harness_cli.evolution.proposal_file import hunks, new_proposal
from harness_cli.evolution.single_use import applied_proposals
from harness_cli.harness.load import files_at
from harness_cli.harness.revisions import LATEST
from harness_cli.records.diagnosis import Decision, Edit, Proposal
from harness_cli.records.reader import read_json
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import Entry


def credit_reports(project: Project) -> list[CreditReport]:
    """Every credit report of the project."""
    found = sorted((project.root / FOLDER).glob("*.json"))
    return [read_json(path, CreditReport, name=f"{FOLDER}/{path.name}") for path in found]


def idle(found: Credit) -> bool:
    """The hunk hurt, or a run without it lost nothing."""
    if found.mark == "hurt":
        return True
    return found.left_out is not None and found.left_out["earned"] == 0


def prune(project: Project) -> tuple[Proposal, list[str]]:
    """A proposal on the newest harness that removes idle hunks, and what was left alone and why.

    It holds no edits when there is nothing to remove.
    """
    repo = Repo.open(project.harness)
    now, commit = files_at(repo, project.harness, LATEST)
    applied = {proposal.id: (use, proposal) for use, proposal in applied_proposals(project)}
    edits: list[Edit] = []
    notes: list[str] = []
    for report in credit_reports(project):
        out = [c for c in report.credits if idle(c)]
        if not out or report.proposal not in applied:
            continue
        kept = repo.files(report.commit, project.harness)
        before = repo.files(f"{report.commit}^", project.harness)
        try:
            without = _without(before, applied[report.proposal][1], {c.hunk for c in out})
        except BadFile as exc:
            notes.append(f"{report.proposal}: {str(exc).splitlines()[0]}")
            continue
        for path in sorted(
            {p for p in kept.keys() | without.keys() if kept.get(p) != without.get(p)}
        ):
            if now.get(path) != kept.get(path):
                notes.append(f"{path} changed since `{report.proposal}`: take it out by hand")
                continue
            edits.append(
                _edit(len(edits) + 1, path, now, without, [c for c in out if c.path == path])
            )
    base = base_id(project, repo, commit) if commit else None
    note = (
        ""
        if edits
        else "no hunk with evidence against it; `harness edit credit --budget` finds some"
    )
    made = new_proposal(
        tuple(edits),
        base=base or "",
        base_commit=commit,
        diagnosis="credit",
        proposer="prune",
        note=note,
    )
    return made, notes


def _without(
    before: Mapping[str, Entry], proposal: Proposal, out: Iterable[str]
) -> dict[str, Entry]:
    left = frozenset(out)
    ops = [
        op
        for name, _, op in hunks(proposal)
        if name not in left and op.decision.state in ("accept", "modify")
    ]
    return changed_entries(before, apply_ops({p: e.data for p, e in before.items()}, ops))


def _edit(
    number: int,
    path: str,
    now: Mapping[str, Entry],
    without: Mapping[str, Entry],
    why: list[Credit],
) -> Edit:
    one = {path: now[path]} if path in now else {}
    other = {path: without[path]} if path in without else {}
    named = "; ".join(f"{c.hunk} {c.why}" for c in why)
    return Edit(
        id=f"prune-{number}",
        module=path,
        ops=tuple(changed_ops(one, other, Decision())),
        rationale=f"Takes out what earned nothing: {named}",
        predicted_fixes=tuple(sorted({i for c in why for i in c.broken})),
        risks="An item outside the measured ones may have lived on it.",
    )
