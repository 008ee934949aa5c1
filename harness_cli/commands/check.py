"""`harness check [PATHS]`: everything wrong with the files of a project, each with its fix."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._options import HERE, Folder, Json, Quiet
from harness_cli.records.counting import counted

app = typer.Typer(rich_markup_mode=None)
FOUND = 2
"""Exit code when there are errors: bad input."""


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


@app.command()
def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files or folders; default: the whole project.")
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="SARIF 2.1.0 for code scanning.")
    ] = Format.TEXT,
    harness: Annotated[
        str | None, typer.Option(metavar="REV", help="The harness of this revision or folder.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Warnings count as errors.")] = False,
    rewards: Annotated[
        bool,
        typer.Option(
            "--rewards", help="Whether the reward judge tells good rollouts from corrupted ones."
        ),
    ] = False,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Lint harness, evalsets, gates, manifests and settings: place, reason, fix."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.errors import UsageError
    from harness_cli.harness.check_project import check_project, project_root
    from harness_cli.harness.findings import as_json as to_json
    from harness_cli.harness.findings import as_sarif, as_text, errors
    from harness_cli.harness.load import placed

    root = project_root(directory)
    wanted = []
    for path in paths or []:
        place = (directory / path).resolve()
        if not place.exists():
            raise UsageError(f"no file or folder `{path}`")
        if not place.is_relative_to(root):
            raise UsageError(f"`{path}` lies outside the project `{root}`")
        wanted.append(place.relative_to(root))
    found = [
        f for f in check_project(root, rev=placed(directory, harness)) if _under(f.path, wanted)
    ]
    if rewards:
        from harness_cli.commands._rewarding import reward_findings

        found += reward_findings(root, quiet=quiet or as_json or form is not Format.TEXT)
    if form is Format.SARIF:
        import json

        line(json.dumps(as_sarif(found), ensure_ascii=False, indent=2))
    elif as_json or form is Format.JSON:
        emit_json(to_json(found))
    elif found:
        line(as_text([f for f in found if not quiet or f.level == "error"]))
    wrong = found if strict else errors(found)
    if form is Format.TEXT and not as_json and not quiet:
        bad = len(errors(found))
        note(f"{counted(bad, 'error')}, {counted(len(found) - bad, 'warning')}")
    if wrong:
        raise typer.Exit(FOUND)


def _under(path: str, wanted: list[Path]) -> bool:
    place = Path(path)
    return not wanted or any(place.is_relative_to(w) or w.is_relative_to(place) for w in wanted)
