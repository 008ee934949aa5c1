"""An augmented harness state from a base, a recipe and a seed (TR §3.2).

    base ──▶ skill_content ▶ system_prompt ▶ hook_variants ▶ tool_definitions ▶ skill_identifiers
                                                          │
                           discarded, drawn again ◀── validate ──▶ Augmented(files, map, changes)

Every dimension draws from a generator of its own, so that leaving one out changes nothing in the
others. Names come last: what is reworded before is found in the tables under the base's names.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from harness_cli.augmentation import (
    hook_variants,
    skill_content,
    skill_identifiers,
    system_prompt,
    tool_definitions,
)
from harness_cli.augmentation.draft import CLASSES, JUDGES, Draft, Vary
from harness_cli.augmentation.masking import FOLDER
from harness_cli.augmentation.paraphrases import Book
from harness_cli.augmentation.validate import Fault, base_state, examined
from harness_cli.errors import HarnessError, UsageError
from harness_cli.harness.load import loaded
from harness_cli.harness.memo import Memo
from harness_cli.records.augmentation import AugmentationMap, DimensionName, Recipe
from harness_cli.records.canonical import digest
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.store.tree import FILE, Entry, tree_id

ORDER: dict[DimensionName, Vary] = {
    "skill_content": skill_content.vary,
    "system_prompt": system_prompt.vary,
    "hook_variants": hook_variants.vary,
    "tool_definitions": tool_definitions.vary,
    "skill_identifiers": skill_identifiers.vary,
}
"""The dimensions in the order in which they are applied."""
_ENTRIES: Memo[Mapping[str, Entry]] = Memo(8)
_IDS: Memo[str] = Memo(8)
_LOADERS: Memo[str] = Memo(8)


@dataclass(frozen=True, slots=True)
class Change:
    """What one dimension did to a state: `distance.edits` says how much."""

    dimension: DimensionName
    moves: Mapping[str, int]
    """Kind of change → how often."""
    before: Mapping[str, Entry]
    after: Mapping[str, Entry]
    names: AugmentationMap
    """The map as it stood behind this dimension: which file became which."""


@dataclass(frozen=True, slots=True)
class Augmented:
    """One augmented state: its files, its names, what was changed, what was discarded before."""

    files: Mapping[str, Entry]
    map: AugmentationMap
    changes: tuple[Change, ...]
    state: HarnessState
    """The same, loaded."""
    discards: tuple[Fault, ...] = ()
    """One reason for each draw that was not valid."""


class NoState(HarnessError):
    """Every draw of a state was discarded."""

    discards: tuple[Fault, ...] = ()
    """One reason for each."""


def augment(
    base: HarnessState | Mapping[str, Entry],
    recipe: Recipe,
    seed: int,
    *,
    name: str | None = None,
    items: Sequence[Item] = (),
    book: Book | None = None,
) -> Augmented:
    """The state that a recipe and a seed make of a base; the same of the same.

    `items` are those that are to run under it: their skills are never masked, and the map lists
    them. Without items nobody knows what is needed, and nothing is masked. Raises `NoState` when
    `recipe.attempts` draws in a row were not valid, with the reasons.
    """
    discards: list[Fault] = []
    for made, faults in draws(base, recipe, seed, name=name, items=items, book=book):
        if made is not None:
            return replace(made, discards=tuple(discards))
        discards.append(faults[0])
    raise no_state(name or f"seed {seed}", discards)


def draws(
    base: HarnessState | Mapping[str, Entry],
    recipe: Recipe,
    seed: int,
    *,
    name: str | None = None,
    items: Sequence[Item] = (),
    book: Book | None = None,
) -> Iterator[tuple[Augmented | None, list[Fault]]]:
    """One draw after the other: a state, or what is wrong with it."""
    book = book or Book()
    start = _start(base, recipe, seed, name or f"seed-{seed}", items, book)
    for attempt in range(recipe.attempts):
        made, changes = _drawn(start, recipe, f"{seed}/{attempt}")
        state, faults = examined(start, made, Book(start.book).originals)
        if state is None or faults:
            yield None, faults
        else:
            yield Augmented(made.files, made.map, tuple(changes), state), []


def rebuilt(
    base: Mapping[str, Entry],
    recipe: Recipe,
    seed: int,
    attempt: int,
    *,
    name: str,
    items: Sequence[Item] = (),
) -> Augmented:
    """The state of one draw that was found valid before: it is loaded, and not examined again."""
    start = _start(base, recipe, seed, name, items, Book())
    made, changes = _drawn(start, recipe, f"{seed}/{attempt}")
    return Augmented(made.files, made.map, tuple(changes), loaded(made.files)[0])


def no_state(what: str, discards: Sequence[Fault]) -> NoState:
    """The error of a state that could not be drawn."""
    kinds = ", ".join(
        f"{n} × {kind}" for kind, n in Counter(f.kind for f in discards).most_common()
    )
    first = f"; the first: {discards[0]}" if discards else ""
    made = NoState(
        f"no valid state for {what}: {len(discards)} draws were discarded ({kinds}){first}",
        hint="another seed, less strength, or more `attempts` in the recipe",
    )
    made.discards = tuple(discards)
    return made


def base_files(base: HarnessState | Mapping[str, Entry]) -> Mapping[str, Entry]:
    """The files of a base; a loaded state's are plain files."""
    if isinstance(base, HarnessState):
        return _ENTRIES.get((base,), None, lambda: _entries(base))
    return base


