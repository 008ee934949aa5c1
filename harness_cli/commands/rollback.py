"""`harness rollback CHANNEL`: switches back to a proven pair, at once."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_cli.commands._completing import channel_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet, Waits

if TYPE_CHECKING:
    from harness_cli.store.project import Project

SHOWN = 10
"""Items of a kind that are named."""
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
    if_locked: Waits = "wait",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="What going back would break; changes nothing."),
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """One switch, or both, back to a proven pair, at once."""
    from harness_cli.commands._show import emit_json, line, note, skipped
    from harness_cli.errors import Locked
    from harness_cli.release.commit import Lock
    from harness_cli.release.rollback import roll_back
    from harness_cli.store.project import Project

    axes = {axis for axis, asked in (("policy", policy), ("harness", harness)) if asked}
    if dry_run:
        _look(Project.find(directory), channel, axes, as_json=as_json, quiet=quiet)
        return
    try:
        done = roll_back(
            Project.find(directory),
            channel,
            axes=frozenset(axes or {"policy", "harness"}),
            by=by,
            reason=reason,
            lock=Lock(if_locked=if_locked),
        )
    except Locked as exc:
        skipped(exc, if_locked, as_json=as_json)
        return
    if as_json:
        emit_json(done)
        return
    line(f"{channel}: policy from {done.policy}, harness from {done.harness}")
    if not quiet:
        note(f"\nundo: harness promote, or the channel's history in git: {channel}.json")


def _look(project: "Project", channel: str, axes: set[str], *, as_json: bool, quiet: bool) -> None:
    """Where it would go, what changes, and which items fail again. Exit 1 where it is refused."""
    from harness_cli.commands._changes import change_lines
    from harness_cli.commands._show import emit_json, line, table
    from harness_cli.release.going_back import going_back

    found = going_back(project, channel, frozenset(axes or {"policy", "harness"}))
    if as_json:
        emit_json(found)
    else:
        proven = f"proven by {found.proven_by}" if found.proven_by else "NOT proven together"
        line(f"{channel}: policy of {found.policy}, harness of {found.harness}: {proven}")
        if found.changes and not quiet:
            table(["what", "now", "then"], [[w, _cut(a), _cut(b)] for w, a, b in found.changes])
        for text in () if quiet else change_lines(found.rules):
            line(text)
        for gate in found.gates:
            _line_of(gate)
        for name, now, then in found.latency:
            line(f"{name}: {now} → {then}")
        for command in found.would_prove:
            line(f"would prove it: {command}")
    if found.proven_by is None:
        raise typer.Exit(1)


def _line_of(gate: Any) -> None:
    from harness_cli.commands._show import line
    from harness_cli.records.counting import counted

    if gate.remark:
        line(f"{gate.gate}: {gate.remark}")
        return
    told = f"{gate.gate}: {gate.metric} {_share(gate.now)} → {_share(gate.then)}"
    span = f"difference {_share(gate.difference)} [{_share(gate.low)}, {_share(gate.high)}]"
    line(f"{told} on {counted(gate.n, 'item')}, {span}")
    for what, items in (("fails again", gate.breaks), ("passes again", gate.mends)):
        if items:
            more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
            line(f"  {what}: {', '.join(items[:SHOWN])}{more}")


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.4f}"


def _cut(text: str) -> str:
    return text[:16] + "…" if len(text) > 40 and " " not in text else text
