"""`harness diagnose [RUN]`: failure classes, sizes, cases, side at fault, what to do next."""

from typing import Annotated, Any

import typer

from harness_cli.commands._completing import run_ids
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
        help="A run; default: the newest complete one.", metavar="[RUN]", autocompletion=run_ids
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
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster the failures of a run and write `diagnosis.json` into its folder."""
    from harness_cli.commands._show import note
    from harness_cli.evolution.session import choose_run, diagnose_run, examine
    from harness_cli.store.project import Project

    project = Project.find(directory)
    chosen = choose_run(project, run_id or run)
    seen = examine(project, chosen)
    for words in seen.notes:
        note(f"note: {words}")
    made = diagnose_run(project, seen, stages=_stages(project, seen))
    _show(made, as_json=as_json, quiet=quiet)
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
    from harness_cli.errors import UsageError
    from harness_cli.evolution.session import choose_run, read_diagnosis
    from harness_cli.store.project import Project

    chosen = choose_run(Project.find(directory), run_id or run)
    made = read_diagnosis(chosen)
    if made is None:
        raise UsageError(
            f"run `{chosen.id}` has no diagnosis", hint=f"`harness diagnose {chosen.id}` makes it"
        )
    _show(made, as_json=as_json, quiet=quiet)


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


def _show(made: Any, *, as_json: bool, quiet: bool) -> None:
    from harness_cli.commands._show import emit_json, line, table

    if as_json:
        emit_json(made)
        return
    line(f"{made.evalset}: {made.failures} failures of {made.of}, run {made.run}")
    rows = [
        [
            c.id,
            "known" if c.class_id else "new",
            c.size,
            f"{c.share:.0%}",
            "systematic" if c.systematic else "sparse",
            c.side,
            ", ".join(c.suspected_modules[:2]),
        ]
        for c in made.clusters
    ]
    if rows:
        table(["class", "", "size", "share", "kind", "side", "suspected"], rows)
    line(f"unexplained: {made.unexplained:.0%} of the failures")
    for cluster in () if quiet else made.clusters:
        _show_cluster(cluster)
    line()
    line(f"advice: {made.advice['action']} (the choice is yours)")
    for reason in made.advice["reasons"]:
        line(f"  - {reason}")


def _show_cluster(cluster: Any) -> None:
    from harness_cli.commands._show import line

    line()
    line(f"{cluster.id}: {cluster.label}")
    line(f"  {cluster.root_cause}")
    for case in cluster.cases:
        where = case.item_id if case.step is None else f"{case.item_id}:{case.step}"
        line(f"  {where}  “{_short(case.comment)}” → “{_short(case.reply)}”")
        line(f"    {case.why}")


def _short(text: str) -> str:
    from harness_cli.evolution.show_hunk import visible

    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= 90 else f"{flat[:89]}…"
