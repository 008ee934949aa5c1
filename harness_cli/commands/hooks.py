"""`harness hooks`: run hooks on recorded events."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_cli.commands._completing import hook_names, run_ids
from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted

if TYPE_CHECKING:
    from harness_cli.records.harness import HarnessState
    from harness_cli.runtime.hooks.moment import Moment
    from harness_cli.store.project import Project

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Run hooks on recorded events."""


@app.command(name="test")
def try_recorded(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Events as JSON: docs/hooks.md.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Events of a run; default: the newest.", autocompletion=run_ids
        ),
    ] = None,
    item: Annotated[str | None, typer.Option(metavar="ID", help="Only this item.")] = None,
    hook: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this hook.", autocompletion=hook_names)
    ] = None,
    harness: Annotated[
        str | None, typer.Option(metavar="REV", help="Default: the working files.")
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What the hooks say of recorded events; exit 1 when one fails to decide."""
    import asyncio

    from harness_cli.commands._show import emit_json, note, table
    from harness_cli.errors import UnknownName
    from harness_cli.harness.load import load_state
    from harness_cli.runtime.hooks.replay import try_hooks
    from harness_cli.store.project import Project

    project = Project.find(directory)
    state = load_state(project, harness)
    if hook is not None and hook not in {h.name for h in state.hooks}:
        raise UnknownName.of("hook", hook, [h.name for h in state.hooks])
    moments = (
        _from_file(directory / file) if file is not None else _from_run(project, state, run, item)
    )
    seconds = project.limits("offline").hook_s
    found = asyncio.run(try_hooks(moments, state, seconds=seconds, only=hook))
    spoken = [o for o in found if o.hooks]
    if as_json:
        emit_json({"events": len(found), "outcomes": found if not quiet else spoken})
    else:
        rows = [
            (o.event, o.step, h["hook"], h["outcome"], h["reason"], _cut(o.about))
            for o in spoken
            for h in o.hooks
        ]
        table(("event", "step", "hook", "outcome", "reason", "about"), rows)
        note(f"{counted(len(found), 'event')}, {len(spoken)} with something to say")
    if any(h["outcome"] == "failed" for o in found for h in o.hooks):
        raise typer.Exit(1)


def _from_file(file: Path) -> "list[Moment]":
    from harness_cli.errors import BadFile
    from harness_cli.runtime.hooks.replay import read_moments

    if not file.is_file():
        raise BadFile(f"no file `{file}`")
    return read_moments(file.read_bytes(), name=str(file))


def _from_run(
    project: "Project", state: "HarnessState", run: str | None, item: str | None
) -> "list[Moment]":
    """The events of every rollout of a run, or of one item's."""
    from harness_cli.errors import UnknownName
    from harness_cli.evaluation.evalsets import load_evalset
    from harness_cli.runtime.hooks.replay import moments_of
    from harness_cli.store.runs import RunStore

    store = RunStore(project.runs)
    folder = store.get(run) if run is not None else store.newest(complete=False)
    ref = folder.config().evalset
    evalset = load_evalset(
        project, ref.name, split=ref.split, reason=f"hooks test on run {folder.id}"
    )
    requests = {i.id: i.request for i in evalset.items if item in (None, i.id)}
    if not requests:
        raise UnknownName.of("item", item or "", [i.id for i in evalset.items])
    moments: list[Moment] = []
    for trajectory in folder.trajectories(lambda key: key.item in requests):
        if trajectory.item_id in requests:
            moments += moments_of(trajectory, state, requests[trajectory.item_id])
    return moments


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else flat[:79] + "…"
