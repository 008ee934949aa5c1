"""Manifest files: written in one byte form, read without minding what a newer version added."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.gates import Gate
from harness_cli.records.manifest import STATEMENT, Manifest
from harness_cli.records.reader import decode, parse_json, read_text

SCHEMA = re.compile(r"https://harness-evolution\.dev/manifest/v(?P<major>\d+)(?:\.\d+)?")
MAJOR = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def manifest_bytes(manifest: Manifest) -> bytes:
    """The file's bytes: what a signature covers."""
    plain = msgspec.to_builtins(manifest)
    text = json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def read_file(path: Path) -> Manifest:
    """The manifest in a file."""
    return parse_manifest(read_text(path, name=path.name), name=path.name)


def parse_manifest(text: str | bytes, *, name: str) -> Manifest:
    """A manifest from its text. Unknown fields are ignored, at every depth.

    Raises `BadFile` for another kind of statement, and for a major version that is not known: what
    it binds, and how, is unknown then.
    """
    plain = raw(text, name=name)
    kind, schema = plain.get("_type"), str(plain.get("predicateType"))
    if kind != STATEMENT:
        raise BadFile(f"{name}: `{kind}` is no in-toto Statement v1")
    found = SCHEMA.fullmatch(schema)
    if found is None or int(found["major"]) != MAJOR:
        raise BadFile(
            f"{name}: the schema `{schema}` is not known",
            hint=f"this version reads v{MAJOR}; a newer harness reads newer ones",
        )
    predicate = plain.get("predicate")
    if isinstance(predicate, dict) and isinstance(predicate.get("gate_settings"), list):
        known = set(Gate.__struct_fields__)
        kept = [
            {k: v for k, v in gate.items() if k in known} if isinstance(gate, dict) else gate
            for gate in predicate["gate_settings"]
        ]
        plain = {**plain, "predicate": {**predicate, "gate_settings": kept}}
    return decode(Manifest, plain, where=name)


def raw(text: str | bytes, *, name: str) -> dict[str, Any]:
    """A manifest's own JSON, with every field that stands in it."""
    return parse_json(text, dict[str, Any], name=name)
