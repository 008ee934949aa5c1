"""`harness compare`: paired differences of two runs."""

from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet

if TYPE_CHECKING:
    from harness_cli.evaluation.comparison import Case, Comparison
    from harness_cli.store.runs import RunFolder, RunStore

app = typer.Typer(no_args_is_help=False, rich_markup_mode=None)


@app.command(name="compare")
def run(
    a: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="Run id, or several with commas; default: the one before B.",
            autocompletion=run_ids,
        ),
    ] = None,
    b: Annotated[
        str | None,
        typer.Argument(
            metavar="B",
            help="Run id, or several with commas; default: the newest.",
            autocompletion=run_ids,
        ),
    ] = None,
    cases: Annotated[int, typer.Option(min=0, help="Fixed and broken cases to list.")] = 10,
    resamples: Annotated[
        int | None,
        typer.Option(min=100, help="Seeded resamples, as the report drew; default: exact."),
    ] = None,
    aa: Annotated[
        bool, typer.Option("--aa", help="Two runs of one thing: keep their noise floor.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs of another evalset content or judge.")
    ] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Markdown on stdout.")] = False,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Paired differences of run B against run A, with intervals and the cases behind them.

    Pairs are made by item id, repeats averaged first. Several runs on either side, with commas,
    are compared by their spread, in σ. Exit 0 whatever the outcome: gates judge.
    """
    from harness_cli.commands._show import emit_json, line, step_summary
    from harness_cli.evaluation.compare import compare
    from harness_cli.evaluation.comparison_text import markdown
    from harness_cli.evaluation.noise import find, measured_with
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(directory)
    store = RunStore(project.runs)
    if a and b and "," in a + b:
        _groups([store.get(n) for n in _named(a)], [store.get(n) for n in _named(b)], as_json)
        return
    first, second = _two(store, a, b)
    if aa:
        measured_with(project, [first, second])
    found = compare(
        first.results(),
        second.results(),
        config_a=first.config(),
        config_b=second.config(),
        force=force,
        noise=find(store, second.config(), first.config()),
        resamples=resamples,
    )
    step_summary(markdown(found, cases))
    if as_json:
        emit_json(found)
    elif as_markdown:
        line(markdown(found, cases))
    else:
        _show(found, cases=cases, quiet=quiet)


def _named(words: str) -> list[str]:
    return [name.strip() for name in words.split(",") if name.strip()]


def _groups(a: list["RunFolder"], b: list["RunFolder"], as_json: bool) -> None:
    """Two groups of runs by their spread."""
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.evaluation.run_groups import COLUMNS, compare_groups, rows

    found = compare_groups(a, b)
    if as_json:
        emit_json(found)
        return
    line(f"a  {', '.join(found.a)}")
    line(f"b  {', '.join(found.b)}")
    table(COLUMNS, rows(found.metrics))
    if found.categories:
        table(COLUMNS, rows(found.categories), title=f"{found.metric} by category")


def _two(store: "RunStore", a: str | None, b: str | None) -> tuple["RunFolder", "RunFolder"]:
    """The two runs; what is not named is the newest complete one that fits the other."""
    from harness_cli.errors import UsageError

    second = store.get(b) if b else store.newest()
    if a:
        first = store.get(a)
    else:
        wanted = second.config()
        first = store.newest(
            evalset=wanted.evalset.name,
            split=wanted.evalset.split,
            fits=lambda config: config.id < second.id,
        )
    if first.id == second.id:
        raise UsageError(
            f"`{first.id}` is compared with itself", hint="`harness runs list` shows the others"
        )
    for run_ in (first, second):
        if not run_.journal.exists():
            raise UsageError(f"run `{run_.id}` has no journal: there is nothing to compare")
    return first, second


def _show(found: "Comparison", *, cases: int, quiet: bool) -> None:
    from harness_cli.commands._show import line, note, table
    from harness_cli.evaluation.comparison_text import (
        CATEGORY_COLUMNS,
        METRIC_COLUMNS,
        category_rows,
        metric_rows,
        remarks,
        side_line,
    )

    for warning in found.warnings:
        note(f"warning: {warning}")
    if not quiet:
        line(side_line("a", found.a))
        line(side_line("b", found.b))
    table(METRIC_COLUMNS, metric_rows(found))
    if quiet:
        return
    for remark in remarks(found):
        line(remark)
    table(CATEGORY_COLUMNS, category_rows(found))
    for name, listed in (("fixed", found.fixed), ("broken", found.broken)):
        line(f"{name}: {len(listed)} of {found.items}")
        for case in listed[:cases]:
            line(f"  {_case(case)}")
        if len(listed) > cases:
            line(f"  … {len(listed) - cases} more, --cases N shows them")


def _case(case: "Case") -> str:
    moved = [
        f"{metric} {_score(case.a.get(metric))} → {_score(case.b.get(metric))}"
        for metric in ("accuracy", "effectiveness")
        if case.a.get(metric) != case.b.get(metric)
    ]
    kinds = f"  ({', '.join(case.findings)})" if case.findings else ""
    flaky = "  flaky" if case.flaky else ""
    return f"{case.item_id}  {case.category}  {', '.join(moved)}{kinds}{flaky}"


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
