"""Change one value of a YAML or JSON text, addressed by a JSON pointer (RFC 6901).

Only the addressed value's characters change: comments, key order, quoting and blank lines stay.
Every change is checked afterwards: the new text, parsed, must be the old value with exactly this
one change, so an alias, an odd indent or a bug here is an error and never another meaning.
"""

import copy
import json
from collections.abc import Sequence
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evolution import json_spans, yaml_spans
from harness_cli.evolution.text_file import Splice
from harness_cli.records.counting import counted
from harness_cli.records.reader import load_yaml

_BROKEN = object()


def tokens_of(pointer: str, *, name: str) -> list[str]:
    """The keys of a pointer. The whole document (`""`) is not addressed this way."""
    if not pointer.startswith("/"):
        raise BadFile(
            f"{name}: `{pointer}` is no JSON pointer", hint="write it as `/constraints/words/value`"
        )
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def change_value(text: str, pointer: str, value: Any, *, remove: bool = False, name: str) -> Splice:
    """The splice that sets (or removes) the value at `pointer`.

    A missing last key is added, `/-` appends to a list; a missing parent is an error.
    """
    return change_at(text, tokens_of(pointer, name=name), value, remove=remove, name=name)


def change_at(
    text: str, tokens: Sequence[str], value: Any, *, remove: bool = False, name: str
) -> Splice:
    """`change_value` for keys that are already split."""
    is_json = name.endswith(".json")
    before = _load(text, is_json, name)
    wanted = changed(before, tokens, value, remove=remove, name=name)
    if is_json:
        splice = json_spans.splice_at(text, tokens, value, remove=remove, name=name)
    else:
        splice = yaml_spans.splice_at(text, tokens, value, remove=remove, name=name)
    try:
        after = _load(text[: splice.start] + splice.new + text[splice.end :], is_json, name)
    except BadFile:
        after = _BROKEN
    if after != wanted:
        raise BadFile(
            f"{name}: `/{'/'.join(tokens)}` cannot be changed alone",
            hint="an alias or an unusual layout is in the way: use a `replace` operation",
        )
    return splice


def changed(value: Any, tokens: Sequence[str], new: Any, *, remove: bool = False, name: str) -> Any:
    """A copy of plain data with the one change made."""
    root = copy.deepcopy(value)
    parent = root
    for depth, key in enumerate(tokens[:-1]):
        parent = _child(parent, key, "/" + "/".join(tokens[: depth + 1]), name)
    where, last = "/" + "/".join(tokens), tokens[-1]
    if isinstance(parent, dict):
        if remove:
            _child(parent, last, where, name)
            del parent[last]
        else:
            parent[last] = new
    elif isinstance(parent, list):
        index = _index(parent, last, where, name, append=not remove)
        if remove:
            del parent[index]
        else:
            parent[index : index + 1] = [new]
    else:
        raise BadFile(f"{name}: nothing can stand at `{where}`", hint="its parent is no mapping")
    return root


def _load(text: str, is_json: bool, name: str) -> Any:
    if not is_json:
        return load_yaml(text, name=name)
    try:
        return json.loads(text)
    except json.JSONDecodeError as exc:
        raise BadFile(f"{name}:{exc.lineno}:{exc.colno}: {exc.msg}") from exc


def _child(parent: Any, key: str, where: str, name: str) -> Any:
    if isinstance(parent, dict) and key in parent:
        return parent[key]
    if isinstance(parent, list):
        return parent[_index(parent, key, where, name, append=False)]
    known = ", ".join(f"`{k}`" for k in list(parent)[:8]) if isinstance(parent, dict) else "nothing"
    raise BadFile(f"{name}: nothing stands at `{where}`", hint=f"there is {known}")


def _index(parent: list[Any], key: str, where: str, name: str, *, append: bool) -> int:
    if append and key == "-":
        return len(parent)
    if key.isascii() and key.isdigit() and int(key) < len(parent) + append:
        return int(key)
    raise BadFile(
        f"{name}: nothing stands at `{where}`",
        hint=f"the list has {counted(len(parent), 'entry', 'entries')}",
    )
