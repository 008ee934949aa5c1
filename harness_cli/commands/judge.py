"""`harness judge`: how far a judge agrees with labels, its calibration, and whether it holds."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands import _rewarding
from harness_cli.commands._completing import (
    evalset_names,
    judge_names,
    run_ids,
    split_names,
)
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
JudgeName = Annotated[
    str | None,
    typer.Option(
        "--judge", help="Default: the role `final_judge`, or grounded.", autocompletion=judge_names
    ),
]
Evalset = Annotated[
    str,
    typer.Option(help="Where labels that name an item find it.", autocompletion=evalset_names),
]
Split = Annotated[
    str | None, typer.Option(help="Its split; default: dev.", autocompletion=split_names)
]


@app.callback()
def group() -> None:
    """Agreement of a judge with labels, and its calibration."""


app.command(name="rewards")(_rewarding.rewards)


@app.command(name="agree")
def agree(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Labels, JSONL or CSV: docs/judging.md.")
    ],
    judge: JudgeName = None,
    catalogue: Annotated[
        Path | None, typer.Option(help="Folder of facts; default: the project's catalogue.")
    ] = None,
    evalset: Evalset = "live_stream_qa",
    split: Split = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The labels are of this run's replies.", autocompletion=run_ids
        ),
    ] = None,
    unscored: Annotated[
        str, typer.Option(metavar="wrong|drop", help="How unscored replies count.")
    ] = "wrong",
    cases: Annotated[int, typer.Option(min=0, help="Disagreements to list.")] = 10,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Raw agreement, κ, confusion, categories, recall by kind, and clusters of disagreement."""
    import asyncio

    from harness_cli.commands import _judging as judging
    from harness_cli.commands._show import emit_json
    from harness_cli.evaluation.calibrating import measure_judge
    from harness_cli.evaluation.labelled import labels_of, labels_of_run
    from harness_cli.evolution.judged import diagnose_judge
    from harness_cli.judges.label_file import read_label_file
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(directory)
    name = judging.chosen(project, judge)
    counted = judging.counting(unscored)
    labels = read_label_file(directory / file)
    if run is not None:
        found = labels_of_run(project, labels, RunStore(project.runs).get(run), "unstated")
    else:
        facts = within(directory, catalogue)
        found = labels_of(project, labels, evalset, split, "unstated", catalogue=facts)
    measured = asyncio.run(measure_judge(project, name, found, unscored=counted))
    clusters = diagnose_judge(measured)
    if as_json:
        emit_json(judging.as_data(measured.report, clusters))
    else:
        judging.show_report(measured.report, clusters, cases=cases, quiet=quiet)


@app.command()
def calibrate(
    judge: JudgeName = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labels of people; default: the calibration set."),
    ] = None,
    origin: Annotated[
        str, typer.Option(metavar="human|team", help="Who made the labels of the file.")
    ] = "human",
    evalset: Evalset = "live_stream_qa",
    split: Split = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who calibrates, for the record.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Only so many replies, evenly over the kinds; no record."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Measure and show; write no record.")
    ] = False,
    max_cost: Annotated[float | None, typer.Option(min=0, help="US dollars.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens, in and out.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Wall clock.")] = None,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Run a judge on labelled replies and write its calibration record, for a person to commit.

    Votes that were given are kept: after a budget (exit 13) or ^C (130) the same command goes on.
    """
    import asyncio

    from harness_cli.commands import _judging as judging
    from harness_cli.commands._show import emit_json, note
    from harness_cli.evaluation import calibrating
    from harness_cli.evaluation.bounded_judging import Bounds, spent_words
    from harness_cli.evaluation.gate import Budget
    from harness_cli.evaluation.labelled import constructed, labels_of, part_of
    from harness_cli.evolution import judged
    from harness_cli.evolution.proposal_file import now
    from harness_cli.judges.label_file import read_label_file
    from harness_cli.records.canonical import write_json
    from harness_cli.store.project import Project
    from harness_cli.store.state import user_name

    project = Project.find(directory)
    name = judging.chosen(project, judge)
    if labels is None:
        found = constructed(project)
    else:
        made = judging.origin_of(origin)
        file = read_label_file(directory / labels)
        found = labels_of(project, file, evalset, split, made)
    if limit is not None:
        found, dry_run = part_of(found, limit), True
    if not (quiet or as_json):
        note(judging.asked(project, name, len(found.replies)))
    bounds = Bounds(Budget(cost=max_cost, tokens=max_tokens, seconds=max_seconds))
    measured = asyncio.run(calibrating.measure_judge(project, name, found, bounds=bounds))
    if bounds.spending.calls and not (quiet or as_json):
        note(f"asked: {spent_words(bounds.spending)}")
    record = calibrating.record_of(measured, at=now(), by=by or user_name())
    path = calibrating.record_path(project, name)
    if not dry_run:
        judged.keep(project, name, judged.diagnose_judge(measured))
        write_json(path, record)
    if as_json:
        emit_json({"file": None if dry_run else str(path), "calibration": record})
        return
    judging.show_record(record, quiet=quiet)
    if not (dry_run or quiet):
        note(f"\nwritten: {path}; commit it, gates read it from there")
        note(f"disagreements: harness diagnose --judge {name}")


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(help="A judge; default: all.", autocompletion=judge_names)
    ] = None,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """A judge, its calibration, and whether that is current, changed or absent."""
    from harness_cli.commands import _judging as judging
    from harness_cli.commands._show import emit_json
    from harness_cli.store.project import Project

    project = Project.find(directory)
    names = [name] if name else sorted(project.config.judges)
    found = {n: judging.standing(project, n) for n in names}
    if as_json:
        emit_json({"judges": {n: judging.standing_data(s) for n, s in found.items()}})
        return
    for one, state in found.items():
        judging.show_standing(one, state, quiet=quiet)


@app.command(name="pairwise")
def pairwise(
    a: Annotated[str, typer.Argument(metavar="RUN_A", autocompletion=run_ids)],
    b: Annotated[str, typer.Argument(metavar="RUN_B", autocompletion=run_ids)],
    judge: JudgeName = None,
    limit: Annotated[int | None, typer.Option(min=1, help="First N pairs.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Model calls side by side.")] = 8,
    fresh_verdicts: Annotated[
        bool, typer.Option("--fresh-verdicts", help="Ask anew, whatever the cache holds.")
    ] = False,
    cases: Annotated[int, typer.Option(min=0, help="Pairs to list.")] = 10,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Which of two runs a panel prefers, reply by reply, each pair judged in both orders."""
    from harness_cli.commands import _judging as judging
    from harness_cli.commands._pairwise import compare_runs, show
    from harness_cli.commands._show import emit_json
    from harness_cli.store.project import Project

    project = Project.find(directory)
    report = compare_runs(
        project,
        a,
        b,
        judge=judging.chosen(project, judge),
        limit=limit,
        concurrency=concurrency,
        fresh=fresh_verdicts,
    )
    if as_json:
        emit_json(report)
    else:
        show(report, cases=cases, quiet=quiet)
