"""`harness diagnose [RUN]`: failure classes, sizes, cases, side at fault, what to do next."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness_cli.commands._completing import evalset_names, judge_names, policy_names, run_ids
from harness_cli.commands._groups import DefaultGroup
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(
    cls=DefaultGroup,
    rich_markup_mode=None,
    help="Failure classes of a run, sizes, cases, side at fault.",
)
RunName = Annotated[
    str | None,
    typer.Argument(
        help="A run, or a result file of τ-bench or τ²-bench; default: the newest complete run.",
        metavar="[RUN|FILE]",
        autocompletion=run_ids,
    ),
]
RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="ID", help="The same, by option.", autocompletion=run_ids),
]


@app.command("default")
def diagnose(
    run: RunName = None,
    run_id: RunOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="A model that names and sorts; default: the role `proposer`, or none.",
            autocompletion=policy_names,
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where this judge and labels disagree, instead of a run.",
            autocompletion=judge_names,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --judge; default: the calibration set."),
    ] = None,
    evalset: Annotated[
        str, typer.Option(help="Whose items the labels name.", autocompletion=evalset_names)
    ] = "live_stream_qa",
    vectors: Annotated[
        str,
        typer.Option(
            metavar="tfidf|static",
            help="What groups new failures: their words, or what these mean.",
        ),
    ] = "tfidf",
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the failures of a run and write `diagnosis.json` into its folder."""
    import asyncio

    from harness_cli.commands._diagnosis import show_diagnosis
    from harness_cli.commands._show import note
    from harness_cli.evolution.clusters import kind_of
    from harness_cli.evolution.session import choose_run, diagnose_run, examine
    from harness_cli.evolution.sharpening import sharpened, sorter
    from harness_cli.store.project import Project

    kind = kind_of(vectors)
    if judge is not None:
        from harness_cli.commands import _judge_editing as judges

        project, file = Project.find(directory), labels and directory / labels
        judges.diagnose(project, judge, file, evalset, as_json=as_json, quiet=quiet)
        return
    if run_id is None and run is not None and _names_file(directory / run):
        _diagnose_file(directory / run, kind, as_json=as_json, quiet=quiet)
        return
    project = Project.find(directory)
    chosen = choose_run(project, run_id or run)
    if chosen.config().imported is not None:
        _diagnose_imported(project, chosen, kind, as_json=as_json, quiet=quiet)
        return
    seen = examine(project, chosen)
    for words in seen.notes:
        note(f"note: {words}")
    made = diagnose_run(project, seen, stages=_stages(project, seen), vectors=kind)
    if (model := sorter(project, policy)) and made.failures:
        made = asyncio.run(sharpened(project, seen, made, model))
    show_diagnosis(made, as_json=as_json, quiet=quiet)
    if not (quiet or as_json):
        note(f"\nwritten: {chosen.path / 'diagnosis.json'}")
        note("next: `harness edit` proposes changes; `harness show run` has the cases")


@app.command()
def show(
    run: RunName = None,
    run_id: RunOption = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The diagnosis that was made of a run."""
    from harness_cli.commands._diagnosis import show_diagnosis
    from harness_cli.errors import UsageError
    from harness_cli.evolution.session import choose_run, read_diagnosis
    from harness_cli.store.project import Project

    chosen = choose_run(Project.find(directory), run_id or run)
    made = read_diagnosis(chosen)
    if made is None:
        raise UsageError(
            f"run `{chosen.id}` has no diagnosis", hint=f"`harness diagnose {chosen.id}` makes it"
        )
    show_diagnosis(made, as_json=as_json, quiet=quiet)


def _names_file(path: Path) -> bool:
    """A path rather than a run's id: it is there, or is written as only paths are."""
    return path.is_file() or path.suffix in (".json", ".jsonl", ".eval")


def _diagnose_file(path: Path, kind: Any, *, as_json: bool, quiet: bool) -> None:
    """Of a result file as it stands: nothing is written, no project is needed."""
    from harness_cli.commands._diagnosis import show_diagnosis
    from harness_cli.commands._show import note
    from harness_cli.evolution.recorded import diagnose_file

    made, notes = diagnose_file(path, vectors=kind)
    for words in () if quiet else notes:
        note(f"note: {words}")
    show_diagnosis(made, as_json=as_json, quiet=quiet)
    if not (quiet or as_json):
        note("\nnext: `harness evalset import KIND FILE` keeps it as a run to compare")


def _diagnose_imported(project: Any, run: Any, kind: Any, *, as_json: bool, quiet: bool) -> None:
    """Of an imported run, into its folder."""
    from harness_cli.commands._diagnosis import show_diagnosis
    from harness_cli.commands._show import note
    from harness_cli.evolution.recorded import diagnose_imported

    made, notes = diagnose_imported(project, run, vectors=kind)
    for words in () if quiet else notes:
        note(f"note: {words}")
    show_diagnosis(made, as_json=as_json, quiet=quiet)


def _stages(project: Any, seen: Any) -> tuple[Any, ...]:
    """The measured harnesses of the loop up to this run's, for the advice whether to go on."""
    from harness_cli.loop.record import evolution_record, stage_of

    config = seen.config
    if config.agent == "react":
        return ()
    rows, _ = evolution_record(
        project, evalset=config.evalset.name, split=config.evalset.split, policy=config.policy
    )
    places = [i for i, row in enumerate(rows) if row.harness_id == config.harness_id]
    return tuple(stage_of(row, project) for row in rows[: places[-1] + 1]) if places else ()
