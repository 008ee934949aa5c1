"""The frontmatter of a Markdown file: found by its fences, read without losing anything.

Faults of readers in the field that this one must not repeat: a `---` inside a value or a rule
in the body taken for a fence, a BOM or a blank line before the first fence, a tab after it, a
missing last fence passed over in silence.
"""

import re
from dataclasses import dataclass
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.records.reader import load_strings, text_of

_FENCE = re.compile(r"---[ \t]*$")
_OPEN_QUOTE = ("quoted scalar", "unexpected document indicator", "unexpected end of stream")
_PLAIN = re.compile(r"^(?P<key>[A-Za-z][\w.-]*):[ \t]+(?P<value>[^'\"|>\[{&*!#%@`].*)$")


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """A Markdown file taken apart."""

    fields: dict[str, Any]
    """Keys and values; every scalar is the text that stands in the file."""
    source: str
    """The YAML between the fences."""
    first_line: int
    """Line of the file on which `source` begins."""
    body: str


def split(data: bytes, path: str) -> Frontmatter:
    """A file's frontmatter and body. Raises `BadFile` with file, line and the fix."""
    text = text_of(data, name=path)
    if "\0" in text:
        raise BadFile(f"{path}:1: NUL bytes in a text file", hint="save it as UTF-8, or add a BOM")
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    if first == len(lines):
        raise BadFile(f"{path}:1: the file is empty")
    if not _FENCE.match(lines[first]):
        raise BadFile(
            f"{path}:{first + 1}: no frontmatter",
            hint="the first line must be `---`, then `name:` and `description:`, then `---`",
        )
    fences = [
        i for i in range(first + 1, len(lines)) if lines[i][:3] == "---" and _FENCE.match(lines[i])
    ]
    if not fences:
        raise BadFile(
            f"{path}:{first + 1}: the frontmatter is never closed",
            hint="put a line `---` after its last key",
        )
    fields, source, last = _read(lines, first, fences, path)
    body = "\n".join(lines[last + 1 :]).strip("\n")
    return Frontmatter(fields, source, first + 2, body + "\n" if body else "")


def _read(
    lines: list[str], first: int, fences: list[int], path: str
) -> tuple[dict[str, Any], str, int]:
    """The block up to the first fence; one that stands in an open quote does not end it."""
    failure: BadFile | None = None
    for last in fences:
        inside = [f"  {line}" if _FENCE.match(line) else line for line in lines[first + 1 : last]]
        source = "\n".join(inside)
        try:
            # Blank lines before it, so that the reader counts lines as the file does.
            fields = load_strings("\n" * (first + 1) + source, name=path)
        except BadFile as exc:
            failure = failure or exc
            if not any(sign in str(exc) for sign in _OPEN_QUOTE):
                break
            continue
        if fields in (None, ""):
            fields = {}
        if not isinstance(fields, dict):
            raise BadFile(
                f"{path}:{first + 2}: the frontmatter is no mapping", hint="write `key: value`"
            )
        return fields, source, last
    raise _explained(failure or BadFile(path), lines, path)


def _explained(error: BadFile, lines: list[str], path: str) -> BadFile:
    """The reader's error with the very line to write where a value holds `: `."""
    place = re.match(re.escape(path) + r":(\d+)", str(error))
    if not place or "mapping values are not allowed" not in str(error):
        return error
    number = int(place[1])
    found = _PLAIN.match(lines[number - 1])
    if not found:
        return error
    quoted = found["value"].rstrip().replace("\\", "\\\\").replace('"', '\\"')
    return BadFile(
        f"{path}:{number}: the value of `{found['key']}` holds `: ` and is not quoted",
        hint=f'write `{found["key"]}: "{quoted}"`',
    )
