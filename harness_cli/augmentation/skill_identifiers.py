"""Dimension 1 (TR §3.2): what skills are called and described as, which others stand beside them.

Moves: `rename`, `describe`, `plausible`, `noise`, `mask`. A skill is masked only where it is known
what the items of the state need; what speaks of a masked skill goes with it.
"""

from functools import lru_cache
from random import Random

from harness_cli.augmentation.draft import Draft, allowed
from harness_cli.augmentation.masking import FILE, FOLDER, masked, skill_names
from harness_cli.augmentation.naming import renamed
from harness_cli.augmentation.renames import with_names
from harness_cli.augmentation.reworded import described
from harness_cli.augmentation.skill_text import folded, fronted, with_field
from harness_cli.augmentation.tables import AddedSkill, added_table, skill_table
from harness_cli.harness.frontmatter import split
from harness_cli.records.augmentation import Dimension

MOST_ADDED = 3
"""Plausible skills, and noise skills, that one state gets at most (**choice**)."""
MASKED = 0.5
"""Times the strength, the chance of one skill that nothing needs to be masked (**choice**)."""


def vary(draft: Draft, draw: Random, dimension: Dimension) -> Draft:
    """The draft with other skill identifiers."""
    strength = dimension.strength
    if allowed(dimension, "mask"):
        draft = masked(draft, draw, strength * MASKED)
    if allowed(dimension, "describe"):
        draft = _described(draft, draw, strength)
    if allowed(dimension, "rename"):
        names = skill_names(draft)
        new = renamed(names, skill_table(), names, draw, strength, joint="-")
        draft = with_names(draft, skills=new).counted(rename=len(new))
        draft = draft.mapped(skills={**draft.map.skills, **new})
    for kind in ("plausible", "noise"):
        if allowed(dimension, kind):
            draft = _added(draft, kind, draw, strength)
    return draft


def _described(draft: Draft, draw: Random, chance: float) -> Draft:
    """With other descriptions: those of the table for skills it knows, else reworded ones."""
    changed: dict[str, str | None] = {}
    for name in skill_names(draft):
        if draw.random() >= chance:
            continue
        path = f"{FOLDER}{name}{FILE}"
        front, body = fronted(draft.text(path))
        old = _description(front)
        if not old:
            continue
        table = skill_table().get(name)
        new = described(draft, old, table.descriptions if table else (), draw)
        if new != old:
            changed[path] = with_field(front, "description", new) + body
    return draft.written(changed).counted(describe=len(changed))


@lru_cache(maxsize=1024)
def _description(front: str) -> str:
    """The description in a frontmatter; empty where there is none."""
    return str(split(front.encode(), "SKILL.md").fields.get("description") or "").strip()


def _added(draft: Draft, kind: str, draw: Random, strength: float) -> Draft:
    """With some skills more; how many grows with the strength."""
    pool = list(getattr(added_table(), kind))
    taken = {*skill_names(draft), *draft.map.masked_skills}
    free = [skill for skill in pool if skill.name not in taken]
    most = min(MOST_ADDED, len(free))
    count = sum(draw.random() < strength for _ in range(most))
    chosen = draw.sample(free, count)
    files: dict[str, str | None] = {f"{FOLDER}{s.name}{FILE}": _skill(s) for s in chosen}
    added = (*draft.map.added_skills, *sorted(s.name for s in chosen))
    return draft.written(files).mapped(added_skills=added).counted(**{kind: count})


def _skill(added: AddedSkill) -> str:
    """An added skill as SKILL.md."""
    title = added.name.replace("-", " ").capitalize()
    lines = [
        "---",
        f"name: {added.name}",
        "description: >-",
        *(f"  {line}" for line in folded(added.description, width=98).split("\n")),
        "license: Apache-2.0",
        "metadata:",
        "  harness.kind: reply",
        '  harness.version: "1.0"',
        "  harness.channel: both",
        "---",
        "",
        f"# {title}",
        "",
        "## Rules",
        "",
        *(folded(rule, "- ") for rule in added.rules),
    ]
    return "\n".join(lines) + "\n"
