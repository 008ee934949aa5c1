"""The curated tables of augmentation: other names, other wordings, skills that may stand beside."""

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import msgspec

from harness_cli.records.reader import load_yaml

FOLDER = Path(__file__).with_name("tables")
T = TypeVar("T")


class Named(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a skill or tool of the shipped harness may be called, and described as."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...] = ()


class ToolTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`tools.yaml`."""

    tools: dict[str, Named]
    parameters: dict[str, tuple[str, ...]]


class Phrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`phrases.yaml`."""

    groups: tuple[tuple[str, ...], ...]
    starts: tuple[tuple[str, ...], ...]
    """Groups whose members stand at the beginning of a sentence alone."""
    negations: dict[str, tuple[str, ...]]
    order_words: tuple[str, ...]
    headings: dict[str, tuple[str, ...]]
    bullets: tuple[str, ...]
    places: dict[str, str]


class HookNames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a hook is called anew."""

    suffixes: tuple[str, ...]


class HookTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hooks.yaml`."""

    forms: tuple[str, ...]
    retries: tuple[int, ...]
    repairs: tuple[str, ...]
    names: HookNames


class AddedSkill(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A skill that no item needs."""

    name: str
    description: str
    rules: tuple[str, ...]


class AddedTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`added.yaml`."""

    plausible: tuple[AddedSkill, ...]
    noise: tuple[AddedSkill, ...]


@lru_cache(maxsize=1)
def skill_table() -> dict[str, Named]:
    """Skill of the shipped harness → other names and descriptions."""
    return _read("skills.yaml", dict[str, Named])


@lru_cache(maxsize=1)
def tool_table() -> ToolTable:
    """Tools and parameters."""
    return _read("tools.yaml", ToolTable)


@lru_cache(maxsize=1)
def phrases() -> Phrases:
    """Wordings that may stand for one another."""
    return _read("phrases.yaml", Phrases)


@lru_cache(maxsize=1)
def hook_table() -> HookTable:
    """Forms of hook messages."""
    return _read("hooks.yaml", HookTable)


@lru_cache(maxsize=1)
def added_table() -> AddedTable:
    """Skills that may be added."""
    return _read("added.yaml", AddedTable)


def _read(name: str, kind: type[T]) -> T:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return msgspec.convert(load_yaml(text, name=name), kind)
