"""SKILL.md and prompt blocks as sections and list entries, taken apart and put together again."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

WIDTH = 100
_FRONT = re.compile(r"\A(---\n.*?\n---\n)(.*)\Z", re.DOTALL)
_ENTRY = re.compile(r"^(?:[-*] |\d{1,2}\. )")


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and the lines below it; the first part of a text has no heading."""

    heading: str
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        """The heading without its marks."""
        return self.heading.lstrip("# ").strip()

    def text(self) -> str:
        """The part as it stands in the file."""
        head = [self.heading] if self.heading else []
        return "\n".join([*head, *self.lines])


@lru_cache(maxsize=512)
def fronted(text: str) -> tuple[str, str]:
    """A file's frontmatter, fences included, and its body; no frontmatter: an empty one."""
    found = _FRONT.match(text)
    return (found[1], found[2]) if found else ("", text)


@lru_cache(maxsize=1024)
def parts(body: str, marks: str) -> tuple[Part, ...]:
    """The parts of a body under headings of exactly these marks (`##`)."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in body.split("\n"):
        if line.startswith(f"{marks} "):
            found.append((line, []))
        else:
            found[-1][1].append(line)
    return tuple(Part(head, tuple(lines)) for head, lines in found)


def joined(made: Iterable[Part]) -> str:
    """Parts as one body again, each followed by an empty line."""
    texts = [part.text().strip("\n") for part in made]
    return "\n\n".join(t for t in texts if t) + "\n"


@lru_cache(maxsize=2048)
def entries(part: Part) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What stands before a part's one list, the entries with their own lines, what stands behind.

    No list, or one with template statements in it: everything stands before it.
    """
    lines = part.lines
    starts = [i for i, line in enumerate(lines) if _ENTRY.match(line)]
    if not starts:
        return lines, (), ()
    end = len(lines)
    while end > starts[0] and not lines[end - 1].strip():
        end -= 1
    stop = next(
        (i for i in range(starts[0], end) if not (lines[i][:1] == " " or _ENTRY.match(lines[i]))),
        end,
    )
    bounds = [i for i in starts if i < stop] + [stop]
    found = tuple("\n".join(lines[a:b]) for a, b in pairwise(bounds))
    if any("{%" in entry for entry in found):
        return lines, (), ()
    return lines[: starts[0]], found, lines[stop:]


def with_entries(
    part: Part, before: Iterable[str], listed: Iterable[str], behind: Iterable[str]
) -> Part:
    """The part with another list."""
    lines = [*before, *(line for entry in listed for line in entry.split("\n")), *behind]
    return replace(part, lines=tuple(lines))


@lru_cache(maxsize=16384)
def mark_of(entry: str) -> str:
    """The bullet or number that an entry starts with, its blank included."""
    found = _ENTRY.match(entry)
    return found[0] if found else ""


def folded(text: str, mark: str = "", *, width: int = WIDTH) -> str:
    """One line of words as lines of at most `width`, those behind the first indented."""
    lines: list[list[str]] = [[]]
    size = len(mark)
    for word in text.split():
        if lines[-1] and size + len(word) + 1 > width:
            lines.append([])
            size = len(mark)
        size += len(word) + bool(lines[-1])
        lines[-1].append(word)
    return mark + f"\n{' ' * len(mark)}".join(" ".join(words) for words in lines)


def field(front: str, key: str) -> str:
    """The lines of one top-level key of a frontmatter, with the key; empty where it is missing."""
    found = _field(key).search(front)
    return found[0] if found else ""


def with_field(front: str, key: str, value: str) -> str:
    """The frontmatter with another text for one key, written as a folded block when it is long."""
    short = len(value) < 60 and not re.search(r"[:#\"'{}\[\]]", value)
    made = f"{key}: {value}\n" if short else f"{key}: >-\n{_block(value)}\n"
    return _field(key).sub(lambda _: made, front, count=1)


def _block(value: str) -> str:
    return "\n".join(f"  {line}" for line in folded(value, width=WIDTH - 2).split("\n"))


@lru_cache(maxsize=64)
def _field(key: str) -> re.Pattern[str]:
    return re.compile(rf"^{re.escape(key)}:.*\n(?:[ \t]+.*\n)*", re.MULTILINE)
