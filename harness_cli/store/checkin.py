"""Commits of named paths of a working tree: other changes, staged or not, stay as they are."""

from collections.abc import Sequence
from pathlib import Path

from harness_cli.errors import RepoError
from harness_cli.store.commit import identity
from harness_cli.store.repo import Repo


def start_repository(folder: Path) -> Repo:
    """A new repository in `folder`, its first branch called `main`."""
    new = Repo(root=folder, git_dir=folder / ".git", common_dir=folder / ".git")
    new.run("init", "--quiet", "--initial-branch=main")
    return Repo.open(folder)


def commit_paths(repo: Repo, paths: Sequence[Path], message: str) -> str:
    """One commit on the branch that is checked out, of these paths alone; returns its id.

    What else is staged stays staged. Where the paths are as HEAD has them, HEAD is returned. They
    are added whatever ignores them: a pattern of the user's must not leave a part out.
    """
    names = [repo.relative(path).as_posix() for path in paths]
    repo.run("--literal-pathspecs", "add", "--force", "--", *names)
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


def refuse_busy(folder: Path) -> None:
    """Raise `RepoError` where git would refuse a commit of named paths in `folder` now.

    To be asked before something is written that belongs in a commit. A folder in no repository
    is not busy.
    """
    try:
        repo = Repo.open(folder)
    except RepoError:
        return
    for name, doing in (("MERGE_HEAD", "a merge"), ("CHERRY_PICK_HEAD", "a cherry-pick")):
        if (repo.git_dir / name).exists():
            raise RepoError(
                f"{doing} is going on in `{repo.root}`", hint="end it or abort it, then try again"
            )
    lock = repo.git_dir / "index.lock"
    if lock.exists():
        raise RepoError(
            f"another git command is at work in `{repo.root}`, or was killed there",
            hint=f"wait for it; when none runs, remove `{lock}`",
        )
