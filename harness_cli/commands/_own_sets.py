"""`harness evalset new` and `split`: an evalset of one's own."""

from typing import Annotated

import typer

from harness_cli.commands._completing import evalset_names, words
from harness_cli.commands._options import HERE, Folder, Json, Quiet


def new(
    name: Annotated[str, typer.Argument(help="Of the folder under evalsets/.")],
    agent: Annotated[
        str,
        typer.Option(
            help="harness, or bare: prompt in, answer out.",
            autocompletion=words("harness", "bare"),
        ),
    ] = "harness",
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """An evalset of your own with one item to copy; it runs at once."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation.own_set import create
    from harness_cli.store.project import Project

    if agent not in ("harness", "bare"):
        raise UnknownName.of("agent", agent, ("harness", "bare"))
    project = Project.find(directory)
    header = create(project, name, agent="bare" if agent == "bare" else "harness")
    if as_json:
        emit_json({"evalset": header})
    elif quiet:
        line(header.name)
    else:
        line(
            f"evalsets/{name}: 1 item in items.jsonl; copy it, then `harness evalset check {name}`"
        )


def split(
    name: Annotated[
        str, typer.Argument(help="A folder under evalsets/.", autocompletion=evalset_names)
    ],
    share: Annotated[
        list[str],
        typer.Option(metavar="SPLIT=SHARE", help="A split and its share, e.g. dev=0.3."),
    ],
    seed: Annotated[int, typer.Option(help="The same seed makes the same splits.")] = 0,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Deal the items out over splits, by category; items that ask the same stay together.

    A set with frozen or sealed splits is left alone.
    """
    from harness_cli.commands._show import emit_json, line
    from harness_cli.evaluation.own_set import deal_out
    from harness_cli.evaluation.shares import parse_shares
    from harness_cli.store.project import Project

    shares = parse_shares(share, option="--share", example="dev=0.3 --share test=0.7")
    header = deal_out(Project.find(directory), name, shares, seed=seed)
    if as_json:
        emit_json({"evalset": name, "splits": header.splits})
    elif not quiet:
        shown = ", ".join(f"{split} {n}" for split, n in header.splits.items())
        line(f"{name}: {shown}; next: `harness evalset seal {name} SPLIT`")
