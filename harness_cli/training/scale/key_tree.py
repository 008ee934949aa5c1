"""Key trees of other engines' configurations: a misspelt or mistyped key is refused here.

A tree is a nest of names with the types of their leaves, taken once from the engine itself
(`python -m harness_cli.training.scale.key_sources`) and kept as a file, so that an exported job is
checked where the engine is not installed. Facts only: no default, no comment, no code of it.

    {"actor": {"optim": {"lr": "float"}}}        a leaf is a type, `any`, or `open` (free below it)
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from harness_cli.errors import UsageError
from harness_cli.records.reader import parse_json

Tree = dict[str, Any]
OPEN: Final = "open"
"""A mapping whose keys the engine does not know either."""
_ACCEPTS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list,),
}
_ADDED: Final = re.compile(r"^[+~]")


@lru_cache
def key_tree(name: str) -> Tree:
    """The tree kept under `name` (`verl-ppo-dp`, `roll-agentic`)."""
    data = files("harness_cli.training.scale").joinpath("keys", f"{name}.json").read_bytes()
    tree: Tree = parse_json(data, dict, name=f"{name}.json")
    return tree


def check_overrides(overrides: Iterable[str], tree: Tree, *, groups: Iterable[str] = ()) -> None:
    """Raise `UsageError` naming every Hydra override that the tree does not know.

    `groups` are configuration groups that a line may choose (`model_engine=megatron`). Keys added
    with `+` are refused whatever they say: the engine takes them without looking.
    """
    chosen = set(groups)
    faults: list[str] = []
    for line in overrides:
        key, sign, text = line.partition("=")
        if not sign or _ADDED.match(key):
            faults.append(f"`{line}`: only `key=value` is checked by the engine")
        elif key not in chosen:
            faults += _faults(tree, key.split("."), hydra_value(text), key)
    _refuse(faults)


def hydra_value(text: str) -> Any:
    """A value as Hydra reads it: to YAML 1.1 `1e-05` is a text, to Hydra a number."""
    words: dict[str, Any] = {"true": True, "false": False, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if text.startswith("[") and text.endswith("]"):
        return [hydra_value(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_mapping(values: Mapping[str, Any], tree: Tree) -> None:
    """Raise `UsageError` naming every key of a configuration that the tree does not know."""
    _refuse([fault for path, value in _leaves(values) for fault in _faults(tree, path, value, "")])


def _refuse(faults: list[str]) -> None:
    if faults:
        raise UsageError(
            "the engine does not know this configuration:\n  " + "\n  ".join(faults),
            hint="docs/scale_out.md says which version of the engine the key trees are of",
        )


def _leaves(values: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    for key, value in values.items():
        here = (*before, str(key))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield list(here), value


def _faults(tree: Tree, path: list[str], value: Any, name: str) -> list[str]:
    """What is wrong with one leaf."""
    name = name or ".".join(path)
    node: Any = tree
    for place, step in enumerate(path):
        if node in (OPEN, "any"):
            return []
        if not isinstance(node, dict):
            return [f"`{name}`: `{'.'.join(path[:place])}` is a value, nothing is below it"]
        if step not in node:
            near = difflib.get_close_matches(step, node, n=1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            return [f"`{name}`: there is no `{step}`{meant}"]
        node = node[step]
    if isinstance(node, dict) and value not in ({}, None):
        return [f"`{name}` is a section, not a value"]
    return [] if _fits(value, node) else [f"`{name}`: {value!r} is no {node}"]


def _fits(value: Any, wanted: Any) -> bool:
    if value is None or not isinstance(wanted, str) or wanted in ("any", OPEN):
        return True
    kinds = [_ACCEPTS.get(kind) for kind in wanted.split("|")]
    if None in kinds:
        return True
    if isinstance(value, bool):
        return "bool" in wanted.split("|")
    return any(isinstance(value, kind) for kind in kinds if kind is not None)
