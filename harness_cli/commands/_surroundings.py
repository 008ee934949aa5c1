"""What the surroundings of the program may lack: open streams, an encoding, room, rights."""

import errno
import io
import os
import sys

from harness_cli.errors import HarnessError

_HINTS = {
    errno.ENOSPC: "make room, then try again; what was written before is whole",
    errno.EDQUOT: "make room, then try again; what was written before is whole",
    errno.EFBIG: "a limit on the size of files stands in the way: raise it with `ulimit -f`",
    errno.EROFS: "the file system is mounted read-only: work on a copy, or mount it for writing",
    errno.EACCES: "give yourself the right to it, or work on a copy",
    errno.EPERM: "give yourself the right to it, or work on a copy",
    errno.ELOOP: "a symbolic link points at itself: remove it",
    errno.ENAMETOOLONG: "choose a shorter name or a folder nearer to the root",
    errno.ENOTDIR: "something on the way to it is a file where a folder is meant",
    errno.EISDIR: "a folder stands where a file is meant: move it away",
    errno.ENOTEMPTY: "something stands where a new folder is meant: move it away",
    errno.EEXIST: "something stands where a new file or folder is meant: move it away",
    errno.ENOENT: "it was there a moment ago, or its folder is missing",
    errno.EMFILE: "raise the number of open files with `ulimit -n`, or lower --concurrency",
    errno.ENOMEM: "give the program more memory, or lower --concurrency",
    errno.EIO: "the disk is failing: copy what can be read",
}
"""Failures of the system that a user can do something about, and what."""


def stand_in_streams() -> None:
    """Open what was closed (`<&-`, `>&-`), and let every text through.

    A closed descriptor would be given to the next file that is opened, which is then written to
    by whoever writes to stdout. Output is UTF-8 under any locale, as JSON is; a byte that is no
    text (in a file's name) is escaped on stdout and left as it is on stderr.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream, errors in (
        (sys.stdin, "replace"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "surrogateescape"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def reader_left() -> bool:
    """Whether click met a pipe that its reader had closed (`harness … | head`).

    It then wraps stdout and exits with 1; that a reader has seen enough is no error of ours.
    """
    return type(sys.stdout).__name__.endswith("PacifyFlushWrapper")


def system_failure(exc: OSError) -> HarnessError | None:
    """What the system refused, in words; None for what is no matter of a user's system."""
    hint = _HINTS.get(exc.errno or 0)
    if hint is None:
        return None
    words = exc.strerror or str(exc)
    what = f"`{os.fsdecode(exc.filename)}`: {words}" if exc.filename else words
    return HarnessError(what, hint=hint)
