"""`harness evolve`: the loop as one resumable command that stops at each human step."""

from typing import Annotated, Any, Literal

import typer

from harness_cli.commands._completing import evalset_names, policy_names, split_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def evolve(
    evalset: Annotated[
        str | None,
        typer.Option(
            help="What each stage is measured on; default: live_stream_qa.",
            autocompletion=evalset_names,
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Its split; default: dev.", autocompletion=split_names)
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="The policy that is held fixed.", autocompletion=policy_names)
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first items.")] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="ROLLOUTS", help="Try edits before each proposal, out of the allowance."
        ),
    ] = None,
    authorise: Annotated[
        int, typer.Option(min=0, metavar="ITEMS", help="Allow so many rollouts from now on.")
    ] = 0,
    choose: Annotated[
        Literal["another", "back", "promote", "stop"] | None,
        typer.Option(help="What follows a stage."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who allows or chooses, for the record.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record.")] = "",
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate, diagnose, propose, apply; stops with exit 3 wherever a person is needed."""
    import asyncio

    from harness_cli.commands._progress import progress
    from harness_cli.commands._show import note
    from harness_cli.errors import UsageError
    from harness_cli.loop.evolve import steps
    from harness_cli.store.locks import locked
    from harness_cli.store.project import Project

    if (authorise or choose) and not by:
        raise UsageError("who allows or chooses is not named", hint="add --by NAME")
    project = Project.find(directory)
    silent = quiet or as_json
    say = (lambda words: None) if silent else note  # noqa: ARG005  a silent listener
    with locked(project.root / ".harness" / "locks" / "evolve", what="harness evolve"):
        at = steps.standing(project)
        if at is None:
            asked = {"evalset": evalset, "split": split, "policy": policy}
            steps.begin(project, **asked, limit=limit, trials=trials or 0)
        else:
            steps.refuse_other(
                at, evalset=evalset, split=split, policy=policy, limit=limit, trials=trials
            )
        if authorise:
            steps.authorise(project, authorise, by=by or "")
        if choose:
            steps.choose(project, choose, by=by or "", reason=reason)
        with progress(quiet=silent) as observe:
            waiting = asyncio.run(steps.advance(project, say, observe))
        _show(project, waiting, as_json=as_json, quiet=quiet)
    if waiting.step != "ended":
        raise typer.Exit(3)


def _show(project: Any, waiting: Any, *, as_json: bool, quiet: bool) -> None:
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.loop.evolve.numbers import numbers_of
    from harness_cli.loop.evolve.steps import standing

    at = standing(project)
    numbers = numbers_of(project, at) if at and waiting.step == "choose" else None
    if as_json:
        hint = waiting.command
        emit_json({"waiting": waiting, "hint": hint, "standing": at, "numbers": numbers})
        return
    if numbers is not None and not quiet:
        _numbers(numbers)
    line(f"stage {waiting.stage}: {waiting.why}")
    if waiting.command:
        note(f"hint: {waiting.command}")


def _numbers(numbers: Any) -> None:
    """The differences with intervals, the credit of each hunk, the advice."""
    from harness_cli.commands._show import line, table

    if numbers.comparison is not None:
        made = numbers.comparison
        table(
            ["metric", "selected %", "now %", "Δ points", "95 % interval", "pairs"],
            [
                [m.metric, _share(m.mean_a), _share(m.mean_b), _points(m.paired.mean),
                 f"{_points(m.paired.low)} … {_points(m.paired.high)}", m.paired.n]
                for m in made.metrics
            ],
        )  # fmt: skip
        line(f"fixed: {len(made.fixed)}, broken: {len(made.broken)} of {made.items}")
    for one in numbers.credits:
        promised = f"{len(one.fixed)} of {len(one.predicted)} promised fixes came"
        line(f"{one.hunk}: {one.mark}: {promised}, {len(one.broken)} broken")
    if numbers.without_credit:
        line(f"credit: {numbers.without_credit}")
    line(f"advice: {numbers.advice.action} (the choice is yours)")
    for why in numbers.advice.reasons:
        line(f"  - {why}")


def _points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"
