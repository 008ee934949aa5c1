"""Where the values of a YAML text stand, and the splice that changes one of them."""

import json
from collections.abc import Sequence
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evolution.text_file import Splice
from harness_cli.records.reader import dump_yaml, load_yaml, yaml_tree

Node = Any
"""A node of `reader.yaml_tree`: `id` (mapping, sequence, scalar), `value`, marks, `flow_style`."""


def splice_at(text: str, tokens: Sequence[str], value: Any, *, remove: bool, name: str) -> Splice:
    """The splice for a valid change in valid YAML (`pointer.change_at` checked both)."""
    parent = yaml_tree(text, name=name)
    for key in tokens[:-1]:
        parent = _entry(parent, key)[1]
    entry = _entry(parent, tokens[-1], or_none=True)
    if remove:
        return _removal(text, parent, _entry(parent, tokens[-1]), name)
    if entry is not None:
        return _replacement(text, parent, entry, value)
    return _addition(text, parent, tokens[-1], value)


def scalar(value: Any, *, flow: bool = False) -> str:
    """A scalar on one line: plain where that reads back as the same value, else quoted."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    plain = (
        value == value.strip() and value.isprintable() and not (flow and set(",[]{}") & set(value))
    )
    if plain and value:
        try:
            if load_yaml(f"k: {value}\n", name="value") == {"k": value}:
                return value
        except BadFile:
            pass
    return json.dumps(value, ensure_ascii=not value.isprintable())


def block(value: Any, indent: int) -> str:
    """A list or mapping in block form; every line but the first is indented by `indent`."""
    lines = dump_yaml(value).rstrip("\n").split("\n")
    return "\n".join([lines[0], *(" " * indent + x if x else x for x in lines[1:])])


def _inline(value: Any) -> bool:
    return not isinstance(value, dict | list) or not value


def _entry(parent: Node, key: str, *, or_none: bool = False) -> Any:
    """(key node or None, value node) of one member."""
    if parent.id == "mapping":
        for key_node, value_node in parent.value:
            if key_node.value == key:
                return key_node, value_node
    elif key.isdigit() and int(key) < len(parent.value):
        return None, parent.value[int(key)]
    if or_none:
        return None
    raise BadFile(f"no entry `{key}`")


def _replacement(text: str, parent: Node, entry: tuple[Node, Node], value: Any) -> Splice:
    key, node = entry
    start, end = node.start_mark.index, _end(text, node)
    if parent.flow_style:
        return Splice(start, end, _flow(value) if end > start else " " + _flow(value))
    if node.id == "scalar" and _inline(value) and node.style not in ("|", ">"):
        written = scalar(value)
        return Splice(start, end, written if end > start else " " + written)
    if key is None:
        column = node.start_mark.column
        return Splice(start, end, scalar(value) if _inline(value) else block(value, column))
    colon = text.index(":", key.end_mark.index) + 1
    return Splice(colon, max(end, colon), _after_colon(value, key.start_mark.column))


def _after_colon(value: Any, column: int) -> str:
    if _inline(value):
        return " " + scalar(value)
    inner = column + 2
    return "\n" + " " * inner + block(value, inner)


def _addition(text: str, parent: Node, key: str, value: Any) -> Splice:
    named = parent.id == "mapping"
    if parent.flow_style:
        label = f"{scalar(key, flow=True)}: " if named else ""
        at = _end(text, _last(parent)) if parent.value else parent.start_mark.index + 1
        return Splice(at, at, (", " if parent.value else "") + label + _flow(value))
    first = parent.value[0][0] if named else parent.value[0]
    column = first.start_mark.column if named else parent.start_mark.column
    at = _line_end(text, _end(text, _last(parent)))
    pad = " " * column
    if named:
        return Splice(at, at, f"\n{pad}{scalar(key)}:{_after_colon(value, column)}")
    written = scalar(value) if _inline(value) else block(value, column + 2)
    return Splice(at, at, f"\n{pad}- {written}")


def _removal(text: str, parent: Node, entry: tuple[Node, Node], name: str) -> Splice:
    key, node = entry
    begin = (key or node).start_mark.index
    end = _end(text, node)
    if parent.flow_style:
        comma = text.find(",", end)
        follows = comma >= 0 and not text[end:comma].strip()
        if follows:
            return Splice(begin, comma + 1 + (text[comma + 1 : comma + 2] == " "), "")
        before = text.rfind(",", parent.start_mark.index, begin)
        return Splice(before if before >= 0 else begin, end, "")
    line = text.rfind("\n", 0, begin) + 1
    if text[line:begin].strip(" " if key is not None else " -"):
        raise BadFile(
            f"{name}:{(key or node).start_mark.line + 1}: this entry cannot be removed alone",
            hint="it shares its line with its parent: use a `replace` operation",
        )
    return Splice(line, min(_line_end(text, end) + 1, len(text)), "")


def _flow(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return scalar(value, flow=True)


def _last(parent: Node) -> Node:
    return parent.value[-1][1] if parent.id == "mapping" else parent.value[-1]


def _end(text: str, node: Node) -> int:
    """Where a node's own characters end: PyYAML's mark of a block runs on to the next token."""
    if node.id != "scalar" and not node.flow_style and node.value:
        return _end(text, _last(node))
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    if node.id == "scalar" and node.style in ("|", ">"):
        return start + len(text[start:end].rstrip())
    return end


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return found if found >= 0 else len(text)
