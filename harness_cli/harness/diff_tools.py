"""What changed between two tools: a parameter renamed, retyped, required, described anew."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness_cli.records.canonical import canonical_json
from harness_cli.records.harness import Tool


class ToolChange(NamedTuple):
    """One change inside a tool."""

    what: str
    """`parameter link_id`, `description`, `annotations` …"""
    action: str
    before: Any = None
    after: Any = None


def diff_tool(old: Tool, new: Tool) -> Iterator[ToolChange]:
    """Changes from one tool to another of the same name."""
    for key in ("title", "description"):
        before, after = getattr(old, key), getattr(new, key)
        if before != after:
            yield ToolChange(key, "changed", before, after)
    yield from _object("parameter", "", old.input_schema, new.input_schema)
    yield from _object("result", "", old.output_schema or {}, new.output_schema or {})
    for key, name in (("annotations", "annotation"), ("meta", "setting")):
        yield from diff_mapping(name, getattr(old, key), getattr(new, key))
    if old.icons != new.icons:
        yield ToolChange("icons", "changed")


def diff_mapping(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[ToolChange]:
    """Keys that came, went or changed."""
    for key in [*old, *(k for k in new if k not in old)]:
        label = f"{name} {key}"
        if key not in new:
            yield ToolChange(label, "removed", before=old[key])
        elif key not in old:
            yield ToolChange(label, "added", after=new[key])
        elif old[key] != new[key]:
            yield ToolChange(label, "changed", old[key], new[key])


def same_tool(old: Tool, new: Tool) -> bool:
    """Whether two tools of different names are one, renamed: same operation or same contract."""
    if old.operation == new.operation:
        return True
    shape = canonical_json([old.input_schema, old.output_schema, old.executor])
    return shape == canonical_json([new.input_schema, new.output_schema, new.executor]) and (
        old.description == new.description
    )


def _object(
    word: str, prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[ToolChange]:
    """Changes between two object schemas, property by property, at any depth."""
    before, after = _properties(old), _properties(new)
    renamed = _renamed(before, after)
    for theirs, ours in renamed.items():
        yield ToolChange(f"{word} {prefix}{theirs}", "renamed", theirs, ours)
    for name in before:
        if name not in after and name not in renamed:
            yield ToolChange(f"{word} {prefix}{name}", "removed", before=before[name])
    origin = {ours: theirs for theirs, ours in renamed.items()}
    for name in after:
        was = origin.get(name, name)
        if was in before:
            yield from _property(word, f"{prefix}{name}", before[was], after[name])
        else:
            yield ToolChange(f"{word} {prefix}{name}", "added", after=after[name])
    required = {renamed.get(n, n) for n in old.get("required", [])}
    now = set(new.get("required", []))
    for name in sorted((required ^ now) & after.keys() & (before.keys() | origin.keys())):
        yield ToolChange(
            f"{word} {prefix}{name}: required", "changed", name in required, name in now
        )
    rest_old = {k: v for k, v in old.items() if k not in ("properties", "required")}
    rest_new = {k: v for k, v in new.items() if k not in ("properties", "required")}
    if not prefix:
        yield from diff_mapping(f"{word}s:", rest_old, rest_new)


def _properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = schema.get("properties", {})
    return {k: v if isinstance(v, dict) else {"const": v} for k, v in found.items()}


def _property(
    word: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[ToolChange]:
    for change in diff_mapping("", _plain(old), _plain(new)):
        yield change._replace(what=f"{word} {name}: {change.what.strip()}")
    if "properties" in old or "properties" in new:
        yield from _object(word, f"{name}.", old, new)


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k not in ("properties", "required")}


def _renamed(
    before: Mapping[str, dict[str, Any]], after: Mapping[str, dict[str, Any]]
) -> dict[str, str]:
    """Old name → new name of properties that kept their schema, or else type and description."""
    gone = [name for name in before if name not in after]
    come = [name for name in after if name not in before]
    found: dict[str, str] = {}
    for strict in (True, False):
        for name in list(gone):
            twin = next((n for n in come if _alike(before[name], after[n], strict)), None)
            if twin is not None and (strict or len(gone) == len(come) == 1):
                found[name] = twin
                gone.remove(name)
                come.remove(twin)
    return found


def _alike(old: Mapping[str, Any], new: Mapping[str, Any], strict: bool) -> bool:
    if strict:
        return dict(old) == dict(new)
    return bool(old.get("type") == new.get("type"))
