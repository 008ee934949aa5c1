"""Files of a manifest for other places: `harness manifest export|archive`."""

from pathlib import Path
from typing import Annotated

import typer

from harness_cli.commands._completing import manifest_names
from harness_cli.commands._options import HERE, Folder, Json, Quiet, within

Name = Annotated[str, typer.Argument(help="A manifest's id.", autocompletion=manifest_names)]


def export(
    name: Name,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write it.")
    ],
    dsse: Annotated[
        bool, typer.Option("--dsse/--plain", help="A DSSE envelope, or the Statement alone.")
    ] = True,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY",
            envvar="HARNESS_SIGNING_KEY",
            help="ed25519 private key; its password is in HARNESS_SIGNING_PASSWORD.",
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """A manifest for other tools: its in-toto Statement in a DSSE envelope, signed anew."""
    from harness_cli.commands._show import emit_json, line
    from harness_cli.release.enveloped import write_export
    from harness_cli.store.project import Project

    signing = key and directory / key.expanduser()
    path = within(directory, output) or output
    made = write_export(Project.find(directory), name, path, signing, dsse=dsse)
    if as_json:
        emit_json(made)
    elif not quiet:
        line(f"{made.file}: {made.form} of {made.manifest}")


def archive(
    name: Name,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Default: archive/ID.zip beside the manifests, where verify finds it.",
        ),
    ] = None,
    directory: Folder = HERE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """The dialogues behind a release in one file, so that verify can check them again elsewhere."""
    from harness_cli.commands._show import emit_json, line, note
    from harness_cli.records.counting import counted
    from harness_cli.release.archiving import archive_path, write_archive
    from harness_cli.release.channels import read_manifest
    from harness_cli.store.project import Project

    project = Project.find(directory)
    manifest = read_manifest(project.manifests, name)
    path = within(directory, output) or archive_path(project, name)
    made = write_archive(project, manifest, path)
    for run in made.missing:
        note(f"warning: run `{run}` is not here: its rollouts are not in the archive")
    if as_json:
        emit_json(made)
    elif not quiet:
        line(f"{made.file}: the rollouts of {counted(len(made.runs), 'run')}")
