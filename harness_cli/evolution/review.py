"""Decisions about hunks: who, when, why; by a person at a terminal, in the file, or by a script.

A script's decision is recorded as one: it lets a proposal be applied in a sandbox or a demo, and it
is no approval (release asks people for those).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness_cli.errors import NeedsPerson, UnknownName
from harness_cli.evaluation.noise import read_gates
from harness_cli.evolution.ops import Files, after, apply_ops
from harness_cli.evolution.proposal_file import (
    hunk_id,
    hunks,
    now,
    read_proposal,
    write_proposal,
)
from harness_cli.evolution.text_file import TextFile
from harness_cli.evolution.unified import split_diff
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Decision, Edit, Op, Proposal
from harness_cli.store.locks import locked
from harness_cli.store.project import Project

PUBLIC = (
    "the gates are those of a public channel: whoever decides here, two other people must approve "
    "the measured pair, each by signature (`harness promote approve --sign KEY`)"
)


def second_eyes(project: Project) -> str:
    """What a reviewer should know of the reviewers after them; empty for a private channel.

    The release counts approvals, and never those of people who had a part in the edit: who decides
    a hunk stands in `Reviewed-by:` and has.
    """
    return PUBLIC if any(gate.public is True for gate in read_gates(project.gates)) else ""


@contextmanager
def deciding(project: Project, path: Path) -> Iterator[Proposal]:
    """The proposal as its file holds it now; until the end nobody else writes a decision to it."""
    lock = project.root / ".harness" / "locks" / "review"
    with locked(lock, what=f"the review of `{path.name}`", if_locked="wait", timeout_s=30):
        yield read_proposal(path)


def keep(project: Project, path: Path, seen: Proposal, decided: Proposal) -> Proposal:
    """Write what was decided of the proposal as it was `seen`, and give what the file holds then.

    Where another reviewer changed the file in between nothing is written: theirs is given.
    """
    with deciding(project, path) as there:
        if there != seen:
            return there
        write_proposal(path, decided)
    return decided


def decide(proposal: Proposal, name: str, decision: Decision) -> Proposal:
    """The proposal with one hunk decided."""
    return _map_ops(
        proposal,
        lambda hunk, op: msgspec.structs.replace(op, decision=decision) if hunk == name else op,
    )


def accept_by_script(proposal: Proposal, wanted: str, *, by: str, reason: str = "") -> Proposal:
    """Accept `all` undecided hunks, or those named (edit ids or hunk ids, by commas).

    Suggested placements stay pending under `all`: someone must name them. Raises `UnknownName`.
    """
    names = set(_resolve(proposal, wanted))

    def accept(hunk: str, op: Op) -> Op:
        if hunk not in names or (op.decision.state != "pending" and wanted == "all"):
            return op
        state = "modify" if op.decision.state == "modify" else "accept"
        made = Decision(state=state, by=by, at=now(), reason=reason, script=True)  # type: ignore[arg-type]
        return msgspec.structs.replace(op, decision=made)

    return _map_ops(proposal, accept)


def _resolve(proposal: Proposal, wanted: str) -> list[str]:
    if wanted == "all":
        return [name for name, _, op in hunks(proposal) if op.placed is None]
    known = {name: [name] for name, _, _ in hunks(proposal)}
    for edit in proposal.edits:
        known[edit.id] = [hunk_id(edit, i) for i in range(len(edit.ops))]
    chosen: list[str] = []
    for part in (p.strip() for p in wanted.split(",")):
        if part not in known:
            raise UnknownName.of("edit in this proposal", part, known)
        chosen += known[part]
    return chosen


def pending(proposal: Proposal) -> list[str]:
    """The hunks nobody has decided."""
    return [name for name, _, op in hunks(proposal) if op.decision.state == "pending"]


def need_decisions(proposal: Proposal, command: str) -> None:
    """Raise `NeedsPerson` while hunks are undecided; `command` decides them."""
    open_ = pending(proposal)
    if open_:
        listed = ", ".join(open_[:8]) + (" …" if len(open_) > 8 else "")
        raise NeedsPerson(
            f"{counted(len(open_), 'hunk')} of proposal `{proposal.id}` "
            f"without a decision: {listed}",
            hint=f"`{command}` at a terminal, or a decision for each in the file",
        )


def deciders(proposal: Proposal) -> tuple[list[str], list[str]]:
    """The people and the scripts that accepted or modified hunks, by name."""
    people, scripts = set[str](), set[str]()
    for _, _, op in hunks(proposal):
        if op.decision.state in ("accept", "modify"):
            (scripts if op.decision.script else people).add(op.decision.by or "unnamed")
    return sorted(people), sorted(scripts)


def split_hunk(proposal: Proposal, name: str, files: Files, earlier: Sequence[Op]) -> Proposal:
    """The proposal with one hunk cut into its separate groups of changed lines.

    The parts are unified diffs, last group first, so that each applies whatever is decided about
    the others. A hunk of one group, or one that makes, moves or deletes a file, stays whole.
    """
    edits = []
    for edit in proposal.edits:
        ops: list[Op] = []
        for i, op in enumerate(edit.ops):
            parts = _parts(files, earlier, op) if hunk_id(edit, i) == name else [op]
            ops += parts
        edits.append(msgspec.structs.replace(edit, ops=tuple(ops)))
    return msgspec.structs.replace(proposal, edits=tuple(edits))


def _parts(files: Files, earlier: Sequence[Op], op: Op) -> list[Op]:
    before = after(files, apply_ops(files, earlier))
    changes = apply_ops(before, [op])
    data, old = changes.get(op.path), before.get(op.path)
    if data is None or old is None or len(changes) != 1:
        return [op]
    here, there = (TextFile.of(x, name=op.path).text for x in (old, data))
    diffs = split_diff(here, there)
    if len(diffs) < 2:
        return [op]
    return [Op(op="unified-diff", path=op.path, text=diff, placed=op.placed) for diff in diffs]


def replace_op(proposal: Proposal, name: str, op: Op) -> Proposal:
    """The proposal with one hunk replaced by what a reviewer made of it."""
    return _map_ops(proposal, lambda hunk, old: op if hunk == name else old)


def _map_ops(proposal: Proposal, change: Callable[[str, Op], Op]) -> Proposal:
    edits: Iterable[Edit] = (
        msgspec.structs.replace(
            edit, ops=tuple(change(hunk_id(edit, i), op) for i, op in enumerate(edit.ops))
        )
        for edit in proposal.edits
    )
    return msgspec.structs.replace(proposal, edits=tuple(edits))
