"""The operations of a proposal, applied to files in memory. Pure: bytes in, bytes out."""

from collections.abc import Callable, Iterable, Mapping

from harness_cli.errors import BadFile
from harness_cli.evolution.frontmatter import set_frontmatter
from harness_cli.evolution.pointer import change_value
from harness_cli.evolution.text_file import Splice, TextFile
from harness_cli.evolution.unified import apply_diff
from harness_cli.records.counting import counted
from harness_cli.records.diagnosis import Op

Files = Mapping[str, bytes]
Changes = dict[str, bytes | None]
"""Path → new content; None deletes."""


def apply_ops(files: Files, ops: Iterable[Op]) -> Changes:
    """What the operations, one after the other, change in `files`.

    Paths that end as they began are left out. Raises `BadFile` naming the operation that does not
    apply; nothing is ever applied in part.
    """
    now: dict[str, bytes | None] = {}
    for op in ops:
        now.update(_APPLY[op.op](_View(files, now), op))
    return {path: data for path, data in sorted(now.items()) if data != files.get(path)}


def after(files: Files, changes: Mapping[str, bytes | None]) -> dict[str, bytes]:
    """`files` with the changes made."""
    merged = {**files, **changes}
    return {path: data for path, data in merged.items() if data is not None}


class _View:
    """The files as the operations so far have left them."""

    def __init__(self, files: Files, now: Mapping[str, bytes | None]) -> None:
        self._files, self._now = files, now

    def get(self, path: str) -> bytes | None:
        return self._now[path] if path in self._now else self._files.get(path)

    def need(self, op: Op) -> bytes:
        data = self.get(op.path)
        if data is None:
            raise BadFile(f"{op.path}: `{op.op}` needs this file, and it is not there")
        return data

    def text(self, op: Op) -> TextFile:
        return TextFile.of(self.need(op), name=op.path)


def _replace(view: _View, op: Op) -> Changes:
    search, text = _given(op, "search"), _given(op, "text")
    file = view.text(op)
    search = search.replace("\r\n", "\n")
    if not search:
        raise BadFile(f"{op.path}: an empty `search` stands everywhere")
    spots = _occurrences(file.text, search)
    if len(spots) != op.expected_count:
        lines = ", ".join(str(file.text.count("\n", 0, at) + 1) for at in spots[:8])
        raise BadFile(
            f"{op.path}: the searched text stands {counted(len(spots), 'time')}, expected "
            f"{op.expected_count}" + (f" (lines {lines})" if lines else ""),
            hint="search for more of the surrounding text, or give `expected_count`",
        )
    new = text.replace("\r\n", "\n")
    return {op.path: file.splice(Splice(at, at + len(search), new) for at in spots)}


def _occurrences(text: str, search: str) -> list[int]:
    spots, at = [], text.find(search)
    while at >= 0:
        spots.append(at)
        at = text.find(search, at + len(search))
    return spots


def _write(view: _View, op: Op) -> Changes:
    text = _given(op, "text")
    old = view.get(op.path)
    if old is None:
        return {op.path: text.encode()}
    return {op.path: TextFile.of(old, name=op.path).rewrite(text)}


def _delete(view: _View, op: Op) -> Changes:
    view.need(op)
    return {op.path: None}


def _move(view: _View, op: Op) -> Changes:
    to = _given(op, "to")
    data = view.need(op)
    if view.get(to) is not None:
        raise BadFile(f"{op.path}: `{to}`, where it should move, is there already")
    return {op.path: None, to: data}


def _set_frontmatter(view: _View, op: Op) -> Changes:
    key = _given(op, "key")
    file = view.text(op)
    made = set_frontmatter(file.text, key, op.value, remove=op.remove, name=op.path)
    return {op.path: file.splice([made])}


def _json_pointer(view: _View, op: Op) -> Changes:
    pointer = _given(op, "pointer")
    file = view.text(op)
    made = change_value(file.text, pointer, op.value, remove=op.remove, name=op.path)
    return {op.path: file.splice([made])}


def _unified_diff(view: _View, op: Op) -> Changes:
    diff = _given(op, "text")
    data = view.get(op.path)
    file = TextFile.of(data or b"", name=op.path)
    return {op.path: file.rewrite(apply_diff(file.text, diff, name=op.path))}


def _given(op: Op, field: str) -> str:
    value: str | None = getattr(op, field)
    if value is None:
        raise BadFile(f"{op.path}: `{op.op}` needs `{field}`")
    return value


_APPLY: dict[str, Callable[[_View, Op], Changes]] = {
    "replace": _replace,
    "write": _write,
    "delete": _delete,
    "move": _move,
    "set-frontmatter": _set_frontmatter,
    "json-pointer": _json_pointer,
    "unified-diff": _unified_diff,
}
