"""`harness init`: a working project from the content that ships with the program."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import RepoError, UsageError
from harness_cli.store.checkin import commit_paths, start_repository
from harness_cli.store.content import content_folder
from harness_cli.store.repo import Repo

FILES = {"harness.yaml": "harness.yaml", "gates.yaml": "gates.yaml", "gitignore": ".gitignore"}
"""Template → its name in a project."""
FOLDERS = ("harness_repo", "evalsets")
WANTED = (*FOLDERS, "manifests", ".gitignore", "gates.yaml", "harness.yaml")
"""What a project consists of; `harness.yaml`, by which one is known, comes last."""


@dataclass(frozen=True, slots=True)
class Made:
    """What `init` made."""

    root: Path
    commit: str
    new_repository: bool
    paths: tuple[str, ...]


def make_project(folder: Path) -> Made:
    """A project in `folder`, committed; nothing that stands there already is overwritten.

    It is gathered beside the folder first, its repository included, and then takes its name by
    one rename: an interrupted `init` leaves no folder at all. Where the folder is there already
    (`harness init .`) its entries are moved in one by one, `harness.yaml` last.
    """
    folder = folder.resolve()
    refuse_taken(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    message = "harness init: harness, evalsets, gates, settings"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".harness-init-") as made:
        place = Path(made, "project")
        gather(place)
        if (folder / ".gitignore").exists():
            keep_ignored(folder / ".gitignore", place / ".gitignore")
        new = repository(folder) is None
        if new:
            commit_paths(start_repository(place), [place / name for name in WANTED], message)
        try:
            if not folder.exists():
                place.rename(folder)
            else:
                for name in [*([".git"] if new else []), *WANTED]:
                    (place / name).replace(folder / name)
        except OSError:
            refuse_taken(folder)  # by another `init`, meanwhile
            raise
    repo = repository(folder) or start_repository(folder)
    return Made(
        root=folder,
        commit=commit_paths(repo, [folder / name for name in WANTED], message),
        new_repository=new,
        paths=WANTED,
    )


def refuse_taken(folder: Path) -> None:
    """Raise `UsageError` where a project, or a part of one, stands already."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"`{folder}` is a file", hint="name an empty or a new folder")
    taken = [name for name in WANTED if (folder / name).exists() and name != ".gitignore"]
    if not taken:
        return
    hint = "name an empty or a new folder"
    if "harness.yaml" in taken:
        hint = f"this is a project already: `harness check -C {folder}`; or {hint}"
    else:
        hint = f"where an interrupted `init` left this, remove it; or {hint}"
    raise UsageError(f"`{folder}` already has {', '.join(f'`{t}`' for t in taken)}", hint=hint)


def gather(target: Path) -> None:
    """The shipped content under the names it has in a project."""
    target.mkdir()
    source = content_folder()
    skip = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in FOLDERS:
        shutil.copytree(source / name, target / name, ignore=skip)
    for template, name in FILES.items():
        shutil.copyfile(source / "templates" / template, target / name)
    (target / "manifests").mkdir()
    (target / "manifests" / "README.md").write_text(
        "Release manifests, their evidence and the channels' switches; `harness promote` writes.\n"
    )


def keep_ignored(existing: Path, ours: Path) -> None:
    """An existing `.gitignore` keeps its lines and gains those of ours it lacks."""
    have = existing.read_text().splitlines()
    more = [line for line in ours.read_text().splitlines() if line and line not in have]
    ours.write_text("\n".join([*have, *more]) + "\n")


def repository(folder: Path) -> Repo | None:
    """The repository around `folder`, which need not exist itself."""
    try:
        return Repo.open(folder)
    except RepoError:
        return None
