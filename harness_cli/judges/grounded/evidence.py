"""What a rollout may rest its claims on: results of its tools, FAQ and history of its request."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness_cli.judges.grounded.language import fold
from harness_cli.judges.grounded.world import Source, World, faq_source, source
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory

_PRODUCT_KEYS = ("product_id", "product", "id", "item_id")
_MAX_VALUES = 5_000


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a tool result: under which key, of which product, in which call."""

    key: str
    value: float
    product: str | None
    call: str


@dataclass
class Evidence:
    """Lazily read: most replies are settled by the catalogue alone."""

    item: Item
    trajectory: Trajectory
    world: World
    links: tuple[str, ...]
    """Product ids in link order."""
    _texts: list[Source] = field(default_factory=list)

    @cached_property
    def results(self) -> list[tuple[str, Any]]:
        """Name and value of every tool result that was no error."""
        return [
            (call.name, _value(call.result.structured, call.result.content))
            for call in self.trajectory.calls
            if call.result.ok
        ]

    @cached_property
    def numbers(self) -> list[Number]:
        """Every number of the tool results."""
        found: list[Number] = []
        for name, value in self.results:
            for number in self._walk(value, "", None, name):
                found.append(number)
                if len(found) >= _MAX_VALUES:
                    return found
        return found

    @cached_property
    def texts(self) -> list[Source]:
        """Tool results, retrieved FAQ entries and what the host said, as texts."""
        request = self.item.request
        found = [
            source(f"result of {c.name}", _content(c.result.content))
            for c in self.trajectory.calls
            if c.result.ok
        ]
        found += [faq_source(f.id, [(f.question, f.answer)]) for f in request.faq]
        said = [str(t.get("content", "")) for t in request.history if t.get("role") == "assistant"]
        if request.anchor or said:
            found.append(source("what the host said", *request.anchor, *said))
        room = self.world.catalogue.room(request.room.id)
        if room:
            found.append(source("room notice", room.notice, room.name, room.host))
        return found

    @cached_property
    def asked(self) -> Source:
        """The comments: what a viewer says may be repeated, it supports nothing."""
        return source("comment", *(c.text for c in self.item.request.comments))

    def sums(self, product: str | None, kinds: tuple[str, ...]) -> Iterator[Number]:
        """Numbers whose key speaks of one of `kinds`, of the product or of none."""
        for number in self.numbers:
            if number.product in (None, product) and any(k in number.key for k in kinds):
                yield number

    def _walk(self, value: Any, key: str, product: str | None, call: str) -> Iterator[Number]:
        if isinstance(value, bool):
            return
        if isinstance(value, int | float):
            yield Number(key, float(value), product, call)
        elif isinstance(value, dict):
            owner = self._owner(value) or product
            for name, part in value.items():
                # A list of money rows keeps its own key, a nested object the path's last word.
                yield from self._walk(part, str(name).lower(), owner, call)
        elif isinstance(value, list):
            for part in value:
                yield from self._walk(part, key, product, call)

    def _owner(self, value: dict[str, Any]) -> str | None:
        for key in _PRODUCT_KEYS:
            named = value.get(key)
            if isinstance(named, str) and named in self.world.cards:
                return named
        link = value.get("link_id", value.get("link"))
        if isinstance(link, int) and 0 < link <= len(self.links):
            return self.links[link - 1]
        return None


def _value(structured: Any, content: str) -> Any:
    if structured is not None:
        return structured
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _content(content: str) -> str:
    """JSON text as prose: keys beside their values, so that words and units are found."""
    if not content.lstrip().startswith(("{", "[")):
        return content
    try:
        return ". ".join(_prose(json.loads(content)))[:20_000]
    except (ValueError, RecursionError):
        return content


def _prose(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        unit = str(value.get("unit", ""))
        for name, part in value.items():
            yield from _prose(
                part, str(name) if name != "value" else f"{value.get('name', '')} {unit}"
            )
    elif isinstance(value, list):
        for part in value:
            yield from _prose(part, key)
    elif value is not None and not isinstance(value, bool):
        yield f"{key.replace('_', ' ')} {value}"
    elif value is True:
        yield key.replace("_", " ")


def mentions_word(texts: list[Source], words: tuple[str, ...]) -> Source | None:
    """The first source that holds one of the words."""
    folded = [fold(w) for w in words]
    return next((t for t in texts if any(w in t.text for w in folded)), None)
