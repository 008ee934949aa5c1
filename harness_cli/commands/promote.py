"""`harness promote [RUN]`: gates, approvals, manifest, channel switch."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness_cli.commands._completing import channel_names, run_ids
from harness_cli.commands._groups import DEFAULT, DefaultGroup
from harness_cli.commands._options import HERE, Folder, Json, Quiet, Waits, target

app = typer.Typer(
    cls=DefaultGroup, rich_markup_mode=None, help="Gates, approvals, manifest, channel switch."
)
Candidate = Annotated[
    str | None,
    typer.Argument(
        help="A run of the candidate; default: the newest complete one.", autocompletion=run_ids
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(
        "--sign",
        metavar="KEY",
        envvar="HARNESS_SIGNING_KEY",
        help="SSH key that signs; a public one is looked up in ssh-agent.",
    ),
]
Cost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Of each run it makes; the next call goes on."),
]
Tokens = Annotated[int | None, typer.Option(min=1, help="Of each run, in and out.")]
Seconds = Annotated[float | None, typer.Option(min=0, help="Of each run.")]


@app.command(name=DEFAULT)
def promote(
    run: Candidate = None,
    approve: Annotated[
        str | None, typer.Option(metavar="NAME", help="Record that this person approves the pair.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="What is missing and what it costs; nothing is run.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run the gates alone, change nothing.")
    ] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="Decide on the runs there are.")] = False,
    sign: Key = None,
    if_locked: Waits = "wait",
    junit: Annotated[
        Path | None, typer.Option(help="JUnit XML to FILE, one test case a gate.")
    ] = None,
    max_cost: Cost = None,
    max_tokens: Tokens = None,
    max_seconds: Seconds = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Gates, approvals, manifest, channel switch.

    Exit 10 FAIL, 11 INCONCLUSIVE, 3 waits for an approval, 12 locked or drifted, 13 budget.
    """
    import asyncio

    from harness_cli.commands._progress import progress
    from harness_cli.commands._show import skipped, step_summary
    from harness_cli.errors import Locked
    from harness_cli.evaluation.gate import Budget
    from harness_cli.release.candidate import named_run
    from harness_cli.release.commit import Lock
    from harness_cli.release.first_plan import first_plan, nothing_run
    from harness_cli.release.session import Wish, run_promotion
    from harness_cli.store.project import Project

    project, junit = Project.find(directory), target(directory, junit)
    if plan and not (run or approve) and nothing_run(project):
        show(asyncio.run(first_plan(project)), as_json=as_json, quiet=quiet)
        return
    wish = Wish(
        run=named_run(project, run),
        approve=approve,
        plan=plan,
        write=not dry_run,
        measure=not (no_run or plan),
        key=sign and directory / sign.expanduser(),
        lock=Lock(if_locked=if_locked),
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=max_seconds),
    )
    try:
        with progress(quiet=quiet or as_json) as observe:
            done = asyncio.run(run_promotion(project, wish, observe))
    except Locked as exc:
        skipped(exc, if_locked, as_json=as_json)
        return
    step_summary(markdown(done))
    if junit is not None:
        write_junit(junit, done)
    show(done, as_json=as_json, quiet=quiet)
    if done.exit_code and not plan:
        raise typer.Exit(done.exit_code)


