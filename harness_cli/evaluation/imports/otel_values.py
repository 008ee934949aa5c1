"""OTLP's typed values as plain data, and the messages among a span's attributes."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from harness_cli.errors import BadFile

_INDEXED = re.compile(r"^gen_ai\.(prompt|completion)\.(\d{1,4})\.(role|content)$")


def attributes_of(value: Any, *, where: str) -> dict[str, Any]:
    """`[{key, value: {stringValue …}}]`, or an object as some exporters write it."""
    if isinstance(value, Mapping):
        return dict(value)
    found = {}
    for entry in value if isinstance(value, list) else ():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("key"), str):
            raise BadFile(f"{where}: an attribute needs a `key` and a `value`")
        found[entry["key"]] = plain(entry.get("value"))
    return found


def plain(value: Any) -> Any:
    """One OTLP `AnyValue`."""
    if not isinstance(value, Mapping):
        return value
    for key, inner in value.items():
        if key == "intValue":
            return _whole(inner)
        if key == "arrayValue":
            return [plain(v) for v in _values(inner)]
        if key == "kvlistValue":
            return {str(v.get("key")): plain(v.get("value")) for v in _values(inner)}
        if key.endswith("Value"):
            return inner
    return None


def messages_of(values: Mapping[str, Any], side: str) -> list[Any]:
    """The `input` or `output` messages of a call, in one attribute or in old numbered ones."""
    found = structured(values.get(f"gen_ai.{side}.messages"))
    if isinstance(found, list):
        return found
    wanted = "prompt" if side == "input" else "completion"
    numbered: dict[int, dict[str, Any]] = {}
    for key, value in values.items():
        place = _INDEXED.match(key)
        if place and place[1] == wanted:
            numbered.setdefault(int(place[2]), {})[place[3]] = value
    default = "user" if side == "input" else "assistant"
    return [{"role": default, **numbered[n]} for n in sorted(numbered)]


def structured(value: Any) -> Any:
    """An attribute that may be data, or the JSON of it; None where it is neither."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def _values(inner: Any) -> list[Any]:
    values = inner.get("values") if isinstance(inner, Mapping) else None
    return values if isinstance(values, list) else []


def _whole(value: Any) -> int | None:
    """OTLP writes 64-bit numbers as text."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
