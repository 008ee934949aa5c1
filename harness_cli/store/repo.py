"""A git repository through plumbing commands: read any revision, never disturb a working tree.

The only module that imports GitPython, and of it only the command runner `git.Git`. Git's own
variables (`GIT_DIR`, `GIT_INDEX_FILE` … set inside a git hook) never reach the commands, hooks
never run, and paths travel `-z`-terminated, so that any file name survives.
"""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from harness_cli.errors import RepoError
from harness_cli.store import commit, refusal
from harness_cli.store.blobs import batch
from harness_cli.store.git_settings import LEAKING, SETTINGS
from harness_cli.store.tree import GITLINK, Entry, decode_path, tree_id

try:
    from git import Git
except ImportError as exc:  # GitPython refuses to load where it finds no git
    told = str(exc).partition("\n")[0]
    raise RepoError(f"git cannot be used: {told}", hint="install git 2.34 or newer") from exc

__all__ = ["Entry", "LogEntry", "Repo"]


log = logging.getLogger("harness.store")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of a history."""

    sha: str
    author: str
    date: str
    """ISO 8601, the author's date."""
    subject: str


@dataclass(frozen=True, slots=True)
class Repo:
    """One repository (or worktree, or submodule) and the folder it is checked out in."""

    root: Path
    """Top of the working tree."""
    git_dir: Path
    """Its own git folder: that of the worktree in a linked worktree."""
    common_dir: Path
    """Where objects and refs lie; differs from `git_dir` in a linked worktree."""
    superproject: Path | None = None
    """The working tree this one is a submodule of."""
    shallow: bool = False
    object_format: str = "sha1"

    @classmethod
    def open(cls, path: Path) -> "Repo":
        """The innermost repository around `path`, which need not exist itself."""
        start = path.resolve()
        while not start.is_dir():
            start = start.parent
        wanted = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        asked = (*wanted, "--is-shallow-repository", "--show-object-format")
        last = "--show-superproject-working-tree"  # says nothing where there is none
        rc, out, err = _run(start, ["rev-parse", *asked, last])
        if rc != 0:
            raise refusal.no_repository(path, err)
        answers, parent = os.fsdecode(out).removesuffix("\n").split("\n"), ""
        if len(answers) != len(asked):
            # A submodule, or a folder's name holds a line end: one question at a time.
            outs = [_run(start, ["rev-parse", one])[1] for one in (*asked, last)]
            *answers, parent = [os.fsdecode(one).removesuffix("\n") for one in outs]
        root, git_dir, common, shallow, made = answers
        return cls(
            root=Path(root),
            git_dir=Path(git_dir),
            common_dir=(start / common).resolve(),
            superproject=Path(parent) if parent.strip() else None,
            shallow=shallow == "true",
            object_format=made,
        )

    @property
    def kind(self) -> str:
        """`plain`, `worktree` or `submodule`: in the last two `.git` is a file."""
        if self.superproject is not None:
            return "submodule"
        return "plain" if self.git_dir == self.common_dir else "worktree"

    def run(self, *args: str, data: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Output of one git command at the root; raises `RepoError` with git's own words."""
        rc, out, err = _run(self.root, args, data, env)
        if rc != 0:
            words = err.decode("utf-8", "replace").strip().splitlines()
            last = words[-1] if words else f"exit {rc}"
            raise RepoError(
                f"git {args[0]} failed in `{self.root}`: {last}", hint=refusal.safe(last)
            )
        return out

    def ask(self, *args: str, env: Mapping[str, str] | None = None) -> str | None:
        """One line of output, or None when git says no."""
        rc, out, _ = _run(self.root, args, b"", env)
        return os.fsdecode(out).rstrip("\n") if rc == 0 else None

    def relative(self, folder: Path) -> Path:
        """`folder` (absolute, or relative to the root) as a path inside this repository."""
        where = folder if not folder.is_absolute() else folder.resolve()
        try:
            return where.relative_to(self.root.resolve()) if where.is_absolute() else where
        except ValueError:
            raise RepoError(f"`{folder}` lies outside the repository `{self.root}`") from None

    def resolve(self, rev: str) -> str:
        """The commit a revision names."""
        return self._object(rev, "commit")

    def tree_of(self, rev: str) -> str:
        """The tree a revision (commit, tag or tree) names."""
        return self._object(rev, "tree")

    def head(self) -> str | None:
        """The commit that is checked out; None before the first one."""
        return self.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    def _object(self, rev: str, kind: str) -> str:
        found = None
        if rev and not rev.startswith("-") and "\0" not in rev:
            found = self.ask("rev-parse", "--verify", "--quiet", f"{rev}^{{{kind}}}")
        if found is None:
            hint = "`git log --oneline` lists commits"
            if self.shallow:
                hint = "this clone is shallow: `git fetch --unshallow` brings the rest"
            raise RepoError(f"no revision `{rev}` in `{self.root}`", hint=hint)
        return found

    def files(self, rev: str, folder: Path) -> dict[str, Entry]:
        """Every file under `folder` at a revision, by its path inside the folder; no checkout.

        Links and submodules come as entries with their own modes and are never followed.
        """
        where = self.relative(folder).as_posix()
        tree = self.tree_of(rev)
        if where != ".":
            row = self.run("--literal-pathspecs", "ls-tree", "-z", tree, "--", where)
            if not row:
                raise RepoError(f"no folder `{where}` at `{rev}`")
            mode, kind, tree = row.split(b"\t")[0].decode().split(" ")
            if mode == GITLINK:
                raise refusal.submodule(where)
            if kind != "tree":
                raise RepoError(f"`{where}` is no folder at `{rev}`")
        rows = self.run("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]
        return self._read([_row(row, oid=2) for row in rows])

    def working_files(self, folder: Path) -> dict[str, Entry]:
        """Tracked and untracked files under `folder`, as a commit made now would keep them.

        Ignored files are left out, filters and line ends are applied as `git add` does: in a
        throw-away index and object folder, so neither the index nor the objects are touched.
        """
        where = self.relative(folder).as_posix()
        with self.scratch(objects=True) as env:
            if where != "." and not (self.root / where).is_dir():
                raise RepoError(f"no folder `{self.root / where}`")
            self.run("--literal-pathspecs", "add", "--all", "--sparse", "--", where, env=env)
            listed = self.run(
                "--literal-pathspecs", "ls-files", "--stage", "-z", "--", where, env=env
            )
            rows = [_row(row, oid=1) for row in listed.split(b"\0")[:-1]]
            if [path for *_, path in rows] == [where]:
                raise refusal.submodule(where)
            prefix = "" if where == "." else f"{where}/"
            return self._read(
                [(mode, oid, path.removeprefix(prefix)) for mode, oid, path in rows], env
            )

    def ignored_files(self, folder: Path) -> list[str]:
        """Files under `folder` that git leaves out, as paths in it."""
        where = self.relative(folder).as_posix()
        asked = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", where)
        listed = os.fsdecode(self.run("--literal-pathspecs", *asked)).split("\0")[:-1]
        return [path.removeprefix(f"{where}/") for path in listed]

    @contextmanager
    def scratch(self, *, objects: bool = False) -> Iterator[dict[str, str]]:
        """Variables of a throw-away copy of the index, and of a throw-away object folder."""
        with tempfile.TemporaryDirectory(prefix="harness-index-") as made:
            env = {"GIT_INDEX_FILE": str(Path(made, "index"))}
            if (self.git_dir / "index").is_file():
                # With its times: git tells a racily clean entry by the age of the index.
                shutil.copy2(self.git_dir / "index", env["GIT_INDEX_FILE"])
            if objects:
                env["GIT_OBJECT_DIRECTORY"] = str(Path(made, "objects"))
                Path(made, "objects").mkdir()
                real = str(self.common_dir / "objects")
                quoted = '"' + real.replace("\\", "\\\\").replace('"', '\\"') + '"'
                env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quoted
            yield env

    def _read(
        self, rows: Sequence[tuple[str, str, str]], env: Mapping[str, str] | None = None
    ) -> dict[str, Entry]:
        """Rows of (mode, object id, path) with their bytes, in one `cat-file`.

        Raises `RepoError` for a missing or damaged object.
        """
        blobs = [oid for mode, oid, _ in rows if mode != GITLINK]
        asked = "".join(f"{oid}\n" for oid in blobs).encode()
        out = self.run("cat-file", "--batch", data=asked, env=env) if blobs else b""
        filled = iter(batch(out, blobs, self.object_format))
        return {
            path: Entry(mode, oid.encode() if mode == GITLINK else next(filled))
            for mode, oid, path in rows
        }

    def tree_id(self, files: Mapping[str, Entry]) -> str:
        """The id `git mktree` gives these files, in this repository's object format."""
        return tree_id(files, object_format=self.object_format)

    def dirty(self, folder: Path) -> bool:
        """Whether files under `folder` differ from HEAD, staged, unstaged or untracked."""
        where = self.relative(folder).as_posix()
        asked = ("--literal-pathspecs", "status", "--porcelain", "-z", "-uall", "--", where)
        return bool(self.run(*asked, env={"GIT_OPTIONAL_LOCKS": "0"}))

    def log(self, rev: str, folder: Path, n: int) -> list[LogEntry]:
        """The newest `n` commits that touched `folder`, newest first."""
        where = self.relative(folder).as_posix()
        form = "--format=%H%x00%an <%ae>%x00%aI%x00%s%x00"
        asked = ("log", "-z", f"-n{n}", form, self.resolve(rev), "--", where)
        fields = os.fsdecode(self.run("--literal-pathspecs", *asked)).split("\0")
        rows = [fields[i : i + 4] for i in range(0, len(fields) - 4, 5)]
        return [LogEntry(*(part.lstrip("\n") for part in row)) for row in rows]

    def refs(self, prefix: str) -> dict[str, str]:
        """Refs under a prefix (`refs/harness/runs/`) and what they point to."""
        out = self.run("for-each-ref", "--format=%(refname) %(objectname)", prefix)
        rows = (line.rsplit(" ", 1) for line in os.fsdecode(out).splitlines())
        return {row[0]: row[1] for row in rows}

    def delete_ref(self, ref: str) -> None:
        """Remove a ref; one that is not there is no error."""
        self.run("update-ref", "-d", ref)

    def keep_tree(self, ref: str, files: Mapping[str, Entry], message: str) -> str:
        """See `store.commit.keep_tree`."""
        return commit.keep_tree(self, ref, files, message)

    def commit_files(
        self,
        branch: str,
        parent: str,
        folder: Path,
        changes: Mapping[str, bytes | None],
        message: str,
        *,
        author: str | None = None,
    ) -> str:
        """See `store.commit.commit_files`."""
        return commit.commit_files(self, branch, parent, folder, changes, message, author=author)

    def worktree(self, rev: str) -> AbstractContextManager[Path]:
        """See `store.commit.worktree`."""
        return commit.worktree(self, rev)


def _run(
    where: Path, args: Sequence[str], data: bytes = b"", env: Mapping[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """One git command: exit status, output, errors."""
    runner: Any = Git(str(where))
    leaking = [word for name in LEAKING if name in os.environ for word in ("-u", name)]
    settings = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
    program = [*(["env", *leaking] if leaking else []), Git.GIT_PYTHON_GIT_EXECUTABLE or "git"]
    if leaking and env:  # `env -u` stands before what we set: give ours to it as well
        program = ["env", *leaking, *(f"{k}={v}" for k, v in env.items()), program[-1]]
    process = runner.execute(
        [*program, *settings, *args],
        as_process=True,
        istream=PIPE,
        env={"GIT_TERMINAL_PROMPT": "0", **(env or {})},
    )
    out, err = process.communicate(data)
    log.debug("git", extra={"folder": where, "command": args, "status": process.returncode})
    return process.returncode, out, err


def _row(row: bytes, *, oid: int) -> tuple[str, str, str]:
    """(mode, object id, path) of an `ls-tree` row (id third) or an `ls-files` row (second)."""
    head, _, path = row.partition(b"\t")
    words = head.decode().split(" ")
    return words[0], words[oid], decode_path(path)
