"""What `harness edit` does with its options: propose, show, review, apply."""

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from harness_cli.commands._show import colour, emit_json, interactive, line, note
from harness_cli.errors import HarnessError, NeedsPerson, UsageError
from harness_cli.evolution import apply as applier
from harness_cli.evolution.by_hand import edit_by_hand, run_editor
from harness_cli.evolution.failure import Failure
from harness_cli.evolution.proposal_file import chosen_ops, hunks, read_proposal, write_proposal
from harness_cli.evolution.propose.make import make_proposal
from harness_cli.evolution.propose.memory import remember
from harness_cli.evolution.review import accept_by_script, keep, pending, second_eyes
from harness_cli.evolution.session import (
    Examined,
    choose_run,
    diagnosis_of,
    examine,
    ground_of,
    proposal_path,
    read_diagnosis,
)
from harness_cli.evolution.show_hunk import as_text
from harness_cli.evolution.terminal_review import Terminal, review
from harness_cli.harness.revisions import LATEST
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Case, Proposal
from harness_cli.store.project import Project
from harness_cli.store.state import user_name


def propose(
    project: Project, run: str | None, policy: str | None, *, trials: int = 0, quiet: bool
) -> tuple[Proposal, Examined]:
    """A proposal for a run, from its diagnosis, which is made where there is none.

    Up to `trials` rollouts are spent on trying edits before they are proposed.
    """
    seen = examine(project, choose_run(project, run))
    for words in seen.notes:
        note(f"note: {words}")
    diagnosis = diagnosis_of(project, seen)
    ground = ground_of(seen, diagnosis)
    say = (lambda _: None) if quiet else note
    made = asyncio.run(make_proposal(project, seen, ground, policy=policy, trials=trials, say=say))
    for name, why in () if quiet else made.dropped:
        note(f"not proposed: {name}: {why}")
    if not made.proposal.edits and not quiet:
        advised = diagnosis.advice.get("action", "go on")
        note(f"run `{seen.run.id}`: {made.proposal.note}")
        note(f"the diagnosis advises to {advised}; evaluate more items, or edit with --by-hand")
    return made.proposal, seen


def show(project: Project, path: Path, *, as_json: bool, quiet: bool) -> None:
    """A proposal for reading; works when it is stale and says so."""
    proposal = read_proposal(path)
    # Of what holds no edits nothing is applied: it cannot be too old for that.
    judge = applier.judge_of(proposal)
    stale = applier.is_stale(project, proposal, judge=judge) if proposal.edits else None
    if as_json:
        emit_json({"proposal": proposal, "stale": stale, "pending": pending(proposal)})
        return
    if quiet:
        for name, _, op in hunks(proposal):
            line(f"{op.decision.state} {name} {op.path}")
        return
    for row in as_text(proposal, applier.base_files(project, proposal), colour=colour()):
        line(row)
    if eyes := second_eyes(project):
        line()
        line(f"Note: {eyes}.")
    if stale:
        line()
        line(f"STALE: {stale}")


def applying(proposal: Proposal, path: Path) -> str:
    """The command that applies a proposal; one for a judge has to name it."""
    judge = applier.judge_of(proposal)
    return f"harness edit apply {path}" + (f" --judge {judge}" if judge else "")


def review_at_terminal(
    project: Project,
    path: Path,
    proposal: Proposal,
    *,
    failures: Mapping[str, Failure] | None = None,
    by: str | None = None,
) -> Proposal:
    """Ask about every undecided hunk; each decision is in the file before the next question."""
    if not interactive():
        raise NeedsPerson(
            f"{counted(len(pending(proposal)), 'hunk')} of `{path}` without a decision; "
            "this is no terminal",
            hint=f"`harness edit review {path}` at a terminal, or decide in the file itself",
        )
    files = applier.base_files(project, proposal)
    if files is None:
        raise UsageError(f"the base of `{proposal.id}` is not in this repository")
    cases = _cases(project, proposal)
    reviewer = by or user_name()
    if eyes := second_eyes(project):
        line(f"Note: {eyes}.")

    def kept(seen: Proposal, decided: Proposal) -> Proposal:
        there = keep(project, path, seen, decided)
        remember(project.root, there)
        return there

    terminal = Terminal(
        say=line, ask=_ask, edit=_edit, keep=kept, colour=colour(), reviewer=reviewer
    )
    try:
        return review(read_proposal(path), files, terminal, failures=failures, cases=cases)
    except KeyboardInterrupt:
        note(f"\nwhat was decided is in the file; go on: harness edit review {path}")
        raise


def _cases(project: Project, proposal: Proposal) -> dict[str, Case]:
    try:
        diagnosis = read_diagnosis(choose_run(project, proposal.diagnosis))
    except HarnessError:  # a proposal by hand, or its run was pruned
        return {}
    clusters = diagnosis.clusters if diagnosis else ()
    return {case.item_id: case for c in clusters for case in c.cases}


