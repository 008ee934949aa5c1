"""Schemas of the plain kind that most tools have, judged without a validator.

    fits = plain_check(schema)    # None for a schema that is not plain
    fits(value)                   # True: it fits; False: ask the validator, which also says why

jsonschema takes some hundred microseconds for a call with one argument, which is a tenth of what a
whole model call costs here. So what plainly fits is said to fit, and all else is left to it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Check = Callable[[Any], bool]
_SAYS_NOTHING: Final = frozenset({"title", "description", "default", "examples", "$schema"})
"""Keywords that no value can break."""
_OBJECT: Final = _SAYS_NOTHING | {"type", "properties", "required", "additionalProperties"}
_VALUE: Final = _SAYS_NOTHING | {"type", "enum"}
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def plain_check(schema: Mapping[str, Any]) -> Check | None:
    """The check of an object of plain values; None where the schema says anything more."""
    if not _OBJECT.issuperset(schema) or schema.get("type") != "object":
        return None
    properties, required = schema.get("properties", {}), schema.get("required", [])
    closed = schema.get("additionalProperties", True) is False
    if not isinstance(properties, Mapping) or not isinstance(required, list | tuple):
        return None
    if schema.get("additionalProperties", True) not in (True, False):
        return None
    checks = {name: _value_check(each) for name, each in properties.items()}
    known = {name: check for name, check in checks.items() if check is not None}
    if len(known) < len(checks):
        return None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not all(name in value for name in required):
            return False
        for name, each in value.items():
            check = known.get(name)
            if (check is None and closed) or (check is not None and not check(each)):
                return False
        return True

    return fits


def _value_check(schema: Any) -> Check | None:
    if not isinstance(schema, Mapping) or not _VALUE.issuperset(schema):
        return None
    kind = schema.get("type")
    types = _TYPES.get(kind) if isinstance(kind, str) else None
    if types is None:
        return None
    if "enum" not in schema:
        return lambda value: type(value) in types
    words = schema["enum"]
    if kind != "string" or not all(isinstance(word, str) for word in words):
        return None
    chosen = frozenset(words)
    return lambda value: type(value) is str and value in chosen
