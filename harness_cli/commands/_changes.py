"""Changes of a harness in words, one line a change and one a side."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_cli.harness.diff import Change

_SIGN = {"added": "+", "removed": "-", "changed": "~", "renamed": ">", "moved": "^"}
_WIDTH = 160


def change_lines(
    changes: "Iterable[Change]", *, sides: bool = True, full: bool = False
) -> Iterator[str]:
    """`sides`: also what stood there before and after; `full`: whole, not its beginning."""
    for change in changes:
        yield f"{_SIGN[change.action]} {change.title}"
        for sign, value in (("-", change.before), ("+", change.after)):
            if sides and value is not None and change.what:
                yield f"    {sign} {_short(value, full)}"


def _short(value: Any, full: bool) -> str:
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if full:
        return text.replace("\n", "\n      ")
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
