"""`harness export inspect|junit|sft|prefs|rl-tasks`: a run for other tools, and training data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import (
    evalset_names,
    judge_names,
    policy_names,
    run_ids,
)
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within
from harness_cli.commands._otel import otel
from harness_cli.records.counting import counted

if TYPE_CHECKING:
    from harness_cli.store.runs import RunFolder

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="A run for other tools, and training data."
)
Run = Annotated[
    str | None,
    typer.Option(
        "--run", metavar="ID", help="Default: the newest complete run.", autocompletion=run_ids
    ),
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")]
Data = Annotated[
    Path, typer.Option("-o", "--output", metavar="DIR", help="Folder of the data set.")
]


@app.command()
def inspect(
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where to write it; FOLDER/ too.")
    ],
    run: Run = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A log of inspect_ai as JSON; -o FOLDER names it as `inspect view --log-dir` lists it."""
    from harness_cli.commands._show import note
    from harness_cli.evaluation.exports.inspect_log import export_inspect, finished, is_listed
    from harness_cli.store.project import Project

    project = Project.find(directory)
    chosen = finished(_chosen(directory, run))
    path = directory / output
    path, count = export_inspect(project, chosen, path, folder=output.endswith("/"))
    if not (quiet or is_listed(path.name)):
        note(f"note: the view of a folder lists no file of this name; `-o {path.parent}` names it")
    _said("inspect", chosen, path, count, as_json=as_json, quiet=quiet)


@app.command()
def junit(
    output: Output,
    run: Run = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """JUnit XML, one test case a rollout; an unscored one is skipped with its reason."""
    from harness_cli.errors import UsageError
    from harness_cli.evaluation.exports.inspect_log import finished
    from harness_cli.evaluation.junit import junit as lines_of
    from harness_cli.records.canonical import atomic_file

    chosen = finished(_chosen(directory, run))
    path = within(directory, output) or output
    if not path.parent.is_dir():
        raise UsageError(f"no folder `{path.parent}` to write `{path.name}` into")
    report = chosen.report()
    with atomic_file(path) as file:
        for text in lines_of(report, chosen.results()):
            file.write(text.encode())
    count = report.planned - report.counts.get("missing", 0)
    _said("junit", chosen, path, count, as_json=as_json, quiet=quiet)


@app.command()
def sft(
    output: Data,
    job: Annotated[
        Path | None, typer.Argument(metavar="JOB.yaml", help="Everything that options leave open.")
    ] = None,
    evalset: Annotated[
        str | None,
        typer.Option(help="Items; train or dev alone.", autocompletion=evalset_names),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="Policy; default: roles.teacher.", autocompletion=policy_names),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="Default: roles.rejection_judge.", autocompletion=judge_names),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First N items.")] = None,
    states: Annotated[
        int | None, typer.Option(min=0, help="Augmented states beside the original.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Model folder, Jinja file or trl:NAME: tokens, too."),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(metavar="PATH", help="Default: the template's folder.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="US dollars.")] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """HSA-SFT data: a teacher under original and augmented states, filtered, as lessons.

    The folder holds the teacher's work: the same command goes on where it stopped.
    """
    from harness_cli.commands._exporting import export_sft

    given = {
        "evalset": evalset,
        "teacher": teacher,
        "judge": judge,
        "limit": limit,
        "states": states,
        "template": template,
        "tokenizer": tokenizer,
    }
    export_sft(
        directory, job, given, directory / output, max_cost=max_cost, as_json=as_json, quiet=quiet
    )


@app.command()
def prefs(
    before: Annotated[
        str, typer.Argument(metavar="RUN", help="Where items fail.", autocompletion=run_ids)
    ],
    after: Annotated[
        str, typer.Argument(metavar="RUN", help="Where they pass.", autocompletion=run_ids)
    ],
    output: Data,
    both: Annotated[bool, typer.Option("--both", help="Pairs from pass → fail as well.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Preference pairs from fail → pass flips between two runs of the same items."""
    from harness_cli.commands._exporting import shown
    from harness_cli.store.project import Project
    from harness_cli.training.preferences import write_prefs

    folder = directory / output
    runs = _chosen(directory, before), _chosen(directory, after)
    card = write_prefs(Project.find(directory), *runs, folder, both=both)
    shown(card, folder, as_json=as_json, quiet=quiet)


@app.command(name="rl-tasks")
def rl_tasks(
    output: Data,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN…", help="Default: the newest complete run.", autocompletion=run_ids
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Interaction tasks with their difficulty for a policy, from runs with repeats."""
    from harness_cli.commands._exporting import shown
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore
    from harness_cli.training.recorded_runs import shows_a_harness
    from harness_cli.training.rl_tasks import write_rl_tasks

    folder = directory / output
    project = Project.find(directory)
    store = RunStore(project.runs)
    chosen = [store.get(run) for run in runs] if runs else [store.newest(fits=shows_a_harness)]
    card = write_rl_tasks(project, chosen, folder)
    shown(card, folder, as_json=as_json, quiet=quiet)


app.command()(otel)


def _chosen(directory: Path, run: str | None) -> "RunFolder":
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    store = RunStore(Project.find(directory).runs)
    return store.get(run) if run else store.newest()


def _said(
    what: str, run: "RunFolder", path: Path, count: int, *, as_json: bool, quiet: bool
) -> None:
    from harness_cli.commands._show import emit_json, line

    if as_json:
        emit_json({"format": what, "run": run.id, "file": str(path), "rollouts": count})
    elif not quiet:
        line(f"{path}: {counted(count, 'rollout')} of run {run.id}")
