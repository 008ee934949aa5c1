"""The scenario library: families of phrasing per intent, read from `evalsets/scenarios/*.yaml`."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.item import Assertion, ExpectedTool
from harness_cli.records.reader import read_yaml

Language = Literal["en", "zh"]
Split = Literal["dev", "test"]
CONTEXT = "context.yaml"


class Phrases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Templates by language."""

    en: tuple[str, ...] = ()
    zh: tuple[str, ...] = ()

    def of(self, language: str) -> tuple[str, ...]:
        """The templates of one language."""
        return self.zh if language == "zh" else self.en


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Phrasings that belong together; a family is used by one split only."""

    id: str
    split: Split
    en: tuple[str, ...]
    zh: tuple[str, ...]


class Needs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a product must have to be asked about."""

    attribute: str | None = None
    category: str | None = None
    in_stock: bool = False
    warranty: bool = False


class Want(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a viewer looks for without a link, and which products satisfy it."""

    en: str
    zh: str
    products: tuple[str, ...]
    max_price: float | None = None


class Instead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Places of another scenario that a later one takes, so that all other items stay as they are.

    Occurrences are counted from 0, within the split and before the items are shuffled.
    """

    of: str
    dev: tuple[int, ...] = ()
    test: tuple[int, ...] = ()

    def at(self, split: str) -> tuple[int, ...]:
        """The occurrences that are taken in one split."""
        return self.dev if split == "dev" else self.test


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One intent, how viewers word it, and what a good answer does."""

    id: str
    category: str
    build: str
    """The builder that makes items of it, see `builders.BUILDERS`."""
    weight: int = 0
    """Its share within the category; 0 for one that stands `instead` of others."""
    instead: tuple[Instead, ...] = ()
    families: tuple[Family, ...]
    skills: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    tools: tuple[ExpectedTool, ...] = ()
    order: tuple[str, ...] = ()
    """Tools that must be called one after the other: the later one's arguments, or whether it is
    called at all, hang on what the earlier one says. Such a scenario stands alone, in no group."""
    facts: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    assert_: tuple[Assertion, ...] = msgspec.field(default=(), name="assert")
    tags: tuple[str, ...] = ()
    needs: Needs = Needs()
    room: str | None = None
    want: Want | None = None
    topic: str | None = None
    entry: str | None = None
    keys: Phrases = Phrases()
    offers: str | None = None
    event: Literal["join", "order"] | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One earlier turn."""

    user: str
    assistant: str


class Anchors(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the host said last: about one product, or about nothing in particular."""

    product: Phrases
    filler: Phrases


class Noise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What viewers do to spelling."""

    emoji: tuple[str, ...]
    pinyin: dict[str, str]
    openers_en: tuple[str, ...]
    openers_zh: tuple[str, ...]


class Context(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`context.yaml`: everything that stands around a comment."""

    schema: int = 1
    viewers: tuple[str, ...]
    anchor: Anchors
    history: dict[str, tuple[Turn, ...]]
    refs: dict[str, dict[str, Phrases]]
    """Kind of reference → split → wordings."""
    noise: Noise
    chatter: dict[str, Phrases]
    """Split → comments that ask nothing, for groups."""


class ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of scenarios."""

    schema: int = 1
    scenarios: tuple[Scenario, ...]


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """All scenarios and their surroundings."""

    scenarios: tuple[Scenario, ...]
    context: Context

    def of(self, category: str) -> tuple[Scenario, ...]:
        """The scenarios of one category."""
        return tuple(s for s in self.scenarios if s.category == category)


def read_library(folder: Path) -> Library:
    """Every scenario of a folder. Raises `BadFile` for ids and phrasings that stand twice."""
    files = sorted(p for p in folder.glob("*.yaml") if p.name not in (CONTEXT, "instructions.yaml"))
    scenarios = [s for path in files for s in read_yaml(path, ScenarioFile).scenarios]
    if not scenarios:
        raise BadFile(f"no scenarios in `{folder}`")
    _check(scenarios, folder)
    context = read_yaml(folder / CONTEXT, Context)
    return Library(scenarios=tuple(scenarios), context=context)


def _check(scenarios: list[Scenario], folder: Path) -> None:
    faults: list[str] = []
    ids: dict[str, Any] = {}
    texts: dict[str, Split] = {}
    for scenario in scenarios:
        for name in (scenario.id, *(f.id for f in scenario.families)):
            if name in ids:
                faults.append(f"the id `{name}` stands twice")
            ids[name] = True
        for family in scenario.families:
            for text in filter(None, (*family.en, *family.zh)):
                if texts.setdefault(text, family.split) != family.split:
                    faults.append(f"`{text}` stands in families of both splits")
        if bool(scenario.weight) == bool(scenario.instead):
            faults.append(f"`{scenario.id}` needs either a weight or `instead`")
        splits = {f.split for f in scenario.families}
        if splits != {"dev", "test"}:
            faults.append(f"`{scenario.id}` has families of {', '.join(sorted(splits))} only")
    if faults:
        raise BadFile(f"{folder}: " + "; ".join(faults))
