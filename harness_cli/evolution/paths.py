"""Which paths an edit may name: plain files of the harness, by names that mean one thing only.

Checked part by part, never by joining and comparing prefixes: a joined path passes through `..`,
symbolic links and hard links. On disk the same walk is made with `O_NOFOLLOW`.
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness_cli.errors import UsageError

JUDGING = ("gates.yaml", "harness.yaml", "manifests", "evalsets", "allowed_signers")
"""What decides about a harness; it lies beside one, or among its files where that is the project's
own folder. No edit to be judged may touch it, or leave a file that looks as if it did."""
PROTECTED = ("judges", "failure_classes", "tools/mcp.lock.json", *JUDGING)
"""What a proposal never touches: the judge's own harness, the classes, the record of a lock, and
what decides about its result."""

_REGULAR = ("100644", "100755")
_IGNORED = dict.fromkeys(
    # Code points that some file systems drop from names, so that `.g<ZWJ>it` means `.git`.
    [0x200B, 0x200C, 0x200D, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)


class Refused(UsageError):
    """An edit that may not be made, whatever a reviewer says."""


def folded(path: str) -> str:
    """The path as a forgiving file system would read it: case, width, trailing dots and blanks."""
    plain = unicodedata.normalize("NFKC", path.translate(_IGNORED)).casefold()
    return "/".join(part.rstrip(" .") or part for part in plain.split("/"))


def path_fault(path: str) -> str | None:
    """Why a name cannot be a path inside the harness; None when it can."""
    for bad, word in (("\0", "a NUL byte"), ("\\", "a backslash")):
        if bad in path:
            return f"has {word}"
    if not path or path.startswith("/") or path[1:2] == ":":
        return "is not relative to the harness folder"
    for raw, part in zip(path.split("/"), folded(path).split("/"), strict=False):
        if part in ("", ".", ".."):
            return f"has the part `{raw}`"
        if part == ".git" or part.startswith("git~"):
            return "reaches into `.git`"
    if len(path.encode()) > 1024 or any(len(x.encode()) > 255 for x in path.split("/")):
        return "is too long"
    return None if path.isprintable() else "has unprintable characters"


def is_protected(path: str, *, judge: str | None = None) -> bool:
    """The path lies in what proposals may not touch; with `judge`, anywhere but in that judge."""
    name = folded(path)
    if judge is not None:
        return not name.startswith(folded(f"judges/{judge}/"))
    return any(name == kept or name.startswith(kept + "/") for kept in map(folded, PROTECTED))


def tree_fault(path: str, modes: Mapping[str, str]) -> str | None:
    """Why a path cannot be edited in a tree with these entries (path → git mode)."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        mode = modes.get("/".join(parts[:depth]))
        if mode == "120000":
            return "is, or lies behind, a symbolic link"
        if mode == "160000":
            return "is, or lies inside, another repository"
        if mode is not None and depth < len(parts):
            return f"lies behind the file `{'/'.join(parts[:depth])}`"
    if (mode := modes.get(path)) is not None and mode not in _REGULAR:
        return f"is no regular file (mode {mode})"
    if path not in modes:
        twin = _twin(path, modes)
        if twin is not None:
            return f"differs from `{twin}` only in its spelling"
    return None


def _twin(path: str, modes: Mapping[str, str]) -> str | None:
    """An entry, or a folder of one, that a forgiving file system would take for part of `path`."""
    known = {folded(name): name for entry in modes for name in _prefixes(entry)}
    for name in _prefixes(path):
        twin = known.get(folded(name))
        if twin is not None and twin != name:
            return twin
    return None


def _prefixes(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def disk_fault(root: Path, path: str) -> str | None:
    """Why the file on disk is not plainly the harness's own; None when it is, or is not there."""
    try:
        with opened(root, path):
            return None
    except FileNotFoundError:
        return None
    except OSError as exc:
        return exc.strerror or "cannot be opened"


@contextmanager
def opened(root: Path, path: str) -> Iterator[int]:
    """A descriptor of a regular, singly linked file below `root`, reached through no link."""
    held = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        parts = path.split("/")
        for part in parts[:-1]:
            step = _open_part(part, os.O_RDONLY | os.O_DIRECTORY, held)
            os.close(held)
            held = step
        step = _open_part(parts[-1], os.O_RDONLY | os.O_NONBLOCK, held)
        os.close(held)
        held = step
        state = os.fstat(held)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if state.st_nlink != 1:
            raise OSError(errno.EMLINK, "has a second name (hard link)")
        yield held
    finally:
        os.close(held)


def _open_part(part: str, flags: int, folder: int) -> int:
    try:
        return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(exc.errno, "is, or lies behind, a symbolic link") from exc
        raise
