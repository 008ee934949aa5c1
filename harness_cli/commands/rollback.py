"""`harness rollback CHANNEL`: switches back to a proven pair, at once."""

from typing import Annotated

import typer

from harness_cli.commands._completing import channel_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)


@app.command()
def rollback(
    channel: Annotated[
        str, typer.Argument(help="A channel, such as dev.", autocompletion=channel_names)
    ],
    policy: Annotated[bool, typer.Option("--policy", help="Only the policy switch.")] = False,
    harness: Annotated[bool, typer.Option("--harness", help="Only the harness switch.")] = False,
    reason: Annotated[str, typer.Option(help="Kept in the channel's history.")] = "",
    by: Annotated[str | None, typer.Option(help="Who; default: git's user name.")] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One switch, or both, back to a proven pair, at once."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.release.rollback import roll_back
    from harness_cli.store.project import Project

    axes = {axis for axis, asked in (("policy", policy), ("harness", harness)) if asked}
    done = roll_back(
        Project.find(directory),
        channel,
        axes=frozenset(axes or {"policy", "harness"}),
        by=by,
        reason=reason,
    )
    if as_json:
        emit_json(done)
        return
    line(f"{channel}: policy from {done.policy}, harness from {done.harness}")
    if not quiet:
        note(f"\nundo: harness promote, or the channel's history in git: {channel}.json")
