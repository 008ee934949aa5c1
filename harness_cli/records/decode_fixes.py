"""What to do about a value that a record refuses: the words it knows, the type it wants."""

import re
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

from harness_cli.errors import nearest_and_known

STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>\d+|\.\.\.)\]")
"""One step of msgspec's path: a key, an index, or `...` for any key of a map."""
UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")
_ENUM = re.compile(r"Invalid enum value (?P<value>.+?)(?: - at|$)")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`")
_RANGE = re.compile(r"Expected `(?:int|float)[^`]*` (?:[<>]=?|that)")
_WANTED = {
    "str": "write text, in quotes where YAML would read something else",
    "int": "write a whole number without quotes",
    "float": "write a number without quotes",
    "bool": "write `true` or `false`",
    "array": "write a list: `[…, …]`",
    "object": "write `key: value` pairs",
}


def fix_for(cause: str, kind: Any, steps: list[str | int]) -> str:
    """A fix for msgspec's message about the value at `steps` of a record `kind`."""
    missing = _MISSING.search(cause)
    if missing:
        return f"add `{missing['name']}: …`"
    wrong = _ENUM.search(cause)
    if wrong:
        known = _words(inspect.type_info(kind), steps) or _keys(inspect.type_info(kind), steps)
        return nearest_and_known(wrong["value"].strip("'\""), known) if known else ""
    if _RANGE.search(cause):
        return "choose a number in that range"
    wanted = _EXPECTED.search(cause)
    parts = [_WANTED[w] for w in (wanted["wanted"].split(" | ") if wanted else ()) if w in _WANTED]
    return parts[0] if parts else ""


def _words(at: inspect.Type, steps: list[str | int]) -> list[str]:
    """The values of the literal type at a path, [] where there is none."""
    return _literals(_types_at(at, steps))


def _keys(at: inspect.Type, steps: list[str | int]) -> list[str]:
    """The keys of the map whose key is the last step, where they are literals."""
    maps = [t for t in _options(_types_at(at, steps[:-1])) if isinstance(t, inspect.DictType)]
    return _literals([t.key_type for t in maps])


def _types_at(at: inspect.Type, steps: list[str | int]) -> list[inspect.Type]:
    types = [at]
    for step in steps:
        types = [inner for outer in _options(types) for inner in _into(outer, step)]
    return types


def _literals(types: list[inspect.Type]) -> list[str]:
    literals = [t for t in _options(types) if isinstance(t, inspect.LiteralType)]
    return [str(value) for literal in literals for value in literal.values]


def _options(types: list[inspect.Type]) -> list[inspect.Type]:
    found: list[inspect.Type] = []
    for one in types:
        found += list(one.types) if isinstance(one, inspect.UnionType) else [one]
    return found


def _into(outer: inspect.Type, step: str | int) -> list[inspect.Type]:
    if isinstance(outer, inspect.StructType):
        return [field.type for field in outer.fields if field.encode_name == step]
    if isinstance(outer, inspect.DictType):
        return [outer.value_type]
    if isinstance(outer, inspect.VarTupleType | inspect.ListType):
        return [outer.item_type]
    if isinstance(outer, inspect.TupleType) and isinstance(step, int):
        return list(outer.item_types[step : step + 1])
    return []


def hint_for(message: str, kind: Any, path: str) -> str | None:
    """The fix for msgspec's message about the value at its path (`$.a.b[0]`)."""
    unknown = UNKNOWN.search(message)
    if not unknown:
        found = STEP.finditer(path.removeprefix("$"))
        steps = [m["key"] or (int(m["index"]) if m["index"].isdigit() else "") for m in found]
        return fix_for(message, kind, steps) or None
    near = get_close_matches(unknown["name"], sorted(_field_names(kind)), n=1, cutoff=0.5)
    return f"did you mean `{near[0]}`?" if near else "remove the key, nothing reads it"


def _field_names(kind: Any, seen: frozenset[Any] = frozenset()) -> set[str]:
    """Every key that any record reachable from `kind` has; the nearest one is offered."""
    if kind in seen:
        return set()
    names: set[str] = set()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            names |= {field.encode_name} | _field_names(field.type, seen | {kind})
    for part in getattr(kind, "__args__", ()):
        names |= _field_names(part, seen)
    return names
