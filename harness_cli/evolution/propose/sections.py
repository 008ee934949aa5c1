"""Small additions to Markdown and YAML files, as exact operations a reviewer can read."""

import re
from collections.abc import Sequence

from harness_cli.evolution.frontmatter import find_frontmatter
from harness_cli.evolution.unified import lines_of
from harness_cli.records.diagnosis import Op
from harness_cli.records.reader import load_yaml, yaml_tree

LONGEST = 1_024
"""Characters a description may have (Agent Skills)."""


def add_bullet(text: str, path: str, title: str, bullet: str) -> Op | None:
    """Add a bullet at the end of the section `## title`, which is made when it is not there.

    None when the section says it already.
    """
    lines = lines_of(text)
    head = next(
        (i for i, x in enumerate(lines) if re.fullmatch(rf"##\s+{re.escape(title)}\s*", x, re.I)),
        None,
    )
    if head is None:
        return _new_section(lines, path, f"## {title}\n\n- {bullet}\n")
    end = next((i for i in range(head + 1, len(lines)) if lines[i].startswith("#")), len(lines))
    if f"- {bullet}".casefold() in (line.strip().casefold() for line in lines[head:end]):
        return None
    last = max(i for i in range(head, end) if lines[i].strip())
    gap = "\n" if last == head else ""
    return insert_after(lines, path, last, f"{gap}- {bullet}\n")


def insert_after(lines: Sequence[str], path: str, at: int, new: str) -> Op:
    """A `replace` that puts text behind line `at`, found by as many lines before it as it takes."""
    text = "".join(lines)
    for start in range(at, -1, -1):
        search = "".join(lines[start : at + 1])
        if text.count(search) == 1:
            break
    tail = "" if search.endswith("\n") else "\n"
    return Op(op="replace", path=path, search=search, text=search + tail + new)


def _new_section(lines: Sequence[str], path: str, new: str) -> Op:
    """A section before the last one: its head line is an anchor that bullets do not use."""
    text = "".join(lines)
    heads = [x for x in lines if x.startswith("## ") and x.endswith("\n") and text.count(x) == 1]
    if heads:
        return Op(op="replace", path=path, search=heads[-1], text=f"{new}\n{heads[-1]}")
    last = max((i for i, x in enumerate(lines) if x.strip()), default=len(lines) - 1)
    return insert_after(lines, path, last, f"\n{new}")


def extend_skill(text: str, path: str, sentence: str) -> Op | None:
    """Add a sentence to the description in a skill's frontmatter."""
    span = find_frontmatter(text, name=path)
    old = load_yaml(text[span.start : span.end], name=path).get("description")
    return _extended(text, path, old, sentence, span.start, span.end, front=True)


def extend_yaml(text: str, path: str, sentence: str) -> Op | None:
    """Add a sentence to the `description` of a tool or hook file."""
    old = load_yaml(text, name=path).get("description")
    return _extended(text, path, old, sentence, 0, len(text), front=False)


def _extended(
    text: str, path: str, old: object, sentence: str, start: int, end: int, *, front: bool
) -> Op | None:
    if not isinstance(old, str) or sentence in old or len(old) + len(sentence) + 1 > LONGEST:
        return None
    line = _folded_end(text[start:end], path)
    if line is not None:
        whole, indent = line
        if text.count(whole) == 1:
            return Op(op="replace", path=path, search=whole, text=f"{whole}\n{indent}{sentence}")
    value = f"{old.rstrip()} {sentence}"
    if front:
        return Op(op="set-frontmatter", path=path, key="description", value=value)
    return Op(op="json-pointer", path=path, pointer="/description", value=value)


def _folded_end(source: str, path: str) -> tuple[str, str] | None:
    """(last line, indent) of a description in folded form (`>-`): one more line extends it."""
    tree = yaml_tree(source, name=path)
    for key, node in tree.value:
        if key.value == "description" and getattr(node, "style", None) == ">":
            rows = source[node.start_mark.index : node.end_mark.index].rstrip().split("\n")
            if len(rows) > 1:
                return rows[-1], rows[-1][: len(rows[-1]) - len(rows[-1].lstrip())]
    return None
