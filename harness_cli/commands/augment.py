"""`harness augment`: augmented states of the harness, each a folder that check and eval take."""

from pathlib import Path
from typing import Annotated, Any

import typer

from harness_cli.commands._completing import evalset_names, split_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command()
def augment(
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Where DIR/<state>/ and DIR/<state>.yaml are written."),
    ],
    count: Annotated[
        int | None, typer.Option(min=1, help="How many states; default: the recipe's.")
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="augment.yaml; default: all five dimensions, half."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first state; each has the next.")] = 0,
    harness: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Git revision or a folder; default: the working files."),
    ] = None,
    evalset: Annotated[
        str | None,
        typer.Option(
            help="Whose gold solutions must pass under the states; default: live_stream_qa.",
            autocompletion=evalset_names,
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Its split.", autocompletion=split_names)] = "dev",
    probe: Annotated[
        int, typer.Option(min=0, help="Gold solutions each state is held against.")
    ] = 8,
    each: Annotated[
        bool, typer.Option("--each", help="One state for each item, with skills masked for it.")
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw augmented harness states that keep the task; how much changed, what was discarded.

    A command that was stopped goes on where it was. `harness eval NAME --harness DIR/<state>` runs
    an evalset in one of them.
    """
    import asyncio

    from harness_cli.commands._augmenting import draw, progress, show
    from harness_cli.commands._show import emit_json
    from harness_cli.harness.load import placed
    from harness_cli.store.project import Project

    project = Project.find(directory)
    place = within(directory, out)
    assert place is not None
    drawn, recipe_read, book = asyncio.run(
        draw(
            project,
            place,
            recipe=within(directory, recipe),
            count=count,
            seed=seed,
            harness=placed(directory, harness),
            evalset=evalset,
            split=split,
            probe=probe,
            each=each,
            said=None if quiet or as_json else progress,
        )
    )
    if as_json:
        emit_json(_as_json(drawn, book))
    else:
        show(drawn, recipe_read, book, place)
    if drawn.failed:
        raise typer.Exit(1)


def _as_json(drawn: Any, book: Any) -> dict[str, Any]:
    return {
        "states": drawn.lines,
        "kept": drawn.kept,
        "failed": drawn.failed,
        "discard_rate": drawn.discard_rate,
        "discards": dict(drawn.reasons()),
        "golds": drawn.golds,
        "probed": drawn.probed,
        "paraphrases": dict(book.counts),
    }
