"""Commits made by plumbing alone: no checkout, no index, no hook, no signature, no editor."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import environ
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness_cli.errors import RepoError, Stale
from harness_cli.store.tree import FILE, FOLDER, GITLINK, SYMLINK, Entry, decode_path, encode_path

if TYPE_CHECKING:
    from harness_cli.store.repo import Repo


def write_blob(repo: "Repo", data: bytes) -> str:
    """Bytes into the object store, exactly as they are; returns their id."""
    return repo.run("hash-object", "-w", "--no-filters", "--stdin", data=data).decode().strip()


def write_tree(repo: "Repo", files: Mapping[str, Entry]) -> str:
    """Files into the object store as a tree, by `git mktree`; returns its id."""
    folders: dict[str, dict[str, Entry]] = {}
    rows: list[bytes] = []
    for path, entry in files.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = entry
            continue
        kind = "commit" if entry.mode == GITLINK else "blob"
        oid = entry.data.decode() if kind == "commit" else write_blob(repo, entry.data)
        rows.append(f"{entry.mode} {kind} {oid}\t".encode() + encode_path(head))
    for name, inside in folders.items():
        oid = write_tree(repo, inside)
        rows.append(f"{FOLDER} tree {oid}\t".encode() + encode_path(name))
    made = repo.run("mktree", "-z", "--missing", data=b"".join(row + b"\0" for row in rows))
    return made.decode().strip()


def keep_tree(repo: "Repo", ref: str, files: Mapping[str, Entry], message: str) -> str:
    """Keep files alive under a ref outside the branches; returns their tree id.

    The ref points to a commit without parents whose tree is exactly `files`. Working tree and
    index are not touched, and `git gc` does not take it away.
    """
    if not ref.startswith("refs/harness/"):
        raise RepoError(f"`{ref}` is none of ours", hint="such refs start with `refs/harness/`")
    if repo.ask("check-ref-format", ref) is None:
        raise RepoError(f"`{ref}` is no name git takes for a ref")
    tree = write_tree(repo, files)
    sha = repo.run("commit-tree", tree, data=message.encode(), env=identity(repo)).decode().strip()
    repo.run("update-ref", "--create-reflog", "-m", "harness: snapshot", ref, sha)
    return tree


def commit_files(
    repo: "Repo",
    branch: str,
    parent: str,
    folder: Path,
    changes: Mapping[str, bytes | None],
    message: str,
    *,
    author: str | None = None,
) -> str:
    """One commit on `refs/heads/<branch>` with `changes` (path inside `folder` → bytes or None).

    A path keeps its mode; a new one is a plain file; None deletes. Paths that leave the folder,
    links and submodules are refused. The branch must not exist or must stand at `parent`.
    Raises `Stale` when it stands elsewhere, `RepoError` when it is checked out somewhere.
    """
    parent = repo.resolve(parent)
    ref = f"refs/heads/{branch}"
    if repo.ask("check-ref-format", "--branch", branch) is None:
        raise RepoError(f"`{branch}` is no name git takes for a branch")
    _refuse_checked_out(repo, ref)
    prefix = repo.relative(folder).as_posix()
    with tempfile.TemporaryDirectory(prefix="harness-index-") as made:
        env = {"GIT_INDEX_FILE": str(Path(made, "index"))}
        repo.run("read-tree", parent, env=env)
        known = _modes(repo, env)
        lines = [
            _index_line(repo, _inside(prefix, path), data, known) for path, data in changes.items()
        ]
        repo.run("update-index", "-z", "--index-info", data=b"".join(lines), env=env)
        tree = repo.run("write-tree", env=env).decode().strip()
    made_by = identity(repo, author)
    sha = repo.run("commit-tree", tree, "-p", parent, data=message.encode(), env=made_by)
    _move(repo, ref, sha.decode().strip(), parent)
    return sha.decode().strip()


@contextmanager
def worktree(repo: "Repo", rev: str) -> Iterator[Path]:
    """A throw-away worktree of a revision, detached; removed whatever happens inside."""
    sha = repo.resolve(rev)
    made = Path(tempfile.mkdtemp(prefix="harness-worktree-"))
    place = made / "tree"
    try:
        repo.run("worktree", "add", "--detach", "--force", str(place), sha)
        yield place
    finally:
        repo.ask("worktree", "remove", "--force", "--force", str(place))
        shutil.rmtree(made, ignore_errors=True)
        repo.ask("worktree", "prune")


def identity(repo: "Repo", author: str | None = None) -> dict[str, str]:
    """Who commits: git's own settings, and where there are none a name that says so."""
    env: dict[str, str] = {}
    asked = ("config", "-z", "--get-regexp", r"^(user|author|committer)\.(name|email)$")
    rows = (repo.ask(*asked) or "").split("\0")
    known = {key for key, _, value in (row.partition("\n") for row in rows) if value}
    for part, fallback in (("NAME", "harness"), ("EMAIL", "harness@localhost")):
        for role in ("AUTHOR", "COMMITTER"):
            key = f"GIT_{role}_{part}"
            named = known & {f"{who}.{part.lower()}" for who in ("user", role.lower())}
            if not (environ.get(key) or named):
                env[key] = fallback
    if author:
        name, _, mail = author.partition("<")
        env["GIT_AUTHOR_NAME"] = name.strip() or "harness"
        env["GIT_AUTHOR_EMAIL"] = mail.rstrip("> ") or "harness@localhost"
    return env


