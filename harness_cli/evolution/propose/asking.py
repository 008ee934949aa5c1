"""A skill that is loaded and cannot ask back gets the words for it from the skill that can."""

import re
from collections.abc import Iterator

from harness_cli.evolution.failure import Failure
from harness_cli.evolution.propose.drafts import SUPPORT, Ground, draft
from harness_cli.evolution.unified import lines_of
from harness_cli.records.diagnosis import Edit, Op

PURPOSE = "what is meant is not named and cannot be found"
"""When the borrowed pattern is used. It speaks of the request, not of any comment of the run."""

_HEAD = re.compile(r"^- \*\*(?P<key>[^*\n]+)\*\*:")
_WORDING = re.compile(r"^\s+- (?P<language>[a-z]{2}): (?P<text>.+?)\s*$")


def asking_edits(ground: Ground) -> Iterator[Edit | None]:
    """For each skill that guessed where it should have asked back: a reply pattern that asks."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for failure in ground.with_key("missed_clarification"):
        for loaded in failure.seen.skills[:1]:
            for right in failure.seen.expected_skills[:1]:
                groups.setdefault((loaded, right), []).append(failure)
    for (loaded, right), failures in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        if loaded != right and len(failures) >= SUPPORT:
            yield _asks(ground, loaded, right, failures)


def _asks(ground: Ground, loaded: str, right: str, failures: list[Failure]) -> Edit | None:
    path = f"skills/{loaded}/SKILL.md"
    text, other = ground.text(path), ground.text(f"skills/{right}/SKILL.md")
    if text is None or other is None or asks_back(text):
        return None
    words = next(iter(asks_back(other)), None)
    if words is None:
        return None
    pattern = f"- **clarify**: {PURPOSE}\n" + "".join(f"  - {lang}: {t}\n" for lang, t in words)
    return draft(
        ground,
        id=f"ask-back-in-{loaded}",
        module=path,
        ops=[_behind_patterns(text, path, pattern)],
        rationale=f"{len(failures)} comments left open what is meant; `{loaded}` was loaded and "
        f"has no reply that asks back, as `{right}` has.",
        fixes=[f.item_id for f in failures],
        risk="It may ask where it could have answered.",
    )


def asks_back(text: str) -> list[tuple[tuple[str, str], ...]]:
    """(language, wording) of every reply pattern whose wordings are all questions without slots."""
    found: list[list[tuple[str, str]]] = []
    for line in lines_of(text):
        if _HEAD.match(line):
            found.append([])
        elif found and (wording := _WORDING.match(line.rstrip("\n"))):
            found[-1].append((wording["language"], wording["text"]))
    return [tuple(p) for p in found if p and all(_asks_only(t) for _, t in p)]


def _asks_only(text: str) -> bool:
    return "{" not in text and text.endswith(("?", "？"))


def _behind_patterns(text: str, path: str, pattern: str) -> Op | None:
    """Put a pattern behind the last one of the section; None where the skill has no patterns."""
    lines = lines_of(text)
    heads = [i for i, line in enumerate(lines) if _HEAD.match(line)]
    if not heads:
        return None
    last = heads[-1]
    while last + 1 < len(lines) and _WORDING.match(lines[last + 1].rstrip("\n")):
        last += 1
    end = "" if lines[last].endswith("\n") else "\n"
    block = "".join(lines[heads[-1] : last + 1])
    if text.count(block) != 1:
        return None
    return Op(op="replace", path=path, search=block, text=block + end + pattern)
