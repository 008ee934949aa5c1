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


@dataclass(frozen=True, slots=True)
class Made:
    """What `init` made."""

    root: Path
    commit: str
    new_repository: bool
    paths: tuple[str, ...]


def make_project(folder: Path) -> Made:
    """A project in `folder`, committed; nothing that stands there already is overwritten.

    The content is gathered beside the folder first and moved in by renames, so that an
    interrupted `init` leaves no half project that looks whole: `harness.yaml` comes last.
    """
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"`{folder}` is a file")
    wanted = [*FOLDERS, "manifests", *FILES.values()]
    taken = [name for name in wanted if (folder / name).exists() and name != ".gitignore"]
    if taken:
        raise UsageError(
            f"`{folder}` already has {', '.join(f'`{t}`' for t in taken)}",
            hint="name an empty or a new folder",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".harness-init-") as made:
        gather(Path(made))
        folder.mkdir(exist_ok=True)
        if (folder / ".gitignore").exists():
            keep_ignored(folder / ".gitignore", Path(made) / ".gitignore")
        for name in [*FOLDERS, "manifests", ".gitignore", "gates.yaml", "harness.yaml"]:
            (Path(made) / name).replace(folder / name)
    repo, new = repository(folder)
    paths = [folder / name for name in wanted]
    return Made(
        root=folder,
        commit=commit_paths(repo, paths, "harness init: harness, evalsets, gates, settings"),
        new_repository=new,
        paths=tuple(wanted),
    )


def gather(target: Path) -> None:
    """The shipped content under the names it has in a project."""
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


def repository(folder: Path) -> tuple[Repo, bool]:
    """The repository around `folder`, or a new one in it."""
    try:
        return Repo.open(folder), False
    except RepoError:
        return start_repository(folder), True
