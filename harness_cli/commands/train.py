"""`harness train sft|opd|status|logs|stop`: training jobs, in the foreground or behind."""

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
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Supervised training on rows of `harness export sft`."""
    from harness_cli.commands._training import Wish, train

    wish = Wish("sft", job, resume, again, dry_run, background, gpus)
    train(directory, wish, as_json=as_json, quiet=quiet)


@app.command()
def opd(
    job: Job,
    resume: Resume = False,
    again: Again = False,
    dry_run: DryRun = False,
    background: Behind = False,
    gpus: Gpus = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """On-policy distillation: the student's own answers, KL to a teacher."""
    from harness_cli.commands._training import Wish, train

    wish = Wish("opd", job, resume, again, dry_run, background, gpus)
    train(directory, wish, as_json=as_json, quiet=quiet)


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
