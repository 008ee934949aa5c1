"""`harness eval`: run evalsets, show one table each."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._completing import (
    evalset_names,
    judges_or_none,
    policy_names,
    profile_names,
    run_ids,
    split_names,
    words,
)
from harness_cli.commands._options import HERE, Folder, Json, Quiet, target, within

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command(name="eval")
def run(
    evalsets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EVALSET…", help="Folders under evalsets/.", autocompletion=evalset_names
        ),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help="Policy of harness.yaml.", autocompletion=policy_names)
    ] = None,
    harness: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="Git revision, evolve/latest, or a folder; default: the working files.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Judge of harness.yaml, or `none`.", autocompletion=judges_or_none),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Default: dev.", autocompletion=split_names)
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First N items.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="Rollouts an item.")] = None,
    need: Annotated[
        int | None, typer.Option(min=1, help="Passes an item needs; default: more than half.")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Rollouts side by side.")] = None,
    seed: Annotated[int | None, typer.Option(help="Sampling seed of the policy.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="harness, react or bare.", autocompletion=words("harness", "react", "bare")
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="Time bounds: offline, production …", autocompletion=profile_names),
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Go on with a run.", autocompletion=run_ids)
    ] = None,
    rescore: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Score a run's rollouts again: no policy is asked. Its verdicts stand, but where "
            "--judge names another judge, which then judges them anew.",
            autocompletion=run_ids,
        ),
    ] = None,
    record: Annotated[Path | None, typer.Option(help="Keep every answer in FILE.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Take every answer from FILE.")] = None,
    responses: Annotated[Path | None, typer.Option(help="Score the given answers in FILE.")] = None,
    fresh_verdicts: Annotated[
        bool, typer.Option("--fresh-verdicts", help="Ask a panel anew, whatever its cache holds.")
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Why a sealed split is opened.")] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="US dollars.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens, in and out.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Wall clock.")] = None,
    if_locked: Annotated[
        str, typer.Option(help="skip, wait or fail.", autocompletion=words("skip", "wait", "fail"))
    ] = "fail",
    aa: Annotated[
        bool, typer.Option("--aa", help="Twice with other seeds: the noise a gate must beat.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML to FILE.")] = None,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Run evalsets against a policy in a harness; ^C stops it, --resume goes on.

    Exit 0 whatever the scores (gates judge), 13 budget reached, 130 interrupted, 12 locked.
    """
    from harness_cli.commands._evaluating import evaluate_all, one_of
    from harness_cli.evaluation.gate import Budget
    from harness_cli.evaluation.plan import EvalOptions
    from harness_cli.harness.load import placed
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(directory)
    options = EvalOptions(
        split=split,
        policy=policy,
        harness=placed(directory, harness),
        judge=judge,
        agent=one_of("--agent", agent, ("harness", "react", "bare")),
        profile=profile,
        limit=limit,
        repeat=repeat,
        need=need,
        seed=seed,
        concurrency=concurrency,
        budget=Budget(cost=max_cost, tokens=max_tokens, seconds=max_seconds),
        resume=RunStore(project.runs).get(resume) if resume else None,
        rescore=RunStore(project.runs).get(rescore) if rescore else None,
        record=within(directory, record),
        replay=within(directory, replay),
        fresh_verdicts=fresh_verdicts,
        responses=within(directory, responses),
        reason=reason,
        if_locked=one_of("--if-locked", if_locked, ("skip", "wait", "fail")) or "fail",
    )
    evaluate_all(
        project,
        evalsets or [],
        options,
        aa=aa,
        junit_file=target(directory, junit),
        as_json=as_json,
        quiet=quiet,
    )
