"""`harness judge`: how far a judge agrees with people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import evalset_names, judge_names, split_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

if TYPE_CHECKING:
    from harness_cli.judges.agreeing import AgreementReport
    from harness_cli.stats.agreement import Agreement

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Agreement of a judge with labels."""


@app.command(name="agree")
def agree(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Labels, JSONL: docs/judging.md.")],
    judge: Annotated[
        str, typer.Option(help="Judge of harness.yaml.", autocompletion=judge_names)
    ] = "grounded",
    catalogue: Annotated[
        Path | None, typer.Option(help="Folder of facts; default: the project's catalogue.")
    ] = None,
    evalset: Annotated[
        str,
        typer.Option(
            help="Where labels that name an item by id find it.", autocompletion=evalset_names
        ),
    ] = "live_stream_qa",
    split: Annotated[
        str | None, typer.Option(help="Its split; default: dev.", autocompletion=split_names)
    ] = None,
    cases: Annotated[int, typer.Option(min=0, help="Disagreements to list.")] = 10,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Raw agreement, κ, confusion tables and recall by kind of error, against labelled replies."""
    import asyncio

    from harness_cli.commands._show import emit_json
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation.evalsets import load_evalset
    from harness_cli.judges.agreeing import measure
    from harness_cli.judges.labels import judge_labels, read_labels, with_items
    from harness_cli.judges.open import open_judge
    from harness_cli.store.catalogue import read_catalogue
    from harness_cli.store.project import Project

    project = Project.find(directory)
    config = project.config.judges.get(judge)
    if config is None:
        raise UnknownName.of("judge", judge, project.config.judges)
    replies = read_labels(directory / file)
    if any(r.item is None and r.item_id for r in replies):
        replies = with_items(replies, load_evalset(project, evalset, split=split).items)
    world = read_catalogue(within(directory, catalogue) or project.evalsets / "catalogue")
    opened = open_judge(judge, config)
    verdicts = asyncio.run(judge_labels(opened, replies, world))
    report = measure(opened.id, replies, verdicts)
    if as_json:
        emit_json(report)
    else:
        _show(report, cases=cases, quiet=quiet)


def _show(report: "AgreementReport", *, cases: int, quiet: bool) -> None:
    from harness_cli.commands._show import line, table

    line(f"{report.judge} against {report.n} labelled replies, {report.unscored} unscored")
    table(("metric", "raw %", "95 %", "κ", "95 %", "pairs"), _rows(report))
    if quiet:
        return
    for metric, value in report.alpha.items():
        shown = "undefined" if value is None else f"{value:.3f}"
        line(f"annotators, {metric}: Krippendorff's α {shown}")
    for name, found in (("accuracy", report.accuracy), ("effectiveness", report.effectiveness)):
        if found:
            rows = [
                (f"{label:g}", *counts)
                for label, counts in zip(found.labels, found.confusion, strict=True)
            ]
            columns = ("label", *(f"judge {x:g}" for x in found.labels))
            table(columns, rows, title=f"{name}: rows are the labels")
    kinds = [
        (k.kind, f"{k.caught} of {k.n}", k.named, f"{k.interval.low:.2f} … {k.interval.high:.2f}")
        for k in report.kinds
    ]
    if kinds:
        table(("kind", "marked down", "named so", "95 %"), kinds, title="recall by kind")
    for case in report.disagreements[:cases]:
        judged = "unscored" if case.judge is None else f"{case.judge:g}"
        line(f"{case.id}  {case.metric} label {case.reference:g}, judge {judged}: {case.reply}")
        for finding in case.findings:
            line(f"    {finding}")
    if len(report.disagreements) > cases:
        line(f"… {len(report.disagreements) - cases} more, --cases N shows them")


def _rows(report: "AgreementReport") -> list[tuple[str, ...]]:
    pairs = (("accuracy", report.accuracy), ("effectiveness", report.effectiveness))
    return [_row(name, found) for name, found in pairs if found]


def _row(name: str, found: "Agreement") -> tuple[str, ...]:
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.3f}"
    interval = found.kappa_interval
    return (
        name + (" (quadratic κ)" if found.weights == "quadratic" else ""),
        f"{100 * found.raw:.1f}",
        f"{100 * found.raw_interval.low:.1f} … {100 * found.raw_interval.high:.1f}",
        kappa,
        f"{interval.low:.3f} … {interval.high:.3f}" if interval else "–",
        str(found.n),
    )
