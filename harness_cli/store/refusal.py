"""What git refused, in words that say what to do."""

from pathlib import Path

from harness_cli.errors import RepoError


def submodule(where: str) -> RepoError:
    """A folder that is a submodule without its files."""
    return RepoError(
        f"`{where}` is a submodule that is not checked out",
        hint=f"`git submodule update --init {where}`",
    )


def safe(words: str) -> str | None:
    """The hint for a repository of another user."""
    if "dubious ownership" in words:
        return "the folder belongs to another user: `git config --global --add safe.directory …`"
    return None


def no_repository(path: Path, err: bytes) -> RepoError:
    """Why there is no repository around `path`."""
    words = err.decode("utf-8", "replace").strip()
    if "must be run in a work tree" in words:
        return RepoError(f"`{path}` lies in a repository without a working tree")
    if "dubious ownership" in words:
        return RepoError(f"git does not trust `{path}`", hint=safe(words))
    return RepoError(
        f"`{path}` is in no git repository",
        hint="the harness is versioned: `git init` and commit it first",
    )