@app.command()
def approve(
    run: Candidate = None,
    sign: Key = None,
    comment: Annotated[str, typer.Option(help="Kept with the approval, and signed.")] = "",
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Approve a candidate by signature: its policy in its harness, and nothing else."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.errors import UsageError
    from harness_cli.release.approving import approve as approve_pair
    from harness_cli.release.candidate import named_run, pair_of_run
    from harness_cli.store.project import Project

    project = Project.find(directory)
    if sign is None:
        raise UsageError(
            "an approval by signature needs a key",
            hint="--sign KEY, or HARNESS_SIGNING_KEY; `harness promote --approve NAME` takes none",
        )
    pair = pair_of_run(named_run(project, run).config())
    made = approve_pair(project, pair, directory / sign.expanduser(), comment=comment)
    if as_json:
        emit_json(made)
        return
    line(f"{made.by} approves {pair.policy_id} in harness {pair.harness_id[:12]}")
    if not quiet:
        note("\nnext: harness promote")


@app.command(name="bisect-axes")
def bisect_axes(
    channel: Annotated[
        str | None,
        typer.Argument(help="Default: the project's channel.", autocompletion=channel_names),
    ] = None,
    gate: Annotated[
        str | None, typer.Option(help="Whose evalset and metric; default: the first business gate.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="What would be run and what it costs; nothing is.")
    ] = False,
    max_cost: Cost = None,
    max_tokens: Tokens = None,
    max_seconds: Seconds = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which switch carries a regression: the two mixed pairs are evaluated and compared."""
    import asyncio

    from harness_cli.commands._progress import progress
    from harness_cli.evaluation.gate import Budget
    from harness_cli.release.bisect import bisect_axes as bisect
    from harness_cli.release.bisect import question
    from harness_cli.store.project import Project

    project = Project.find(directory)
    asked = question(project, channel or project.config.channel, gate)
    budget = Budget(cost=max_cost, tokens=max_tokens, seconds=max_seconds)
    with progress(quiet=quiet or as_json) as observe:
        done = asyncio.run(bisect(asked, budget=budget, plan=plan, observe=observe))
    show_bisection(done, as_json=as_json, quiet=quiet)


def show_bisection(done: Any, *, as_json: bool, quiet: bool) -> None:
    """The effects of each change, then the verdict."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.release.costing import cost_text

    if as_json:
        emit_json(done)
        return
    rows = [[e.what, e.n, e.delta, e.low, e.high, e.run] for e in done.effects]
    if rows and not quiet:
        table(
            ["changed", "items", "difference", "low", "high", "run"],
            rows,
            title=f"{done.metric} on {done.evalset}: {done.old[1]} → {done.new[1]}",
        )
    for command, cost in done.missing:
        line(f"missing: {command}  ({cost_text(cost)})")
    line(f"verdict: {done.verdict}")
    if "carries it" in done.verdict and not quiet:
        axis = "--harness" if "harness" in done.verdict else "--policy"
        note(f"\nback: harness rollback {done.channel} {axis}")


def write_junit(path: Path, done: Any) -> None:
    """The gates for a CI server, whole or not at all."""
    from harness_cli.records.canonical import write_atomic
    from harness_cli.release.junit import gates_junit

    known = {
        "decision": done.outcome,
        "policy": done.policy,
        "harness": done.harness,
        "channel": done.channel,
        "manifest": done.manifest or "",
    }
    write_atomic(path, gates_junit(done.gates, known).encode())


def markdown(done: Any) -> str:
    """The gates as a table, for the page that a CI shows of a job."""
    rows = [(g.name, g.outcome, g.summary, g.needs) for g in done.gates]
    lines = [
        f"## harness promote: {done.outcome}",
        "",
        f"`{done.policy}` in harness `{done.harness[:12]}` for channel `{done.channel}`"
        + (f", promoted as `{done.manifest}`" if done.manifest else ""),
        "",
        "| gate | outcome | summary | needs |",
        "| --- | --- | --- | --- |",
        *("| " + " | ".join(_cell(text) for text in row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def show(done: Any, *, as_json: bool, quiet: bool) -> None:
    """The gates' table, then what follows from it."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.evaluation.noise_text import forecast_line
    from harness_cli.release.reaching import reach_line

    if as_json:
        emit_json(done)
        return
    table(
        ["gate", "kind", "outcome", "summary", "needs"],
        [[g.name, g.kind, g.outcome, g.summary, g.needs] for g in done.gates],
    )
    for need in done.missing:
        line(f"missing: {need.command}  ({need.cost})")
    for gate in done.reach:
        line(reach_line(gate))
    for gate in done.outlook:
        line(forecast_line(gate))
    line(f"candidate: {done.policy} in harness {done.harness[:12]}")
    line(f"decision: {done.outcome}")
    if done.manifest:
        line(f"promoted: {done.manifest} serves on channel {done.channel}")
        if not quiet:
            note(f"\nverify: harness manifest verify {done.manifest}")
            note(f"undo:   harness rollback {done.channel}")
    elif done.hint and not quiet:
        note(f"\nhint: {done.hint}")
