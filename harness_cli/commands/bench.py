"""`harness bench`: latency of the complete agent, bound to what made it."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._completing import policy_names, run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Latency of the complete agent on a served policy: replay, mtp, report."""


@app.command(name="replay")
def replay(
    policy: Annotated[
        str | None,
        typer.Option("--policy", "-p", help="As in harness.yaml.", autocompletion=policy_names),
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="A running `harness serve` job in place of a policy.")
    ] = None,
    concurrency: Annotated[
        str, typer.Option("--concurrency", "-c", help="Requests at a time; 1,2,4,8 measures each.")
    ] = "1",
    runs: Annotated[int, typer.Option(min=1, help="Runs at each concurrency.")] = 1,
    evalset: Annotated[str, typer.Option(help="Its cases.")] = "deploy_replay",
    limit: Annotated[
        int | None, typer.Option(min=1, help="The first cases only, warm-ups included.")
    ] = None,
    warm_up: Annotated[int, typer.Option(min=0, help="First cases left out.")] = 10,
    region: Annotated[
        str | None, typer.Option(help="Where this client stands, for the record.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(help="Go on with a run.", autocompletion=run_ids)
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The complete agent on the replay cases: wall, TTFT, decode speed, attainment.

    Failed requests are samples, not errors: the exit code says only whether it was measured whole.
    """
    from harness_cli.commands._benching import Asked, replay_all
    from harness_cli.store.project import Project

    asked = Asked(
        policy=policy,
        job=job,
        concurrency=concurrency,
        runs=runs,
        evalset=evalset,
        limit=limit,
        warm_up=warm_up,
        region=region,
        resume=resume,
    )
    replay_all(Project.find(directory), asked, as_json=as_json, quiet=quiet)


@app.command(name="mtp")
def mtp(
    off: Annotated[
        str,
        typer.Argument(
            metavar="OFF",
            help="Job or policy without MTP; checkpoint:NAME stands for every arm.",
            autocompletion=policy_names,
        ),
    ],
    on: Annotated[str | None, typer.Option(help="The same with MTP, thresholds 1.0.")] = None,
    lossy: Annotated[str | None, typer.Option(help="The same with lossy thresholds.")] = None,
    concurrency: Annotated[
        str, typer.Option("--concurrency", "-c", help="Requests at a time, each measured.")
    ] = "1,2,4,8",
    runs: Annotated[int, typer.Option(min=1, help="Runs at each concurrency.")] = 1,
    limit: Annotated[
        int | None, typer.Option(min=1, help="The first cases only, warm-ups included.")
    ] = None,
    warm_up: Annotated[int, typer.Option(min=0, help="First cases left out.")] = 10,
    evalset: Annotated[str, typer.Option(help="Its cases.")] = "deploy_replay",
    quality: Annotated[
        str | None,
        typer.Option(
            metavar="EVALSET[@MARGIN]", help="Score all arms on it; a loss of 0.02 is none yet."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for tables and charts.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """MTP off against on by concurrency: speed-up, where P95 stops gaining, quality, tool calls."""
    from harness_cli.commands._bench_mtp import AskedMtp, bench_mtp
    from harness_cli.store.project import Project

    asked = AskedMtp(
        off=off,
        on=on,
        lossy=lossy,
        concurrency=concurrency,
        runs=runs,
        evalset=evalset,
        limit=limit,
        warm_up=warm_up,
        quality=quality,
        folder=None if output is None else directory / output,
    )
    bench_mtp(Project.find(directory), asked, as_json=as_json, quiet=quiet)


@app.command(name="report")
def report(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Runs, or groups of them.", autocompletion=run_ids),
    ],
    against: Annotated[
        list[str] | None,
        typer.Option(help="Runs to contrast with, paired by case.", autocompletion=run_ids),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", "-o", help="Write the tables to this file.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tables of measured runs; several of one thing as mean and range, never pooled."""
    from harness_cli.commands._benching import report_on
    from harness_cli.commands._options import within
    from harness_cli.store.project import Project

    project = Project.find(directory)
    target = within(directory, markdown)
    report_on(project, runs, against or [], target, as_json=as_json, quiet=quiet)
