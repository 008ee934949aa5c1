"""What to do about a value that a record refuses: the words it knows, the type it wants."""

import re
from difflib import get_close_matches
from typing import Any

from msgspec import inspect

_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")
_ENUM = re.compile(r"Invalid enum value (?P<value>.+?)(?: - at|$)")
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]*)`")
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
        known = _words(inspect.type_info(kind), steps)
        near = get_close_matches(wrong["value"].strip("'\""), known, n=1)
        meant = f"did you mean `{near[0]}`? " if near else ""
        return f"{meant}known: {', '.join(known)}" if known else ""
    wanted = _EXPECTED.search(cause)
    parts = [_WANTED[w] for w in (wanted["wanted"].split(" | ") if wanted else ()) if w in _WANTED]
    return parts[0] if parts else ""


def _words(at: inspect.Type, steps: list[str | int]) -> list[str]:
    """The values of the literal type at a path, [] where there is none."""
    types = [at]
    for step in steps:
        types = [inner for outer in _options(types) for inner in _into(outer, step)]
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
