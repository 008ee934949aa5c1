"""Items of `harness_edit`: the library's scenarios in phrasings of their own (TR §5.5)."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Assertion, Item
from harness_cli.records.reader import read_yaml
from harness_cli.simulator.scenarios.items import MIX, make_items
from harness_cli.simulator.scenarios.library import Family, Library, Phrases, Scenario

FILE = "held_out/phrases.yaml"
SIZES = {"dev": 500, "test": 1000}
"""TR §5.5: for diagnosis and editing, and held out."""
CHECK = Assertion(type="naturalness")


class Rephrased(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario in other words, per split."""

    scenario: str
    dev: Phrases
    test: Phrases


class PhrasesFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`held_out/phrases.yaml`."""

    schema: int = 1
    chatter: dict[str, Phrases]
    """Split → comments that ask nothing, for groups."""
    phrases: tuple[Rephrased, ...]


def held_out_library(library: Library, scenarios: Path) -> Library:
    """The library with its families replaced by the held-out ones; scenarios without any go.

    Raises `BadFile` for a scenario that is none and for a phrasing that stands twice, be it in the
    library or in both splits.
    """
    file = read_yaml(scenarios / FILE, PhrasesFile)
    given = file.phrases
    known = {s.id: s for s in library.scenarios}
    taken = {t for s in library.scenarios for f in s.families for t in (*f.en, *f.zh)}
    faults = [f"`{g.scenario}` is no scenario" for g in given if g.scenario not in known]
    texts = [t for g in given for part in (g.dev, g.test) for t in (*part.en, *part.zh)]
    faults += [f"`{t}` stands twice" for t in sorted({t for t in texts if texts.count(t) > 1})]
    faults += [f"`{t}` stands in the library" for t in sorted(set(texts) & taken)]
    if faults:
        raise BadFile(f"{FILE}: " + "; ".join(faults))
    return Library(
        scenarios=tuple(_rephrased(known[g.scenario], g) for g in given),
        context=msgspec.structs.replace(library.context, chatter=file.chatter),
    )


def held_out_items(library: Library, world: Catalogue, *, seed: int) -> list[Item]:
    """Dev and test items, each with the check of naturalness beside its own assertions."""
    mix = {category: share for category, share in MIX.items() if library.of(category)}
    items = [
        item
        for split, total in SIZES.items()
        for item in make_items(library, world, split, seed=seed, total=total, mix=mix)
    ]
    return [_numbered(item, n) for n, item in enumerate(items, 1)]


def _numbered(item: Item, number: int) -> Item:
    return msgspec.structs.replace(item, id=f"he-{number:04d}", assert_=(*item.assert_, CHECK))


def _rephrased(scenario: Scenario, given: Rephrased) -> Scenario:
    families = _families(scenario.id, given)
    return msgspec.structs.replace(scenario, families=tuple(families))


def _families(name: str, given: Rephrased) -> Iterable[Family]:
    yield Family(id=f"held-{name}-dev", split="dev", en=given.dev.en, zh=given.dev.zh)
    yield Family(id=f"held-{name}-test", split="test", en=given.test.en, zh=given.test.zh)
