"""May these edits be made at all? Paths, protected regions, code. Nothing here asks a person."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.evolution.paths import (
    Refused,
    disk_fault,
    is_protected,
    path_fault,
    tree_fault,
)
from harness_cli.evolution.text_file import TextFile
from harness_cli.records.diagnosis import Op
from harness_cli.records.reader import load_yaml

_MARKS = {
    ".md": (
        re.compile(r"^[ \t]*<!--\s*harness:protected\s*-->[ \t]*$", re.MULTILINE),
        re.compile(r"^[ \t]*<!--\s*/harness:protected\s*-->[ \t]*$", re.MULTILINE),
    ),
    ".yaml": (
        re.compile(r"^[ \t]*#\s*harness:protected[ \t]*$", re.MULTILINE),
        re.compile(r"^[ \t]*#\s*/harness:protected[ \t]*$", re.MULTILINE),
    ),
}
_MARKS[".yml"] = _MARKS[".yaml"]
_TEXT = (".md", ".yaml", ".yml", ".json")


def check_ops(
    ops: Iterable[Op],
    modes: Mapping[str, str],
    *,
    judge: str | None = None,
    folder: Path | None = None,
) -> None:
    """Refuse operations on paths that are not plain, unprotected files of the harness.

    `modes` maps the harness's paths to git modes; `folder` is the harness on disk, walked without
    following links. Raises `Refused` listing every fault.
    """
    faults = []
    for op in ops:
        for path in (op.path, op.to) if op.op == "move" and op.to is not None else (op.path,):
            fault = _fault(path, modes, judge=judge, folder=folder)
            if fault:
                faults.append(f"{path!r} {fault}")
    if faults:
        raise Refused(
            "the proposal names paths that no edit may touch:\n  " + "\n  ".join(faults),
            hint="edits are made to plain files of the harness, outside judges/, "
            "failure_classes/ and what decides about it (gates, settings, evalsets, manifests)",
        )


def _fault(
    path: str, modes: Mapping[str, str], *, judge: str | None, folder: Path | None
) -> str | None:
    fault = path_fault(path)
    if fault is None and is_protected(path, judge=judge):
        fault = "is protected" if judge is None else f"lies outside the judge `{judge}`"
    if fault is None:
        fault = tree_fault(path, modes)
    if fault is None and folder is not None:
        fault = disk_fault(folder, path)
    return fault


def check_changes(
    before: Mapping[str, bytes], changes: Mapping[str, bytes | None], *, allow_code: bool
) -> None:
    """Refuse changes of protected regions, and of code unless `allow_code`."""
    faults = []
    run = commanded(before)
    for path, data in changes.items():
        old = before.get(path)
        if old is not None and not _regions_kept(path, old, data):
            faults.append(f"`{path}`: a region marked `harness:protected` would change")
        why = "a hook runs it" if path in run else code_change(path, old, data)
        if why and not allow_code:
            faults.append(f"`{path}`: {why}")
    if faults:
        raise Refused(
            "the proposal makes changes that are not allowed:\n  " + "\n  ".join(faults),
            hint="a person makes such a change by hand; --allow-code admits code after reading it",
        )


def regions(path: str, data: bytes) -> list[str]:
    """The protected regions of a file, in order; one without an end runs to the file's end."""
    marks = _MARKS.get(Path(path).suffix.lower())
    if marks is None:
        return []
    text = TextFile.of(data, name=path).text
    found, at = [], 0
    while (begin := marks[0].search(text, at)) is not None:
        close = marks[1].search(text, begin.end())
        at = close.end() if close else len(text)
        found.append(text[begin.start() : at])
    return found


def _regions_kept(path: str, old: bytes, new: bytes | None) -> bool:
    kept = regions(path, old)
    if not kept:
        return True
    return new is not None and regions(path, new)[: len(kept)] == kept


def code_change(path: str, old: bytes | None, new: bytes | None) -> str | None:
    """Why a change would let code run that did not run before, or take running code away."""
    if Path(path).suffix.lower() not in _TEXT:
        return "it is code, not text of the harness"
    if old == new or not path.endswith((".yaml", ".yml")):
        return None
    if path.startswith("hooks/") and _part(path, old, "command") != _part(path, new, "command"):
        return "it changes the command of a hook"
    if path.startswith("tools/mcp."):
        return "it changes which MCP servers are started"
    if path.startswith("tools/") and _executor(path, old) != _executor(path, new):
        return "it changes how a tool is executed"
    return None


def commanded(files: Mapping[str, bytes]) -> set[str]:
    """Files that some hook's command names: code, whatever their names end in."""
    words: set[str] = set()
    for path, data in files.items():
        if path.startswith("hooks/") and path.endswith((".yaml", ".yml")):
            command = _part(path, data, "command")
            words |= {str(word) for word in command} if isinstance(command, list) else set()
    return words & set(files)


def _executor(path: str, data: bytes | None) -> Any:
    """What runs a tool, compared before and after; plain sandbox and built-in tools are no code."""
    meta = _part(path, data, "_meta")
    meta = meta if isinstance(meta, dict) else {}
    kind = meta.get("harness.executor", "sandbox")
    return None if kind in ("sandbox", "builtin") else meta


def _part(path: str, data: bytes | None, key: str) -> Any:
    if data is None:
        return None
    try:
        value = load_yaml(TextFile.of(data, name=path).text, name=path)
    except BadFile:
        return None  # the check of the resulting harness names the fault
    return (value.get(key) or None) if isinstance(value, dict) else None


def files_named(ops: Iterable[Op]) -> Iterator[str]:
    """Every path that the operations touch."""
    for op in ops:
        yield op.path
        if op.to is not None:
            yield op.to
