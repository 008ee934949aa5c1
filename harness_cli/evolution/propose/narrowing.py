"""Bold ideas: words of a description that draw comments the skill is not for, taken out."""

import re
from collections.abc import Iterator

from harness_cli.evolution.failure import Failure
from harness_cli.evolution.frontmatter import find_frontmatter
from harness_cli.evolution.mining import phrases_of, plain
from harness_cli.evolution.propose.drafts import SUPPORT, Ground, draft
from harness_cli.records.diagnosis import Edit, Op

DRAWN = 2
"""Comments that must share a telling word with a part before it is suspected."""
PARTS = 8
"""Parts of one description that are tried, the most suspected first."""

_PART = re.compile(r"[^,;:.!?，；：。！？、（）()]+")


def narrowed_edits(ground: Ground) -> Iterator[Edit | None]:
    """For each skill that was loaded in another's place: its description without one part."""
    drawn: dict[str, list[Failure]] = {}
    for key in ground.keys("wrong_skill"):
        loaded = key.partition(":")[2].partition(">")[0]
        drawn.setdefault(loaded, []).extend(ground.with_key(key))
    for skill, failures in sorted(drawn.items(), key=lambda d: (-len(d[1]), d[0])):
        if len(failures) >= SUPPORT:
            yield from _narrowed(ground, skill, failures)


def _narrowed(ground: Ground, skill: str, failures: list[Failure]) -> Iterator[Edit | None]:
    path = f"skills/{skill}/SKILL.md"
    text, state = ground.text(path), ground.state.skill(skill)
    if text is None or state is None:
        return
    said = [(f, phrases_of(plain(f.seen.comment, ground.names))) for f in failures]
    suspects = []
    for part in parts_of(state.description):
        words = phrases_of(plain(part))
        hit = [f for f, phrases in said if phrases & words]
        if len(hit) >= DRAWN:
            suspects.append((len(hit), part))
    suspects.sort(key=lambda s: (-s[0], s[1]))
    for number, (hits, part) in enumerate(suspects[:PARTS], 1):
        yield draft(
            ground,
            id=f"narrow-{skill}-{number}",
            module=path,
            ops=[without(text, path, part)],
            rationale=f"`{skill}` was loaded for {len(failures)} comments that are for other "
            f'skills; {hits} of them share words with "{part}" in its description.',
            fixes=sorted({f.item_id for f in failures}),
            risk="Comments that these words rightly drew may go elsewhere.",
        )


def parts_of(description: str) -> list[str]:
    """What a description lists, part by part."""
    found = (m[0].strip(" \"'“”‘’") for m in _PART.finditer(description))
    return list(dict.fromkeys(p for p in found if len(p) > 1))


def without(text: str, path: str, part: str) -> Op | None:
    """Take a part of the description out with its quotes and the mark behind it.

    None where it stands in the frontmatter more than once, or not as it is.
    """
    span = find_frontmatter(text, name=path)
    words = r"\s+".join(re.escape(word) for word in part.split())
    spots = list(
        re.finditer(rf"[\"'“‘]?{words}[\"'”’]?[,;，；、]?[ ]?", text[span.start : span.end])
    )
    if len(spots) != 1 or text.count(spots[0][0]) != 1:
        return None
    return Op(op="replace", path=path, search=spots[0][0], text="\n  " * ("\n" in spots[0][0]))
