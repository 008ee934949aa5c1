"""`harness edit`: propose from a diagnosis, review, apply as one commit."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness_cli.commands._completing import judge_names, policy_names, run_ids
from harness_cli.commands._groups import DefaultGroup
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(
    cls=DefaultGroup,
    rich_markup_mode=None,
    help="Propose from a diagnosis, review, apply as one commit on evolve/<n>.",
)
ProposalFile = Annotated[Path, typer.Argument(help="A proposal file.")]
Accept = Annotated[
    str | None,
    typer.Option(metavar="all|IDS", help="Accept without asking; recorded as by script."),
]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who decides, for the record.")]
Code = Annotated[bool, typer.Option("--allow-code", help="Admit changes of hooks that run code.")]
Judge = Annotated[
    str | None, typer.Option(metavar="NAME", help="Edit this judge's harness, nothing else.")
]


@app.command("default")
def edit(
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="ID", help="Default: the newest complete run.", autocompletion=run_ids
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="A model that proposes; default: the role `proposer`, or none.",
            autocompletion=policy_names,
        ),
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Write the proposal and stop.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")
    ] = None,
    trials: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="ROLLOUTS",
            help="Try edits on the diagnosed items first and propose what gains.",
        ),
    ] = 0,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Open $EDITOR on a copy of the harness instead.")
    ] = False,
    accept: Accept = None,
    by: By = None,
    allow_code: Code = False,
    judge: Judge = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Propose, review, apply."""
    from harness_cli.commands import _editing as editing
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.errors import UsageError
    from harness_cli.records.counting import counted
    from harness_cli.store.project import Project
    from harness_cli.store.state import user_name

    if trials and (judge is not None or by_hand):
        raise UsageError(
            "--trials goes neither with --judge nor with --by-hand",
            hint="trials roll a host's items out; others are measured afterwards",
        )
    project = Project.find(directory)
    folder = _folder(project, judge)
    if by_hand:
        editing.by_hand(
            project,
            by=by or user_name(),
            allow_code=allow_code,
            judge=folder,
            as_json=as_json,
            quiet=quiet,
        )
        return
    if judge is not None:
        from harness_cli.commands import _judge_editing as judges

        proposal, failures = judges.propose(project, judge, policy, quiet=quiet or as_json)
    else:
        proposal, seen = editing.propose(
            project, run, policy, trials=trials, quiet=quiet or as_json
        )
        failures = {f.item_id: f for f in seen.material.failures}
    if not (proposal.edits or plan_only or output):
        editing.nothing_to_apply(proposal, as_json=as_json, quiet=quiet)
        return
    path = editing.new_file(project, proposal, output and directory / output)
    if plan_only:
        if as_json:
            emit_json({"proposal": proposal, "file": str(path)})
            return
        line(str(path))
        if not quiet:
            note(f"{counted(len(proposal.edits), 'edit')}; read: harness edit show {path}")
        if proposal.edits and not quiet:
            note(f"decide and apply: {editing.applying(proposal, path)}")
        return
    if accept is None and proposal.edits:
        editing.review_at_terminal(project, path, proposal, failures=failures, by=by)
    editing.apply(
        project,
        path,
        accept=accept,
        by=by,
        allow_code=allow_code,
        judge=folder,
        as_json=as_json,
        quiet=quiet,
    )


def _folder(project: Any, judge: str | None) -> str | None:
    """The folder below `judges/` that a judge's edits may touch; None for the host's harness."""
    if judge is None:
        return None
    from harness_cli.evolution.judge_session import editable

    return editable(project, judge)


@app.command()
def show(
    file: ProposalFile, directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False
) -> None:
    """A proposal with its diffs, promises, risks and decisions; works when it is stale."""
    from harness_cli.commands import _editing as editing
    from harness_cli.store.project import Project

    editing.show(Project.find(directory), directory / file, as_json=as_json, quiet=quiet)


@app.command()
def review(
    file: ProposalFile,
    by: By = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Decide the undecided hunks of a proposal at the terminal; applies nothing."""
    from harness_cli.commands import _editing as editing
    from harness_cli.commands._show import emit_json, note
    from harness_cli.evolution.proposal_file import read_proposal
    from harness_cli.evolution.review import pending
    from harness_cli.records.counting import counted
    from harness_cli.store.project import Project

    path = directory / file
    proposal = read_proposal(path)
    if pending(proposal):
        proposal = editing.review_at_terminal(Project.find(directory), path, proposal, by=by)
    if as_json:
        emit_json({"proposal": proposal.id, "pending": pending(proposal)})
    elif not quiet:
        left = counted(len(pending(proposal)), "hunk")
        note(f"{left} undecided; apply: {editing.applying(proposal, file)}")


@app.command()
def apply(
    file: ProposalFile,
    accept: Accept = None,
    by: By = None,
    allow_code: Code = False,
    judge: Judge = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Commit the accepted hunks on evolve/<n>; undecided ones are asked about first."""
    from harness_cli.commands import _editing as editing
    from harness_cli.store.project import Project

    project = Project.find(directory)
    editing.apply(
        project,
        directory / file,
        accept=accept,
        by=by,
        allow_code=allow_code,
        judge=_folder(project, judge),
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def credit(
    proposal: Annotated[
        str | None, typer.Argument(help="An applied proposal; default: the newest measured one.")
    ] = None,
    budget: Annotated[
        int,
        typer.Option(min=0, metavar="ITEMS", help="Items to evaluate with one hunk left out."),
    ] = 0,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which hunks of an applied proposal helped, hurt, or cannot be told."""
    from harness_cli.commands._crediting import show_credit
    from harness_cli.store.project import Project

    show_credit(Project.find(directory), proposal, budget=budget, as_json=as_json, quiet=quiet)


@app.command()
def prune(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Propose to take out hunks that hurt or never earned anything (needs `edit credit`)."""
    from harness_cli.commands._crediting import propose_pruning
    from harness_cli.store.project import Project

    propose_pruning(
        Project.find(directory), output and directory / output, as_json=as_json, quiet=quiet
    )


@app.command()
def heldout(
    before: Annotated[str, typer.Option(metavar="REV", help="The harness before the edits.")],
    after: Annotated[str, typer.Option(metavar="REV", help="The harness after them.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why the sealed split is opened; logged for good.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy; repeat for several.", autocompletion=policy_names),
    ] = None,
    evalset: Annotated[str, typer.Option(help="The held-out evalset.")] = "harness_edit",
    split: Annotated[str, typer.Option(help="Its sealed split.")] = "test",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first items.")] = None,
    naturalness_judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A panel with `naturalness: panel`; default: the deterministic rules.",
            autocompletion=judge_names,
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Errors before and after the same edits on a sealed split, for one or several policies."""
    from harness_cli.commands._crediting import show_heldout
    from harness_cli.loop import heldout as protocol
    from harness_cli.store.project import Project

    project = Project.find(directory)
    asked = protocol.Asked(
        before=before,
        after=after,
        policies=protocol.policies_of(project, policy),
        reason=reason,
        evalset=evalset,
        split=split,
        limit=limit,
        judge=protocol.naturalness_judge(project, naturalness_judge),
    )
    show_heldout(project, asked, as_json=as_json, quiet=quiet)