def _ask(question: str) -> str:
    sys.stdout.write(question)
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer


def _edit(text: str, name: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="harness-edit-") as folder:
        path = Path(folder, Path(name).name)
        path.write_text(text, encoding="utf-8")
        return path.read_text(encoding="utf-8") if run_editor(path) == 0 else None


def apply(
    project: Project,
    path: Path,
    *,
    accept: str | None,
    by: str | None,
    allow_code: bool,
    judge: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Apply a proposal file; undecided hunks are accepted by name of a script, or asked about."""
    proposal = read_proposal(path)
    if not proposal.edits:
        nothing_to_apply(proposal, as_json=as_json, quiet=quiet)
        return
    applier.refuse_stale(project, proposal, judge=judge)
    if accept is not None:
        proposal = accept_by_script(proposal, accept, by=by or "script")
        if accept != "all":  # what was not named was not wanted
            proposal = reject_rest(proposal, by=by or "script")
        write_proposal(path, proposal)
    elif pending(proposal):
        proposal = review_at_terminal(project, path, proposal, by=by)
    remember(project.root, proposal)
    finish(
        project, proposal, path, allow_code=allow_code, judge=judge, as_json=as_json, quiet=quiet
    )


def reject_rest(proposal: Proposal, *, by: str) -> Proposal:
    """Undecided hunks become rejected without a reason to remember."""
    from harness_cli.evolution.proposal_file import hunks, now
    from harness_cli.evolution.review import decide
    from harness_cli.records.diagnosis import Decision

    for name, _, op in hunks(proposal):
        if op.decision.state == "pending":
            made = Decision(state="reject", reason="not named", by=by, at=now(), script=True)
            proposal = decide(proposal, name, made)
    return proposal


def finish(
    project: Project,
    proposal: Proposal,
    path: Path | None,
    *,
    allow_code: bool,
    judge: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Commit what was accepted and say what came of it."""
    if not chosen_ops(proposal) and not pending(proposal):
        nothing_to_apply(proposal, as_json=as_json, quiet=quiet)
        return
    where = f"harness edit review {path}" if path else "harness edit"
    done = applier.apply(project, proposal, allow_code=allow_code, judge=judge, command=where)
    if as_json:
        emit_json({"applied": done})
        return
    line(f"{done.branch} {done.commit[:12]}: {', '.join(done.files)}")
    if not quiet:
        note(f"harness {done.harness_id[:12]}; nothing else was touched")
        for tried in done.rehearsed:
            note(str(tried))
        note(f"undo: {done.undo}")
        if eyes := second_eyes(project):
            note(eyes)
        if judge is None:
            note(f"next: harness eval --harness {done.branch}")
        else:
            note(f"next: git merge {done.branch}, then harness judge calibrate")


def nothing_to_apply(proposal: Proposal, *, as_json: bool, quiet: bool) -> None:
    """Say that no hunk is left to commit, and that nothing changed: a result, no error."""
    why = "every hunk was rejected" if proposal.edits else proposal.note or "it holds no edits"
    if as_json:
        emit_json({"applied": None, "proposal": proposal.id, "why": why})
    note(f"proposal `{proposal.id}`: nothing to apply, the harness stays as it is")
    if not quiet:
        note(f"why: {why}")
        note(f"next: harness eval --harness {LATEST}  (the newest harness there is)")


def by_hand(
    project: Project, *, by: str, allow_code: bool, judge: str | None, as_json: bool, quiet: bool
) -> None:
    """Open an editor on a copy of the harness and commit what changed."""
    if not interactive() and not _editor_named():
        raise NeedsPerson(
            "edits by hand need a terminal, or $EDITOR set to a program that needs none",
            hint="or write a proposal file and `harness edit apply FILE`",
        )
    proposal = edit_by_hand(project, lambda folder: _must_edit(folder), by=by, judge=judge)
    if proposal is None:
        if as_json:
            emit_json({"applied": None, "why": "nothing was changed"})
        note("nothing was changed")
        return
    finish(
        project, proposal, None, allow_code=allow_code, judge=judge, as_json=as_json, quiet=quiet
    )


def _must_edit(folder: Path) -> None:
    if run_editor(folder) != 0:
        raise UsageError("the editor ended with an error; nothing was changed")


def _editor_named() -> bool:
    import os

    return bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))


def new_file(project: Project, proposal: Proposal, output: Path | None) -> Path:
    """Where a proposal is written; an existing file is never overwritten by another proposal."""
    path = output or proposal_path(project, proposal.id)
    if path.exists():
        try:
            same = read_proposal(path).id == proposal.id
        except HarnessError:
            same = False
        if not same:
            raise UsageError(f"`{path}` is there already", hint="name another file with -o")
    write_proposal(path, proposal)
    return path
