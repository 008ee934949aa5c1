"""Commits of named paths of a working tree: other changes, staged or not, stay as they are."""

from collections.abc import Sequence
from pathlib import Path

from harness_cli.store.commit import identity
from harness_cli.store.repo import Repo


def start_repository(folder: Path) -> Repo:
    """A new repository in `folder`, its first branch called `main`."""
    new = Repo(root=folder, git_dir=folder / ".git", common_dir=folder / ".git")
    new.run("init", "--quiet", "--initial-branch=main")
    return Repo.open(folder)


def commit_paths(repo: Repo, paths: Sequence[Path], message: str) -> str:
    """One commit on the branch that is checked out, of these paths alone; returns its id.

    What else is staged stays staged. Where the paths are as HEAD has them, HEAD is returned.
    """
    names = [repo.relative(path).as_posix() for path in paths]
    repo.run("--literal-pathspecs", "add", "--", *names)
    changed = repo.run(
        "--literal-pathspecs", "status", "--porcelain", "--untracked-files=all", "--", *names
    )
    if changed.strip():
        repo.run(
            "--literal-pathspecs",
            "commit",
            "--quiet",
            "--no-verify",
            "--only",
            "--message",
            message,
            "--",
            *names,
            env=identity(repo),
        )
    return repo.resolve("HEAD")