def needed_skills(items: Sequence[Item], files: Mapping[str, Entry]) -> frozenset[str] | None:
    """Skills that items expect, and those that name a tool which they expect; None for no items."""
    if not items:
        return None
    expected = {skill for item in items for skill in item.expect.skills}
    tools = {tool.name for item in items for tool in item.expect.tools}
    for path, entry in files.items():
        if path.startswith(FOLDER) and path.endswith("/SKILL.md"):
            text = entry.data.decode("utf-8", "replace")
            if any(f"`{tool}`" in text for tool in tools):
                expected.add(path.split("/")[1])
    return frozenset(expected)


def _start(
    base: HarnessState | Mapping[str, Entry],
    recipe: Recipe,
    seed: int,
    name: str,
    items: Sequence[Item],
    book: Book,
) -> Draft:
    files = base_files(base)
    needed = needed_skills(items, files)
    given = AugmentationMap(
        state=name,
        base=base.id
        if isinstance(base, HarnessState)
        else _IDS.get((files,), None, lambda: _id(files)),
        seed=seed,
        recipe=digest(recipe)[:12],
        items=tuple(item.id for item in items),
        loader=_LOADERS.get((files,), None, lambda: _loader(files)),
    )
    return Draft(
        files=files,
        map=given,
        needed=needed if needed is None else needed | frozenset(recipe.keep),
        book={**book.texts, **(recipe.paraphrase.wordings if recipe.paraphrase else {})},
        share=recipe.paraphrase.share if recipe.paraphrase else 0.0,
    )


def _drawn(start: Draft, recipe: Recipe, seed: str) -> tuple[Draft, list[Change]]:
    """One draw of all dimensions."""
    draft, changes = start, []
    for kind, vary in ORDER.items():
        dimension = recipe.dimensions.get(kind)
        draw = Random(f"{seed}/{kind}")
        if dimension is None or draw.random() < recipe.skip:
            continue
        if not 0 <= dimension.strength <= 1:
            raise UsageError(
                f"`{kind}`: a strength of {dimension.strength:g}", hint="a chance, from 0 to 1"
            )
        made = vary(replace(draft, moves={}), draw, dimension)
        changes.append(Change(kind, made.moves, draft.files, made.files, made.map))
        draft = made
    applied = tuple(sorted(c.dimension for c in changes if c.moves))
    return draft.mapped(dimensions=applied), changes


def _entries(base: HarnessState) -> Mapping[str, Entry]:
    return {path: Entry(FILE, data) for path, data in base.files.items()}


def _id(files: Mapping[str, Entry]) -> str:
    aside = (JUDGES, CLASSES)
    return tree_id({p: e for p, e in files.items() if not p.startswith(aside)})


def _loader(files: Mapping[str, Entry]) -> str:
    """The tool that loads a skill, whatever the base calls it."""
    found = (t.name for t in base_state(files).all_tools() if t.operation == "load_skill")
    return next(found, "load_skill")
