"""Bold ideas, proposed only where they can be tried: what the harness says in one place and not in
another.

A skill is chosen by its description alone, and what tells most about it often stands in its body:
its uses, its examples, what its reply patterns are for, the fields its tools give. These sentences
were written by people and hold for comments of any wording. Which of them help is left to trials.
"""

import re
from collections.abc import Iterable, Iterator

from harness_cli.evolution.failure import Failure
from harness_cli.evolution.propose.drafts import Ground, draft
from harness_cli.evolution.propose.sections import LONGEST, extend_skill
from harness_cli.evolution.unified import lines_of
from harness_cli.records.diagnosis import Edit, Op
from harness_cli.records.harness import Skill

SHORTEST = 24
"""Characters a description must have left for a sentence to be worth adding."""
OFTEN = 5
"""Failures that must miss a skill before its description is worth so many trials."""
MOST = 12
"""Examples, or purposes of reply patterns, that one sentence names."""

FACTS = frozenset({"fact_not_fetched", "fact_not_said"})
FEW = 2
"""Fields that the head of a reply pattern must name to be the one for details."""
DETAILS = 30
"""Fields it gets at most, those of most products first."""

_VIEWER = re.compile(r"^Viewer:\s*(.+?)\s*$", re.MULTILINE)
_PATTERN = re.compile(r"^- \*\*[^*\n]+\*\*:\s*(.+?)\s*$", re.MULTILINE)


def lifted_edits(ground: Ground) -> Iterator[Edit | None]:
    """For each skill that failures should have loaded: sentences of its own for its description."""
    for name, failures in _missed(ground).items():
        skill = ground.state.skill(name)
        text = ground.text(f"skills/{name}/SKILL.md")
        if skill is None or text is None or len(failures) < OFTEN:
            continue
        for what, sentence in _sentences(ground, skill, failures):
            yield _lifted(ground, skill, text, what, sentence, failures)
        yield _detailed(ground, skill, text, failures)


def _missed(ground: Ground) -> dict[str, list[Failure]]:
    """Skill → the failures that should have loaded it and did not, most missed first."""
    found: dict[str, list[Failure]] = {}
    for failure in ground.failures:
        for skill in failure.seen.expected_skills:
            if skill not in failure.seen.skills:
                found.setdefault(skill, []).append(failure)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def _sentences(ground: Ground, skill: Skill, failures: list[Failure]) -> Iterator[tuple[str, str]]:
    """(what it is, the sentence) for everything the skill's files say elsewhere."""
    for number, use in enumerate(bullets(skill.body, "When to use"), 1):
        yield f"use-{number}", use
    examples = [e for e in _VIEWER.findall(skill.body) if len(e) < 80]
    yield "examples", _listed("For example", (f'"{e}"' for e in examples))
    yield "purposes", _listed("Answers", [purposes_of(skill)])
    if lacks_facts(failures):
        names = [f.replace("_", " ") for f in ground.fields]
        yield "fields", _listed("Covers", names, most=60)
        yield "fields-zh", _listed("Covers", ground.fields.values(), most=60)


def lacks_facts(failures: Iterable[Failure]) -> bool:
    """Most of the failures are about fields of what is sold."""
    rows = [{o.kind for o in f.observations} & FACTS for f in failures]
    return 2 * sum(map(bool, rows)) > len(rows)


def _detailed(ground: Ground, skill: Skill, text: str, failures: list[Failure]) -> Edit | None:
    """The reply pattern that names some fields of what is sold names the others too."""
    path = f"skills/{skill.name}/SKILL.md"
    fields = {f.replace("_", " "): z for f, z in ground.fields.items()}
    names = [re.compile(rf"\b{re.escape(f)}\b") for f in fields]
    named = {m[0]: sum(n.search(m[1]) is not None for n in names) for m in _PATTERN.finditer(text)}
    head = max(named, key=lambda h: named[h], default="")
    if named.get(head, 0) < FEW or text.count(head) != 1 or not lacks_facts(failures):
        return None
    missing = [f for f in fields if f not in head][:DETAILS]
    more = ", ".join([*missing, *(z for f in missing if (z := fields[f]))])
    return draft(
        ground,
        id=f"details-in-{skill.name}",
        module=path,
        ops=[Op(op="replace", path=path, search=head, text=f"{head}, {more}")],
        rationale=f"The pattern of `{skill.name}` for one detail names a few of the fields that "
        "products have; a comment about another field does not find it.",
        fixes=[f.item_id for f in failures],
        risk="It may be chosen over a pattern of its own.",
    )


def _listed(lead: str, parts: Iterable[str], *, most: int = MOST) -> str:
    kept = [p for p in parts if p][:most]
    return f"{lead} {', '.join(kept)}." if kept else ""


def _lifted(
    ground: Ground, skill: Skill, text: str, what: str, sentence: str, failures: list[Failure]
) -> Edit | None:
    path = f"skills/{skill.name}/SKILL.md"
    sentence = fitting(sentence, LONGEST - len(skill.description) - 2)
    if not sentence or sentence in skill.description:
        return None
    return draft(
        ground,
        id=f"lift-{what}-of-{skill.name}",
        module=path,
        ops=[extend_skill(text, path, sentence)],
        rationale=f"{len(failures)} comments that `{skill.name}` should answer did not load it; "
        "its description leaves out what the skill is for by its own files.",
        fixes=[f.item_id for f in failures],
        risk="Another skill that covers the same may be loaded less often.",
    )


def fitting(sentence: str, room: int) -> str:
    """As many whole parts of a sentence as there is room for."""
    if len(sentence) <= room:
        return sentence
    cut = sentence[: max(room - 1, 0)]
    ends = max(cut.rfind(mark) for mark in (", ", "、", "; ", ". "))
    return f"{cut[:ends]}." if ends >= SHORTEST else ""


def purposes_of(skill: Skill) -> str:
    """What a skill's reply patterns are for."""
    return ", ".join(_PATTERN.findall(skill.body)[:MOST])


def uses_of(skill: Skill) -> str:
    """Its "when to use" as one text, each use in small letters."""
    uses = (u[:1].lower() + u[1:].rstrip(".") for u in bullets(skill.body, "When to use"))
    return ", ".join(uses)


def bullets(body: str, title: str) -> list[str]:
    """The bullets of a section `## title`, each in one line."""
    found: list[str] = []
    inside = False
    for line in (x.rstrip("\n") for x in lines_of(body)):
        if line.startswith("#"):
            inside = line.lstrip("# ").casefold() == title.casefold()
        elif inside and line.startswith("- "):
            found.append(line[2:].strip())
        elif inside and found and line.startswith("  "):
            found[-1] += f" {line.strip()}"
    return found
