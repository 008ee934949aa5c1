"""A harness on its way to an augmented one: files, map, and what one dimension changed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from harness_cli.records.augmentation import AugmentationMap, Dimension
from harness_cli.records.yaml_entries import dump_entries, load_entries
from harness_cli.store.tree import FILE, Entry

KEPT = 2048
_WRITTEN: dict[bytes, bytes] = {}
"""What was written as YAML → the same as JSON."""
JUDGES, CLASSES = "judges/", "failure_classes/"


@dataclass(frozen=True, slots=True)
class Draft:
    """One value that every dimension takes and gives back; nothing in it is changed in place."""

    files: Mapping[str, Entry]
    map: AugmentationMap
    needed: frozenset[str] | None = None
    """Skills of the base that may not be masked; None: nobody said what is needed, mask none."""
    book: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Text → paraphrases of it that a model wrote and a check let pass."""
    share: float = 0.0
    """The chance that a text of the book is put in a model's words."""
    moves: Mapping[str, int] = field(default_factory=dict)
    """Kind of change → how often the last dimension made it."""

    def text(self, path: str) -> str:
        """A file as text; line ends are `\\n`."""
        return decoded(self.files[path].data)

    def texts(self, under: str, *, ext: str = "") -> dict[str, str]:
        """Path → text of the files under a folder, in order of their paths."""
        chosen = (p for p in sorted(self.files) if p.startswith(under) and p.endswith(ext))
        return {path: self.text(path) for path in chosen}

    def data(self, path: str) -> Any:
        """A YAML file as plain data of the caller's own."""
        return plain(self.files[path].data)

    def written(self, texts: Mapping[str, str | None]) -> "Draft":
        """With these files in place of what was there; None takes one away."""
        files = dict(self.files)
        for path, text in texts.items():
            old = files.pop(path, None)
            if text is not None:
                files[path] = Entry(old.mode if old else FILE, text.encode())
        return replace(self, files=files)

    def moved(self, paths: Mapping[str, str]) -> "Draft":
        """With files under other paths."""
        return replace(self, files={paths.get(p, p): entry for p, entry in self.files.items()})

    def mapped(self, **fields: Any) -> "Draft":
        """With fields of the map replaced."""
        return replace(self, map=msgspec.structs.replace(self.map, **fields))

    def counted(self, **moves: int) -> "Draft":
        """With these numbers added to what the dimension did."""
        found = dict(self.moves)
        for kind, count in moves.items():
            if count:
                found[kind] = found.get(kind, 0) + count
        return replace(self, moves=found)


Vary = Callable[[Draft, Random, Dimension], Draft]
"""A dimension: the same draft, draws and settings give the same draft."""


def allowed(dimension: Dimension, move: str) -> bool:
    """Whether the recipe lets a dimension make this kind of change."""
    return not dimension.moves or move in dimension.moves


def plain(data: bytes) -> Any:
    """A YAML file as plain data of the caller's own."""
    return msgspec.json.decode(_WRITTEN.get(data) or _parsed(data))


def yaml_text(value: Any) -> str:
    """Plain data as YAML; the same data is written out once, and not read again."""
    encoded = msgspec.json.encode(value)
    text = _dumped(encoded)
    if len(_WRITTEN) > KEPT:
        _WRITTEN.clear()
    _WRITTEN[text.encode()] = encoded
    return text


@lru_cache(maxsize=2048)
def _dumped(encoded: bytes) -> str:
    return dump_entries(encoded)


@lru_cache(maxsize=512)
def _parsed(data: bytes) -> bytes:
    return msgspec.json.encode(load_entries(decoded(data), name="file"))


@lru_cache(maxsize=512)
def decoded(data: bytes) -> str:
    """Bytes of a harness file as text."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return text.replace("\r\n", "\n")
