"""Edits about which skill is loaded: triggers for the right one, exclusions for the wrong one."""

from collections.abc import Iterator

from harness_cli.evolution.failure import Failure, Seen
from harness_cli.evolution.mining import matches
from harness_cli.evolution.propose.drafts import SUPPORT, Ground, draft, hit, mine, quoted
from harness_cli.evolution.propose.lifting import fitting, uses_of
from harness_cli.evolution.propose.sections import LONGEST, add_bullet, extend_skill
from harness_cli.records.diagnosis import Edit, Op

PAIR = 2
"""Comments that must share a phrase where a trial decides whether it helps."""


def skill_edits(ground: Ground) -> Iterator[Edit | None]:
    """One edit per skill that failures should have loaded, and per confusion of two skills."""
    for skill, failures in _missed(ground).items():
        yield _triggers(ground, skill, failures)
    for key in ground.keys("wrong_skill"):
        loaded, _, right = key.partition(":")[2].partition(">")
        yield _exclusion(ground, loaded, right, ground.with_key(key))


def bold_triggers(ground: Ground) -> Iterator[Edit | None]:
    """A bold idea per skill: trigger phrases that stand in two failing comments alone."""
    for skill, failures in _missed(ground).items():
        yield _triggers(ground, skill, failures, bold=True)


def _missed(ground: Ground) -> dict[str, list[Failure]]:
    """Skill → the failures that should have loaded it, by how often each confusion is."""
    wanted: dict[str, list[Failure]] = {}
    for key in [*ground.keys("wrong_skill"), *ground.keys("skill_not_loaded")]:
        skill = key.partition(":")[2].rpartition(">")[2]
        known = wanted.setdefault(skill, [])
        known += [f for f in ground.with_key(key) if f not in known]
    return wanted


def _triggers(
    ground: Ground, skill: str, failures: list[Failure], *, bold: bool = False
) -> Edit | None:
    path = f"skills/{skill}/SKILL.md"
    text = ground.text(path)
    if text is None:
        return None
    others = [s for s in ground.seen if not _wants(s, skill)]
    wanting, rest = [f.seen.comment for f in failures], [s.comment for s in others]
    phrases = mine(ground, wanting, rest)
    if bold:
        more = mine(ground, wanting, rest, support=PAIR)
        phrases = more if more != phrases else []
    if not phrases:
        return None
    said = quoted(phrases)
    ops = [
        extend_skill(text, path, f"Also for comments like {said}."),
        add_bullet(text, path, "When to use", f"The comment says something like {said}."),
    ]
    return draft(
        ground,
        id=f"{'bold-' if bold else ''}trigger-{skill}",
        module=path,
        ops=ops,
        rationale=f"{len(failures)} comments that `{skill}` should answer did not load it; "
        f"these words mark them: {said}.",
        fixes=hit(failures, phrases),
        at_risk=[s for s in others if s.passed and matches(phrases, s.comment)],
    )


def _wants(seen: Seen, skill: str) -> bool:
    return skill in seen.expected_skills or (not seen.expected_skills and skill in seen.skills)


def _exclusion(ground: Ground, loaded: str, right: str, failures: list[Failure]) -> Edit | None:
    path = f"skills/{loaded}/SKILL.md"
    text = ground.text(path)
    if text is None or ground.state.skill(right) is None:
        return None
    ids = {f.item_id for f in failures}
    others = [s for s in ground.seen if s.item_id not in ids and not _wants(s, right)]
    phrases = mine(ground, [f.seen.comment for f in failures], (s.comment for s in others))
    if not phrases:
        return None
    bullet = f"When the comment says something like {quoted(phrases)}: use `{right}`."
    op: Op | None = add_bullet(text, path, "Do not use", bullet)
    return draft(
        ground,
        id=f"exclude-{right}-from-{loaded}",
        module=path,
        ops=[op],
        rationale=f"`{loaded}` was loaded for {len(failures)} comments that are for `{right}`.",
        fixes=hit(failures, phrases),
        at_risk=[s for s in others if s.passed and matches(phrases, s.comment)],
    )


def kept_out_edits(ground: Ground) -> Iterator[Edit | None]:
    """A bold idea per confusion: the wrong skill's description names the right one's uses as not
    its own. A skill is chosen by its description, where a "do not use" of its body is not seen.
    """
    for key in ground.keys("wrong_skill"):
        loaded, _, right = key.partition(":")[2].partition(">")
        path, other = f"skills/{loaded}/SKILL.md", ground.state.skill(right)
        text, failures = ground.text(path), ground.with_key(key)
        state = ground.state.skill(loaded)
        if text is None or other is None or state is None or len(failures) < SUPPORT:
            continue
        uses = uses_of(other)
        sentence = fitting(f"Not for {uses}", LONGEST - len(state.description) - 2)
        yield draft(
            ground,
            id=f"keep-{right}-out-of-{loaded}",
            module=path,
            ops=[extend_skill(text, path, sentence) if sentence and uses else None],
            rationale=f"`{loaded}` was loaded for {len(failures)} comments that are for "
            f"`{right}`; what that one is for is named as not its own.",
            fixes=[f.item_id for f in failures],
            risk="It may be loaded less often where it is right.",
        )
