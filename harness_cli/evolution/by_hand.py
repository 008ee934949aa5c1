"""Edits made in an editor: a throw-away worktree is opened, what changed becomes a proposal."""

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from harness_cli.errors import UsageError
from harness_cli.evolution.proposal_file import new_proposal, now
from harness_cli.evolution.text_file import TextFile
from harness_cli.evolution.unified import make_diff
from harness_cli.harness.parts import content, judges
from harness_cli.records.diagnosis import Decision, Edit, Op, Proposal
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.tree import Entry


def edit_by_hand(
    project: Project, open_editor: Callable[[Path], None], *, by: str, judge: str | None = None
) -> Proposal | None:
    """A proposal of what a person changed in a copy of the harness; None when nothing was.

    The copy is a worktree of HEAD; the project's own working tree is not touched. Each changed file
    is one edit, accepted by the person who made it.
    """
    repo = Repo.open(project.harness)
    head = repo.head()
    if head is None:
        raise UsageError("nothing is committed yet", hint="commit the harness first")
    folder = repo.relative(project.harness)
    with repo.worktree(head) as tree:
        open_editor(tree / folder)
        edited = Repo.open(tree / folder).working_files(tree / folder)
    before = repo.files(head, project.harness)
    ops = changed_ops(before, edited, Decision(state="accept", by=by, at=now()))
    part = judges(before).get(judge, {}) if judge else content(before)
    if not ops:
        return None
    edits = tuple(
        Edit(id=f"by-hand-{n}", module=op.path, ops=(op,), rationale=f"edited by {by}")
        for n, op in enumerate(ops, 1)
    )
    return new_proposal(
        edits, base=repo.tree_id(part), base_commit=head, diagnosis="by hand", proposer=by
    )


def changed_ops(
    before: Mapping[str, Entry], edited: Mapping[str, Entry], decision: Decision
) -> list[Op]:
    """One operation per file that differs. A link is named as it is, for the applier to refuse."""
    ops = []
    for path in sorted(before.keys() | edited.keys()):
        old, new = before.get(path), edited.get(path)
        if old == new:
            continue
        if new is None:
            ops.append(Op(op="delete", path=path, decision=decision))
        elif new.mode not in ("100644", "100755"):
            raise UsageError(f"`{path}` became a link or a repository", hint="use a plain file")
        elif old is None:
            text = TextFile.of(new.data, name=path).text
            ops.append(Op(op="write", path=path, text=text, decision=decision))
        else:
            here, there = (TextFile.of(e.data, name=path).text for e in (old, new))
            if here != there:
                diff = make_diff(here, there, path)
                ops.append(Op(op="unified-diff", path=path, text=diff, decision=decision))
    return ops


def run_editor(target: Path) -> int:
    """Open `$VISUAL` or `$EDITOR` (or vi) on a file or folder; its exit status."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(named) or ["vi"]
        return subprocess.run([*words, str(target)], check=False).returncode
    except (OSError, ValueError) as exc:  # a quotation that does not end
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise UsageError(f"the editor `{named}` does not start: {why}", hint="set $EDITOR") from exc
