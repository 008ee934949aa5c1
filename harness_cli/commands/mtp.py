"""`harness mtp check|stitch`: draft heads in checkpoints, before a server is asked to use them."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Draft heads of checkpoints: find what is wrong, put back what a save lost.",
)
Place = Annotated[
    str,
    typer.Argument(metavar="CHECKPOINT", help="A registered checkpoint, or a model's folder."),
]


@app.command()
def check(
    checkpoint: Place,
    steps: Annotated[
        int | None, typer.Option(min=0, help="Draft steps that the server is to take.")
    ] = None,
    headers: Annotated[
        bool, typer.Option("--headers", help="Look at names and shapes alone, read no weights.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Missing, stale, non-finite, wrongly shaped or quantised heads; exit 1 where one drafts not.

    Servers start with a broken head all the same: it then drafts nothing that is accepted.
    """
    from harness_cli.commands._draft_heads import found_checkpoint, show_report
    from harness_cli.models.mtp_check import check_head

    place = found_checkpoint(directory, checkpoint)
    report = check_head(place, steps=steps, values=not headers, digests=not headers)
    show_report(report, as_json=as_json, quiet=quiet)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def stitch(
    source: Annotated[
        str,
        typer.Argument(metavar="BASE|HEAD", help="Checkpoint or .safetensors file with the head."),
    ],
    checkpoint: Place,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of another head that is there.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put `mtp.*` into a checkpoint that lost it: checked, atomic, its origin written beside it."""
    from harness_cli.commands._draft_heads import found_checkpoint, show_report
    from harness_cli.commands._show import note
    from harness_cli.models.mtp_check import check_head
    from harness_cli.models.mtp_stitch import stitch as put
    from harness_cli.store.checkpoints import recount

    target = found_checkpoint(directory, checkpoint)
    file = directory / source
    origin: Path = file if file.is_file() else found_checkpoint(directory, source)
    put(origin, target, replace=replace)
    registered = recount(target)
    show_report(check_head(target), as_json=as_json, quiet=quiet)
    if not quiet and registered is not None:
        note("its digest is another now: what was bound to the old one needs binding anew")
