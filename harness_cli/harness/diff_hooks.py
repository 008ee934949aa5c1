"""What changed between two hooks of one name: fields, checks, settings of checks."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness_cli.records.harness import Check, Hook

Row = tuple[str, str, Any, Any]
"""(what, action, before, after)."""


def diff_hook(old: Hook, new: Hook) -> Iterator[Row]:
    """Changes from one hook to the other."""
    for field in Hook.__struct_fields__:
        before, after = getattr(old, field), getattr(new, field)
        if field not in ("checks", "name", "schema") and before != after:
            yield field, "changed", msgspec.to_builtins(before), msgspec.to_builtins(after)
    yield from _checks(old.checks, new.checks)


def _checks(old: tuple[Check, ...], new: tuple[Check, ...]) -> Iterator[Row]:
    before, after = _numbered(old), _numbered(new)
    for label in [*before, *(n for n in after if n not in before)]:
        if label not in after:
            yield f"check {label}", "removed", before[label].with_, None
        elif label not in before:
            yield f"check {label}", "added", None, after[label].with_
        else:
            yield from _settings(f"check {label}", before[label].with_, after[label].with_)
    shared = [n for n in after if n in before]
    if shared != [n for n in before if n in after]:
        yield "checks", "moved", list(before), list(after)


def _numbered(checks: tuple[Check, ...]) -> dict[str, Check]:
    """Checks by name; a second one of a name is `name (2)`."""
    found: dict[str, Check] = {}
    for check in checks:
        label, number = check.check, 2
        while label in found:
            label, number = f"{check.check} ({number})", number + 1
        found[label] = check
    return found


def _settings(label: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Row]:
    for key in [*old, *(k for k in new if k not in old)]:
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, list) and isinstance(after, list):
            yield from _entries(f"{label}: {key}", before, after)
        elif key not in new or key not in old:
            yield f"{label}: {key}", "added" if key in new else "removed", before, after
        else:
            yield f"{label}: {key}", "changed", before, after


def _entries(label: str, old: list[Any], new: list[Any]) -> Iterator[Row]:
    gone = [entry for entry in old if entry not in new]
    come = [entry for entry in new if entry not in old]
    for entry in gone:
        yield label, "removed", entry, None
    for entry in come:
        yield label, "added", None, entry
    if not gone and not come:
        yield label, "moved", old, new
