"""`harness train`: training jobs, in the foreground or behind; their state and their curves."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._completing import training_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Train a policy: jobs, their state and curve."
)
Job = Annotated[Path, typer.Argument(metavar="JOB.yaml", help="What to train; docs/training.md.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the newest state.")]
Again = Annotated[bool, typer.Option("--again", help="Forget states and begin anew.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything, train nothing.")]
Behind = Annotated[bool, typer.Option("--background", help="Return at once; see `train status`.")]
Gpus = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Through `accelerate launch` on N processes."),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="here|verl|roll", help="Or a job folder for a cluster: docs/scale_out.md."
    ),
]
Machines = Annotated[
    Path | None,
    typer.Option(
        "--cluster", metavar="CLUSTER.yaml", help="With --engine: nodes and how to reach them."
    ),
]
Named = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="Default: the newest.", autocompletion=training_names),
]


@app.command()
def sft(
    job: Job,
    resume: Resume = False,
    again: Again = False,
    dry_run: DryRun = False,
    background: Behind = False,
    gpus: Gpus = None,
    engine: Engine = "here",
    cluster: Machines = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Supervised training on rows of `harness export sft`."""
    from harness_cli.commands._training import Wish, train

    wish = Wish("sft", job, resume, again, dry_run, background, gpus, engine, cluster)
    train(directory, wish, as_json=as_json, quiet=quiet)


@app.command()
def opd(
    job: Job,
    resume: Resume = False,
    again: Again = False,
    dry_run: DryRun = False,
    background: Behind = False,
    gpus: Gpus = None,
    engine: Engine = "here",
    cluster: Machines = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """On-policy distillation: the student's own answers, KL to a teacher."""
    from harness_cli.commands._training import Wish, train

    wish = Wish("opd", job, resume, again, dry_run, background, gpus, engine, cluster)
    train(directory, wish, as_json=as_json, quiet=quiet)


@app.command()
def mtp(
    job: Job,
    resume: Resume = False,
    again: Again = False,
    dry_run: DryRun = False,
    background: Behind = False,
    engine: Engine = "here",
    cluster: Machines = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The draft head alone, on rollouts of a frozen policy; its arms compared."""
    from harness_cli.commands._train_mtp import train_mtp
    from harness_cli.commands._training import Wish

    wish = Wish("mtp", job, resume, again, dry_run, background, None, engine, cluster)
    train_mtp(directory, wish, as_json=as_json, quiet=quiet)


@app.command()
def rl(
    job: Job,
    resume: Resume = False,
    again: Again = False,
    dry_run: DryRun = False,
    background: Behind = False,
    gpus: Gpus = None,
    engine: Engine = "here",
    cluster: Machines = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """HSA-RL: rollouts in live rooms or on items, under harness states that change."""
    from harness_cli.commands._training import Wish, train

    wish = Wish("rl", job, resume, again, dry_run, background, gpus, engine, cluster)
    train(directory, wish, as_json=as_json, quiet=quiet)


@app.command()
def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="docs/studies.md.")],
    seed: Annotated[int | None, typer.Option(metavar="N", help="This seed alone.")] = None,
    arm: Annotated[list[str] | None, typer.Option(metavar="ARM", help="Only these arms.")] = None,
    processes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Families of arms side by side.")
    ] = 2,
    tables: Annotated[
        bool, typer.Option("--tables", help="Show what there is, run nothing.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="DIR", help="Write tables and scores there.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Arms of training with shared ancestors, over several seeds, and their tables."""
    from harness_cli.commands._train_study import train_study

    train_study(
        directory / file,
        seed=seed,
        arms=arm or (),
        processes=processes,
        tables_only=tables,
        output=output and directory / output,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def figures(
    job: Named = None,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE", help="Default: in the job's folder.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rewards and lengths of reasoning of an RL job against its steps, as one page."""
    from harness_cli.commands._train_rl import draw_figures

    where = output and directory / output
    draw_figures(directory, job, where, as_json=as_json, quiet=quiet)


@app.command()
def status(directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False) -> None:
    """Every job: how far it is, its loss, what it made."""
    from harness_cli.commands._training import show_status

    show_status(directory, as_json=as_json, quiet=quiet)


@app.command()
def logs(
    job: Named = None,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many.")] = 20,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The last steps of a job's curve, and what it wrote."""
    from harness_cli.commands._training import show_logs

    show_logs(directory, job, lines, as_json=as_json, quiet=quiet)


@app.command()
def stop(
    job: Named = None, directory: Folder = HERE, as_json: Json = False, quiet: Quiet = False
) -> None:
    """End a job after its step; its state is kept for `--resume`."""
    from harness_cli.commands._training import stop_job

    stop_job(directory, job, as_json=as_json, quiet=quiet)
