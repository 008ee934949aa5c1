"""Unified diffs: made for people to read, applied strictly.

A hunk applies at the line it names, or at the only other place where its context and removed lines
stand. Twice or nowhere is an error: nothing is placed by guess (guesses are `fuzzy`'s, for review).
"""

import difflib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness_cli.errors import BadFile
from harness_cli.records.counting import counted

_HEAD = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines to find and lines to put there, with their line ends."""

    line: int
    """Where the old lines begin, counted from 1."""
    old: tuple[str, ...]
    new: tuple[str, ...]


def lines_of(text: str) -> list[str]:
    """Lines with their ends, broken at `\\n` alone: a U+2028 in a rule is no line end."""
    return list(io.StringIO(text, newline="\n"))


def parse_hunks(diff: str, *, name: str) -> tuple[Hunk, ...]:
    """The hunks of a diff of one file; its `---`/`+++` lines are not needed and not believed."""
    hunks: list[Hunk] = []
    rows = [row.rstrip("\n") for row in lines_of(diff.replace("\r\n", "\n"))]
    at = 0
    while at < len(rows):
        head = _HEAD.match(rows[at])
        if head is None:
            if hunks and rows[at].strip():
                raise BadFile(f"{name}: line {at + 1} of the diff is no hunk: `{rows[at][:60]}`")
            at += 1
            continue
        end = at + 1
        while end < len(rows) and rows[end][:1] in (" ", "+", "-", "\\", ""):
            end += 1
        hunks.append(_hunk(int(head[1]), rows[at + 1 : end]))
        at = end
    if not hunks:
        raise BadFile(f"{name}: the diff has no `@@` hunk", hint="give a unified diff")
    return tuple(hunks)


def _hunk(line: int, rows: Sequence[str]) -> Hunk:
    old: list[str] = []
    new: list[str] = []
    last: list[list[str]] = []
    for row in rows:
        mark, text = row[:1], row[1:] + "\n"
        if row == _NO_NEWLINE:
            for side in last:
                side[-1] = side[-1][:-1]
            continue
        last = [side for side, marks in ((old, " -"), (new, " +")) if (mark or " ") in marks]
        for side in last:
            side.append(text)
    return Hunk(line, tuple(old), tuple(new))


def apply_diff(text: str, diff: str, *, name: str) -> str:
    """`text` after every hunk of `diff`. Raises `BadFile` naming the hunk that does not fit."""
    lines = lines_of(text)
    shift = 0
    for number, hunk in enumerate(parse_hunks(diff, name=name), 1):
        at = _place(lines, hunk, hunk.line - 1 + shift, f"{name}: hunk {number}")
        lines[at : at + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old)
    return "".join(lines)


def _place(lines: Sequence[str], hunk: Hunk, wanted: int, where: str) -> int:
    size = len(hunk.old)
    if size == 0:  # a pure insertion stands after the line it names, 0 is the file's begin
        return min(max(wanted + 1, 0), len(lines))
    fits = [i for i in range(len(lines) - size + 1) if tuple(lines[i : i + size]) == hunk.old]
    if wanted in fits:
        return wanted
    if len(fits) == 1:
        return fits[0]
    found = f"stands at {counted(len(fits), 'place')}" if fits else "is nowhere in the file"
    raise BadFile(
        f"{where}: its text {found} and not at line {wanted + 1}",
        hint="make the proposal anew from the file as it is now",
    )


def make_diff(before: str | None, after: str | None, path: str, *, context: int = 3) -> str:
    """A readable diff of one file; None is a file that is not there."""
    lines = difflib.unified_diff(
        lines_of(before or ""),
        lines_of(after or ""),
        fromfile=f"a/{path}" if before is not None else "/dev/null",
        tofile=f"b/{path}" if after is not None else "/dev/null",
        n=context,
    )
    return "".join(x if x.endswith("\n") else f"{x}\n{_NO_NEWLINE}\n" for x in lines)


def split_diff(before: str, after: str, *, context: int = 3) -> tuple[str, ...]:
    """One diff per group of changed lines, the last group first.

    In that order the line numbers of the groups still to come hold whatever was decided about the
    ones before. Context never reaches into a neighbouring group.
    """
    old, new = lines_of(before), lines_of(after)
    codes = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    parts = []
    for i, (tag, a0, a1, b0, b1) in enumerate(codes):
        if tag == "equal":
            continue
        up = min(context, codes[i - 1][2] - codes[i - 1][1]) if i else 0
        down = min(context, codes[i + 1][2] - codes[i + 1][1]) if i + 1 < len(codes) else 0
        body = [" " + x for x in old[a0 - up : a0]]
        body += ["-" + x for x in old[a0:a1]] + ["+" + x for x in new[b0:b1]]
        body += [" " + x for x in old[a1 : a1 + down]]
        size, grown = up + a1 - a0 + down, up + b1 - b0 + down
        line = a0 - up + (1 if size else 0)
        head = f"@@ -{line},{size} +{line},{grown} @@\n"
        ends = (x if x.endswith("\n") else f"{x}\n{_NO_NEWLINE}\n" for x in body)
        parts.append(head + "".join(ends))
    return tuple(reversed(parts))
