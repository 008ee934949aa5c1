"""`harness diff REV_A [REV_B]`: what changed between two harness states, by meaning."""

from typing import Annotated, Any

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet

app = typer.Typer(rich_markup_mode=None)
_SIGN = {"added": "+", "removed": "-", "changed": "~", "renamed": ">", "moved": "^"}
_WIDTH = 160


@app.command()
def diff(
    before: Annotated[str, typer.Argument(metavar="REV_A", help="A revision or harness id.")],
    after: Annotated[
        str | None, typer.Argument(metavar="REV_B", help="Default: the working files.")
    ] = None,
    full: Annotated[bool, typer.Option(help="Whole texts, not their beginnings.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rules, parameters, settings and constraints that changed between two harness states."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.harness.diff import diff_states
    from harness_cli.harness.load import load_state
    from harness_cli.store.project import Project

    project = Project.find(directory)
    found = diff_states(load_state(project, before), load_state(project, after))
    if as_json:
        emit_json(found)
        return
    for change in found.changes:
        line(f"{_SIGN[change.action]} {change.title}")
        for sign, value in (("-", change.before), ("+", change.after)):
            if not quiet and value is not None and change.what:
                line(f"    {sign} {_short(value, full)}")
    if not quiet:
        modules = ", ".join(f"{n} {module}" for module, n in found.modules().items())
        note(f"{found.a[:12]} → {found.b[:12]}: {modules or 'no changes'}")


def _short(value: Any, full: bool) -> str:
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if full:
        return text.replace("\n", "\n      ")
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
