"""`harness blind make|annotate|report`: human preference between two runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

if TYPE_CHECKING:
    from harness_cli.records.blind import BlindReport

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Test = Annotated[
    Path | None, typer.Argument(metavar="TEST", help="Folder of the test; default: the newest.")
]


@app.callback()
def group() -> None:
    """Human preference between two runs, sides hidden."""


@app.command()
def make(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="Run id.", autocompletion=run_ids)
    ],
    candidate: Annotated[
        str, typer.Argument(metavar="CANDIDATE", help="Run id.", autocompletion=run_ids)
    ],
    pairs: Annotated[
        int | None, typer.Option(min=1, help="How many; default: 100, or as many as there are.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
    review: Annotated[
        float, typer.Option(help="Share shown a second time with sides swapped.")
    ] = 0.1,
    with_trace: Annotated[
        bool, typer.Option("--with-trace", help="Show tool calls too: they may betray a system.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Folder; default: blind/<id>.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="File of the key; default: beside the runs.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why a sealed split is opened.")] = None,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Draw pairs by stratum, hide who is A, seal the key.

    The sheet may be given away; the key says who is who and stays with you until the report.
    """
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.evaluation.blind import make as making
    from harness_cli.store.project import Project
    from harness_cli.store.runs import RunStore

    project = Project.find(directory)
    store = RunStore(project.runs)
    wanted = making.Wanted(
        pairs=pairs, seed=seed, review=review, with_trace=with_trace, reason=reason
    )
    sheet, _, sealed = making.make(project, store.get(baseline), store.get(candidate), wanted)
    folder = within(directory, out) or project.root / "blind" / sheet.id
    key_file = within(directory, key) or making.key_path(project, sheet.id)
    making.write(folder, sheet, key_file, sealed)
    if as_json:
        shown = {"drawn": sheet.drawn, "shown": len(sheet.pairs), "strata": sheet.strata}
        emit_json({"id": sheet.id, "sheet": str(folder), "key": str(key_file), **shown})
        return
    line(str(folder))
    if not quiet:
        again = len(sheet.pairs) - sheet.drawn
        note(f"{sheet.drawn} pairs of {len(sheet.strata)} strata, {again} of them shown twice")
        note(f"the key, for the report alone: {key_file}")
        note(f"next: harness blind annotate {folder}")


@app.command()
def annotate(
    test: Test = None,
    annotator: Annotated[str | None, typer.Option(help="Default: your user name.")] = None,
    page: Annotated[bool, typer.Option("--page", help="As a page on this machine.")] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the page; 0 takes a free one.")
    ] = 0,
    export_csv: Annotated[
        Path | None, typer.Option("--export", metavar="FILE", help="Write the sheet as CSV.")
    ] = None,
    import_csv: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Take in an annotated CSV.")
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option(help="This pair, decided or not; may be repeated.")
    ] = None,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Decide pair by pair: at the terminal, as a page, or in a spreadsheet.

    A preference needs a reason. Every decision is on the disk at once; go on whenever you like.
    """
    from harness_cli.commands._blind import Asked, annotate_with

    annotate_with(
        Asked(
            test=within(directory, test),
            annotator=annotator,
            page=page,
            port=port,
            export_to=within(directory, export_csv),
            import_from=within(directory, import_csv),
            pairs=tuple(pair or ()),
        ),
        directory,
        as_json=as_json,
        quiet=quiet,
    )


@app.command()
def report(
    test: Test = None,
    key: Annotated[Path | None, typer.Option(help="File of the key.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Before the end: opens the key, which is recorded.")
    ] = False,
    cases: Annotated[int, typer.Option(min=0, help="Preferences to list with reasons.")] = 5,
    as_json: Json = False,
    directory: Folder = HERE,
    quiet: Quiet = False,
) -> None:
    """Open the key: shares, non-tie win rate, exact p, reasons, strata, consistency.

    Exit 3 while pairs are open, whatever the preferences.
    """
    from harness_cli.commands._blind import find_test
    from harness_cli.commands._show import emit_json
    from harness_cli.evaluation.blind import annotations, make, tally
    from harness_cli.store.project import Project

    project = Project.find(directory)
    folder, sheet = find_test(project, within(directory, test))
    sealed = make.read_key(within(directory, key) or make.key_path(project, sheet.id), sheet)
    people = annotations.read_annotations(folder)
    found = tally.report(sheet, sealed, people, annotations.read_openings(folder))
    if not found.complete:
        _open_early(found, folder, partial=partial)
    if as_json:
        emit_json(found)
    else:
        _show(found, cases=cases, quiet=quiet)


def _open_early(found: "BlindReport", folder: Path, *, partial: bool) -> None:
    """Record that somebody looks before the end, or refuse it."""
    from harness_cli.errors import NeedsPerson
    from harness_cli.evaluation.blind.annotations import record_opening

    if not partial:
        raise NeedsPerson(
            f"pairs of `{found.id}` are open: {found.annotated} of {found.drawn} are annotated",
            hint=f"harness blind annotate {folder}; --partial opens the key all the same",
        )
    record_opening(folder, annotated=found.annotated, of=found.drawn)


def _show(found: "BlindReport", *, cases: int, quiet: bool) -> None:
    from harness_cli.commands._show import line, plain, table
    from harness_cli.evaluation.blind import words

    if not quiet:
        line(words.title(found))
    table(words.COLUMNS, words.preference_rows(found))
    line(words.headline(found.whole))
    if quiet:
        return
    for columns, rows in (
        (words.ATTRIBUTION, words.attribution_rows(found)),
        (words.STRATA, words.strata_rows(found)),
        (words.PEOPLE, words.people_rows(found) if len(found.annotators) > 1 else []),
    ):
        if rows:
            table(columns, rows)
    for remark in words.remarks(found):
        line(remark)
    for case in words.case_lines(found, cases):
        line(plain(case))
