"""Slots of a reply pattern, looked up in the JSON that tools gave back."""

import re
from collections.abc import Iterator
from typing import Any

from harness_cli.models.builtin.language import is_chinese
from harness_cli.models.builtin.similarity import Similarity
from harness_cli.models.builtin.skilltext import slots_of

LONG_NAME = 4
"""More words than a name has: such a text in another language is not said instead."""
MAX_ROWS = 4
"""A list is told by at most so many of its rows."""


class Facts:
    """One tool result, or one row of it, with the words the viewer used to ask."""

    def __init__(self, data: Any, asked: str, similarity: Similarity, language: str) -> None:
        self.data = data
        self.asked = asked
        self.similarity = similarity
        self.language = language

    def values(self, wording: str) -> dict[str, str] | None:
        """A text for every slot of a wording, or None when one has no value."""
        found: dict[str, str] = {}
        for slot in slots_of(wording):
            text = self.text(slot)
            if text is None:
                return None
            found[slot] = text
        return found

    def known(self, wording: str) -> float:
        """The share of a wording's slots that have a value; 1 for a wording without any."""
        slots = slots_of(wording)
        if not slots:
            return 1.0
        return sum(self.text(s) is not None for s in slots) / len(slots)

    def text(self, slot: str) -> str | None:
        """The text of one slot."""
        path = [p for p in re.split(r"[.\[\]:]+", slot) if p]
        value = self._follow(self.data, path)
        text = _text(value, self.language)
        if text is None and path and path[0].startswith(("zh_", "en_")):
            text = _text(self._follow(self.data, [path[0][3:], *path[1:]]), self.language)
            foreign = text is not None and path[0][0] == "z" and len(text.split()) > LONG_NAME
            text = None if foreign and not is_chinese(str(text)) else text
        return text

    def outright(self, wording: str) -> bool:
        """Whether every slot is a field of the result itself, none of something inside it."""
        heads = {re.split(r"[.\[\]:]", s)[0] for s in slots_of(wording)}
        known = self.data if isinstance(self.data, dict) else {}
        return all(_under(known, h) is not None for h in heads)

    def _follow(self, data: Any, path: list[str]) -> Any:
        found = self._start(data, path[0]) if path else data
        for step in path[1:]:
            found = self._step(found, step)
        return found

    def _start(self, data: Any, key: str) -> Any:
        """The value under a key, at the top or the shallowest place that has it."""
        level: list[Any] = [data]
        while level:
            for node in level:
                if isinstance(node, dict):
                    value = _under(node, key)
                    if value is not None:
                        return value
            level = [v for n in level if isinstance(n, dict) for v in n.values()]
        return None

    def _step(self, value: Any, key: str) -> Any:
        if isinstance(value, list) and key.isdigit():
            return value[int(key)] if int(key) < len(value) else None
        if isinstance(value, list):
            rows = [v for v in value if isinstance(v, dict)]
            value = self.nearest(rows)
        return _under(value, key) if isinstance(value, dict) else None

    def nearest(self, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        """The row that speaks of what was asked."""
        if not rows:
            return None
        scored = [
            (self.similarity.nearness(self.asked, row_text(r)), -i) for i, r in enumerate(rows)
        ]
        return rows[-max(scored)[1]]


def rows(data: Any) -> Iterator[dict[str, Any]]:
    """The rows of a result: each dictionary in its lists, over the result's own fields."""
    if not isinstance(data, dict):
        return
    plain = {k: v for k, v in data.items() if not isinstance(v, list)}
    for value in data.values():
        if isinstance(value, list):
            for row in value:
                if isinstance(row, dict):
                    yield {**plain, **row}


def row_text(row: dict[str, Any]) -> str:
    """The words of a row: its short texts."""
    return " ".join(str(v) for v in row.values() if isinstance(v, str) and len(v) < 80)


def _under(node: dict[str, Any], key: str) -> Any:
    if node.get(key) not in (None, "", [], {}):
        return node[key]
    for name in (key + "s", key.removesuffix("s")):  # `attribute.value` of a list `attributes`
        if isinstance(node.get(name), list | dict) and node[name]:
            return node[name]
    return None


def _text(value: Any, language: str) -> str | None:
    """How a value is said."""
    if value is None or value == "" or isinstance(value, dict):
        return None
    if isinstance(value, bool):
        return ("是" if value else "否") if language == "zh" else ("yes" if value else "no")
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:g}"
    if isinstance(value, list):
        parts = [p for p in (_row_name(v, language) for v in value[:MAX_ROWS]) if p]
        return ("、" if language == "zh" else ", ").join(parts) or None
    return str(value)


def _row_name(value: Any, language: str) -> str | None:
    """A list's element in a few words: itself, or the name a row carries."""
    if not isinstance(value, dict):
        return _text(value, language)
    order = ("zh_name", "name", "title", "id") if language == "zh" else ("name", "title", "id")
    return next((str(value[k]) for k in order if value.get(k)), None)
