"""`harness migrate`: files of an older schema moved to this version's."""

from typing import Annotated, Any

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted

app = typer.Typer(rich_markup_mode=None)


@app.command()
def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would move.")] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read every schema-numbered file; move old ones; exit 2 where a number is not known."""
    from harness_cli.commands._show import emit_json, line, note, table
    from harness_cli.harness.check_project import project_root
    from harness_cli.store import migrate as migrating

    root = project_root(directory)
    found = migrating.examine(root)
    if as_json:
        emit_json({"dry_run": dry_run, "files": [_plain(f) for f in found]})
    elif not quiet:
        table(("kind", "files", "schema", "state"), _counted(found))
    migrating.refuse_unknown(found)
    moved = [f for f in found if f.state == "old"] if dry_run else migrating.move(root, found)
    if as_json:
        return
    for file in moved:
        line(f"{file.path}: schema {file.schema} → {file.current}")
    if not quiet:
        word = "would move" if dry_run else "moved"
        note(f"{word} {len(moved)} of {counted(len(found), 'file')}")


def _counted(found: list[Any]) -> list[tuple[str, int, int | None, str]]:
    """One row for each kind, schema and state."""
    rows = [(f.kind, f.schema, f.state) for f in found]
    return [
        (kind, rows.count((kind, n, s)), n, s)
        for kind, n, s in dict.fromkeys(sorted(rows, key=str))
    ]


def _plain(file: Any) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "schema": file.schema,
        "current": file.current,
        "state": file.state,
        **({"problem": file.problem} if file.problem else {}),
    }
