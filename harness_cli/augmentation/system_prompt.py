"""Dimension 4 (TR §3.2): the system prompt in another order, its numbers moved within their ranges.

Moves: `blocks` (their order), `entries` (sections and list entries within a block), `numbers`,
`paraphrase`. User blocks keep their order, steps and lists that refer to themselves keep theirs,
and a pipeline whose text says `above` or `below` keeps its blocks where they are.
"""

import re
from random import Random
from typing import Any

import msgspec

from harness_cli.augmentation.draft import Draft, allowed, yaml_text
from harness_cli.augmentation.reworded import reworded
from harness_cli.augmentation.skill_content import ordered, shuffled
from harness_cli.augmentation.skill_text import (
    Part,
    entries,
    folded,
    joined,
    mark_of,
    parts,
    with_entries,
)
from harness_cli.augmentation.speech import unfolded
from harness_cli.augmentation.tables import phrases
from harness_cli.records.augmentation import Dimension

BLOCKS, PIPELINES = "prompts/blocks/", "prompts/pipeline"
_PLACE = re.compile(r"\b(?:above|below)\b")


def vary(draft: Draft, draw: Random, dimension: Dimension) -> Draft:
    """The draft with another system prompt."""
    draft = _inside(draft, draw, dimension)
    for path in draft.texts(PIPELINES, ext=".yaml"):
        data = draft.data(path)
        before = msgspec.json.encode(data)
        if allowed(dimension, "blocks") and draw.random() < dimension.strength:
            draft = _unplaced(draft, data)
            draft = draft.counted(blocks=_reordered(draft, data, draw))
        moved = _numbers(data, draw, dimension) if allowed(dimension, "numbers") else {}
        if moved:
            name = path.removeprefix(PIPELINES).removesuffix(".yaml").removeprefix(".")
            constraints = {**draft.map.constraints, name or "default": moved}
            draft = draft.mapped(constraints=constraints).counted(numbers=len(moved))
        if msgspec.json.encode(data) != before:
            draft = draft.written({path: yaml_text(data)})
    return draft


def _numbers(data: dict[str, Any], draw: Random, dimension: Dimension) -> dict[str, int]:
    """Move constraints within their ranges; constraint → new value."""
    moved: dict[str, int] = {}
    for name, constraint in (data.get("constraints") or {}).items():
        if draw.random() >= dimension.strength:
            continue
        low, high = constraint["range"]
        value = draw.randint(low, high)
        if value != constraint["value"]:
            constraint["value"] = moved[name] = value
    return moved


def _unplaced(draft: Draft, data: dict[str, Any]) -> Draft:
    """Say without a place what the table knows how to say without one."""
    changed: dict[str, str | None] = {}
    for block in data["blocks"]:
        path = f"{BLOCKS}{block['name']}.md"
        old = text = draft.text(path) if path in draft.files else ""
        for said, instead in phrases().places.items():
            text = re.sub(said.replace(" ", r"\s+"), instead, text)
        if text != old:
            changed[path] = text
    return draft.written(changed)


def _reordered(draft: Draft, data: dict[str, Any], draw: Random) -> bool:
    """Shuffle the system blocks of a pipeline; whether that changed anything."""
    blocks = data["blocks"]
    system = [b for b in blocks if b.get("role", "system") == "system"]
    texts = [draft.text(p) for b in system if (p := f"{BLOCKS}{b['name']}.md") in draft.files]
    if any(_PLACE.search(text) for text in texts):
        return False
    order = list(system)
    draw.shuffle(order)
    data["blocks"] = order + [b for b in blocks if b not in system]
    return order != system


def _inside(draft: Draft, draw: Random, dimension: Dimension) -> Draft:
    """Sections and entries of blocks in another order, entries in other words."""
    changed: dict[str, str | None] = {}
    counts = {"entries": 0, "paraphrase": 0}
    for path, text in draft.texts(BLOCKS, ext=".md").items():
        found = parts(text, "#")
        made = [_part(draft, part, draw, dimension, counts) for part in found]
        movable = allowed(dimension, "entries") and "{%" not in text and len(made) > 2
        if movable and draw.random() < dimension.strength:
            rest = made[1:]
            draw.shuffle(rest)
            counts["entries"] += rest != made[1:]
            made = made[:1] + rest
        if tuple(made) != found:
            changed[path] = joined(made)
    return draft.written(changed).counted(**counts)


def _part(
    draft: Draft, part: Part, draw: Random, dimension: Dimension, counts: dict[str, int]
) -> Part:
    before, listed, behind = entries(part)
    if not listed:
        return part
    made = list(listed)
    if allowed(dimension, "paraphrase"):
        made = [_reworded(draft, entry, draw, dimension.strength) for entry in made]
        counts["paraphrase"] += sum(a != b for a, b in zip(made, listed, strict=True))
    movable = allowed(dimension, "entries") and len(made) > 1 and not ordered(listed)
    if movable and draw.random() < dimension.strength:
        made = shuffled(made, draw)
        counts["entries"] += 1
    return with_entries(part, before, made, behind)


def _reworded(draft: Draft, entry: str, draw: Random, chance: float) -> str:
    mark = mark_of(entry)
    old = unfolded(entry[len(mark) :])
    new = reworded(draft, old, draw, chance)
    return entry if new == old else folded(new, mark)
