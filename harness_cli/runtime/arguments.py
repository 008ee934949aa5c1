"""A model's argument text into an object, or a sentence that says why it is none.

Models write arguments as an object, as JSON in JSON, as `[1]`, `"x"`, `null`, or unclosed. What can
only mean one object is read as that object; everything else is an observation for the policy. What
goes back into the history is always the JSON of an object, since one bad turn there makes every
later request fail.
"""

import json
from typing import Any

import msgspec

_DEPTH = 3
"""How often a JSON string is unwrapped before we call it a string."""
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def parse_arguments(text: str) -> tuple[dict[str, Any] | None, str]:
    """The object in `text` and "", or None and what is wrong with it."""
    if not text.strip():
        return {}, ""
    value: Any = text
    for _ in range(_DEPTH):
        try:
            value = _decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError) as exc:
            if value is not text:
                break  # a string inside the JSON that is no JSON itself: it is just a string
            return None, f"the arguments are not valid JSON ({exc})"
        except RecursionError:
            return None, "the arguments are nested too deeply"
        if not isinstance(value, str):
            break
    if isinstance(value, dict):
        return value, ""
    return None, f"the arguments must be one JSON object, not {_kind(value)}"


def stored_arguments(arguments: dict[str, Any] | None) -> str:
    """What the history says the arguments were: always the JSON of an object."""
    return "{}" if arguments is None else _encode(arguments).decode()


def same_call(name: str, arguments: dict[str, Any] | None, raw: str) -> str:
    """A key that two calls share when they ask the same of the same tool."""
    if arguments is None:
        return f"{name} {raw.strip()}"
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names: dict[type, str] = {list: "an array", str: "a string", bool: "a boolean"}
    return names.get(type(value), "a number")