def _refuse_checked_out(repo: "Repo", ref: str) -> None:
    listed = repo.run("worktree", "list", "--porcelain").decode("utf-8", "replace")
    if f"branch {ref}" in listed.splitlines():
        raise RepoError(
            f"branch `{ref.removeprefix('refs/heads/')}` is checked out",
            hint="a commit under a working tree would make it look edited; use a new branch",
        )


def _inside(prefix: str, path: str) -> str:
    parts = PurePosixPath(path)
    wrong = parts.is_absolute() or ".." in parts.parts or "\0" in path or not parts.parts
    if wrong or any(part.lower() == ".git" for part in parts.parts):
        raise RepoError(f"`{path}` leaves the folder it belongs to")
    return parts.as_posix() if prefix == "." else f"{prefix}/{parts.as_posix()}"


def _modes(repo: "Repo", env: Mapping[str, str]) -> dict[str, str]:
    rows = repo.run("ls-files", "--stage", "-z", env=env).split(b"\0")[:-1]
    return {decode_path(row.partition(b"\t")[2]): row[:6].decode() for row in rows}


def _index_line(repo: "Repo", path: str, data: bytes | None, known: Mapping[str, str]) -> bytes:
    above = [p.as_posix() for p in PurePosixPath(path).parents]
    for place in (path, *above):
        if known.get(place) in (SYMLINK, GITLINK):
            raise RepoError(f"`{path}` goes through a link or submodule, which is never followed")
    name = encode_path(path)
    if data is None:
        if path not in known:
            raise RepoError(f"no file `{path}` to delete")
        return b"0 " + b"0" * 40 + b"\t" + name + b"\0"
    mode = known.get(path, FILE)
    return f"{mode} {write_blob(repo, data)}\t".encode() + name + b"\0"


def _move(repo: "Repo", ref: str, sha: str, parent: str) -> None:
    at = repo.ask("rev-parse", "--verify", "--quiet", ref)
    if at not in (None, parent):
        raise Stale(
            f"branch `{ref.removeprefix('refs/heads/')}` stands at {str(at)[:12]}",
            hint=f"it must stand at {parent[:12]}, the base of this commit, or not exist",
        )
    zero = "0" * len(sha)
    repo.run("update-ref", "--create-reflog", "-m", "harness: commit", ref, sha, at or zero)
