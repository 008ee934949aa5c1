"""Skills left out: a random part of those that nothing needs, and what speaks of them."""

from dataclasses import replace
from random import Random

from harness_cli.augmentation.draft import Draft
from harness_cli.augmentation.skill_text import (
    Part,
    entries,
    fronted,
    joined,
    parts,
    with_entries,
)
from harness_cli.augmentation.speech import Speech
from harness_cli.augmentation.tables import phrases

FOLDER, FILE = "skills/", "/SKILL.md"
DROPPABLE = ("when to use", "do not use", "examples")
"""Sections in which an entry that points to another skill may go with that skill."""


def skill_names(draft: Draft) -> list[str]:
    """The skills of the draft, by name."""
    found = (p for p in draft.files if p.startswith(FOLDER) and p.endswith(FILE))
    return sorted(p.removeprefix(FOLDER).removesuffix(FILE) for p in found)


def masked(draft: Draft, draw: Random, chance: float) -> Draft:
    """Without a random part of the skills that may go; none where that is not known."""
    if draft.needed is None:
        return draft
    for name in skill_names(draft):
        if draw.random() >= chance or name in draft.needed:
            continue
        without = _without(draft, name)
        if without is not None:
            gone = (*draft.map.masked_skills, name)
            draft = without.mapped(masked_skills=gone).counted(mask=1)
    return draft


def _without(draft: Draft, name: str) -> Draft | None:
    """The draft without one skill; None where something that must stay speaks of it."""
    speech = Speech({name: name})
    changed: dict[str, str | None] = {}
    for path in sorted(draft.files):
        if path.startswith(f"{FOLDER}{name}/"):
            changed[path] = None
            continue
        if not path.startswith((FOLDER, "prompts/", "hooks/", "tools/")) or path.endswith(".json"):
            continue
        if not speech.spoken(draft.text(path)):
            continue
        left = _unmentioned(draft.text(path), speech) if path.startswith(FOLDER) else None
        if left is None:
            return None
        changed[path] = left
    others = [draft.text(f"{FOLDER}{n}{FILE}") for n in skill_names(draft) if n != name]
    if all("harness.kind: strategy" in text for text in others):
        return None
    return draft.written(changed)


def _unmentioned(text: str, speech: Speech) -> str | None:
    """A skill without the entries that speak of another; None where more than entries does."""
    front, body = fronted(text)
    made = front + "\n" + joined(_pruned(part, speech) for part in parts(body, "##"))
    return None if speech.spoken(made) else made


def _pruned(part: Part, speech: Speech) -> Part:
    if not any(part.title in phrases().headings[kind] for kind in DROPPABLE):
        return part
    before, listed, behind = entries(part)
    if listed:
        kept = [e for e in listed if not speech.spoken(e)]
        return with_entries(part, before, kept, behind) if kept else part
    kept = [p for p in "\n".join(part.lines).strip("\n").split("\n\n") if not speech.spoken(p)]
    return replace(part, lines=("", *"\n\n".join(kept).split("\n"))) if kept else part
