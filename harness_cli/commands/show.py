"""`harness show …`: a skill, a tool, a hook, a rendered prompt, a run, a trajectory."""

from typing import Annotated

import typer

from harness_cli.commands._completing import (
    evalset_names,
    hook_names,
    item_ids,
    run_ids,
    skill_names,
    tool_names,
)
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="A skill, a tool, a hook, a rendered prompt, a run, a trajectory.",
)
Rev = Annotated[
    str | None, typer.Option("--harness", metavar="REV", help="Default: the working files.")
]


@app.command()
def skill(
    name: Annotated[
        str | None, typer.Argument(help="Default: a table of all.", autocompletion=skill_names)
    ] = None,
    harness: Rev = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One skill, or the table of skills."""
    from harness_cli.commands import _modules

    _modules.show("skill", name, harness, directory, as_json=as_json, quiet=quiet)


@app.command()
def tool(
    name: Annotated[
        str | None, typer.Argument(help="Default: a table of all.", autocompletion=tool_names)
    ] = None,
    harness: Rev = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One tool as the policy is offered it, or the table of tools."""
    from harness_cli.commands import _modules

    _modules.show("tool", name, harness, directory, as_json=as_json, quiet=quiet)


@app.command()
def hook(
    name: Annotated[
        str | None, typer.Argument(help="Default: a table of all.", autocompletion=hook_names)
    ] = None,
    harness: Rev = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One hook, or the table of hooks in the order in which they run."""
    from harness_cli.commands import _modules

    _modules.show("hook", name, harness, directory, as_json=as_json, quiet=quiet)


@app.command()
def prompt(
    item: Annotated[
        str | None, typer.Option(help="Id of an evalset item.", autocompletion=item_ids)
    ] = None,
    comment: Annotated[str | None, typer.Option(help="A viewer's words, without an item.")] = None,
    evalset: Annotated[
        str | None,
        typer.Option(help="Where the item is; default: all.", autocompletion=evalset_names),
    ] = None,
    pipeline: Annotated[str, typer.Option(help="Variant of the pipeline.")] = "default",
    load: Annotated[
        list[str] | None, typer.Option(help="A skill that is loaded.", autocompletion=skill_names)
    ] = None,
    harness: Rev = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The prompt of an item, block by block, with ≈ token counts (estimates)."""
    from harness_cli.commands import _prompt

    asked = _prompt.Asked(item, comment, evalset, pipeline, tuple(load or ()), harness)
    _prompt.show(asked, directory, as_json=as_json, quiet=quiet)


@app.command()
def run(
    name: Annotated[
        str, typer.Argument(help="A run's id or its beginning.", autocompletion=run_ids)
    ] = "latest",
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What a run was asked and what came of it."""
    from harness_cli.commands import _recorded

    _recorded.show_run(name, directory, as_json=as_json, quiet=quiet)


@app.command()
def trajectory(
    item: Annotated[str, typer.Argument(help="Id of an item.", autocompletion=item_ids)],
    run_name: Annotated[
        str, typer.Option("--run", help="A run's id.", autocompletion=run_ids)
    ] = "latest",
    repeat: Annotated[int, typer.Option(min=0, help="Which repetition.")] = 0,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One rollout of a run, step by step."""
    from harness_cli.commands import _recorded

    _recorded.show_trajectory(item, run_name, repeat, directory, as_json=as_json, quiet=quiet)
