"""YAML files of one mapping, read and written by its top-level entries.

Files that differ in one entry (the tools of harnesses drawn from one base differ in a description)
share the others: each is parsed and written out once. The result is that of the whole text; a text
that does not fall into entries, or whose entries are wrong, is read whole, errors included.
"""

import re
from functools import lru_cache
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.reader import dump_yaml, load_yaml

KEPT = 4096
_WHOLE = "*", "&", "\n---", "\n..."
"""Aliases and anchors, which may lie in different entries; where documents begin and end."""
_FIRST = re.compile(r"[A-Za-z_]")
_NEXT = re.compile(r"(?<=\n)(?=[A-Za-z_])")
"""A letter in the first column begins an entry. Inside quotes or brackets it does not: then the
piece before it is not closed, and an error."""


def load_entries(text: str, *, name: str) -> Any:
    """As `load_yaml`; the values are shared and not to be changed in place."""
    if not _FIRST.match(text) or any(map(text.__contains__, _WHOLE)):
        return load_yaml(text, name=name)
    try:
        found = [_entry(piece) for piece in _NEXT.split(text)]
    except BadFile:
        return load_yaml(text, name=name)
    if not all(type(entry) is dict and len(entry) == 1 for entry in found):
        return load_yaml(text, name=name)
    made = {key: value for entry in found for key, value in entry.items()}
    return made if len(made) == len(found) else load_yaml(text, name=name)


@lru_cache(maxsize=KEPT)
def _entry(text: str) -> Any:
    return load_yaml(text, name="entry")


def dump_entries(encoded: bytes) -> str:
    """As `dump_yaml(…, fast=True)` of what the JSON says."""
    value = msgspec.json.decode(encoded)
    if not isinstance(value, dict) or not value:
        return dump_yaml(value, fast=True)
    texts = [_dumped(msgspec.json.encode({k: v})) for k, v in value.items()]
    if any(text.endswith("\n...\n") for text in texts):  # an open end, closed by what follows
        return dump_yaml(value, fast=True)
    return "".join(texts)


@lru_cache(maxsize=KEPT)
def _dumped(encoded: bytes) -> str:
    return dump_yaml(msgspec.json.decode(encoded), fast=True)
