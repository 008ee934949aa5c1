"""Edits about what is said: facts that were fetched and left out, refusals, language, length."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from harness_cli.evolution.failure import Failure
from harness_cli.evolution.mining import matches
from harness_cli.evolution.propose.drafts import SUPPORT, Ground, draft, hit, mine, quoted
from harness_cli.evolution.propose.sections import add_bullet, extend_yaml
from harness_cli.evolution.unified import lines_of
from harness_cli.harness.parts import pipeline_path
from harness_cli.records.diagnosis import Edit, Op
from harness_cli.records.reader import dump_yaml

_PATTERN = re.compile(r"^- \*\*(?P<name>[^*]+)\*\*:(?P<when>.*)$")
NO_CLAIM = ("missed_comment", "over_refusal", "suppressed", "unwanted_reply")
"""Findings about what was not said, or said to nobody: saying less would mend none of them."""


def fact_edits(ground: Ground) -> Iterator[Edit | None]:
    """A tool gave the fact and the reply lacks it: say which words ask for it."""
    groups: dict[tuple[str, str, str], list[Failure]] = {}
    for failure in ground.failures:
        for o in failure.observations:
            if o.kind == "fact_not_said" and o.side == "harness":
                for skill in failure.seen.skills[:1]:
                    groups.setdefault((skill, o.detail, o.where), []).append(failure)
    for (skill, field, where), failures in sorted(groups.items()):
        if len(failures) >= SUPPORT:
            yield _said(ground, skill, field, where, failures)


def _said(
    ground: Ground, skill: str, field: str, where: str, failures: list[Failure]
) -> Edit | None:
    path = f"skills/{skill}/SKILL.md"
    text = ground.text(path)
    if text is None:
        return None
    tool, _, slot = where.partition(":")
    ids = {f.item_id for f in failures}
    others = [s for s in ground.seen if s.item_id not in ids]
    phrases = mine(ground, [f.seen.comment for f in failures], (s.comment for s in others))
    ops: list[Op | None] = [_widened(text, path, slot, phrases)]
    if ops == [None]:
        asked = f" when the comment says something like {quoted(phrases)}" if phrases else ""
        rule = f"Say `{slot}` from the result of `{tool}`{asked}."
        ops = [add_bullet(text, path, "Rules", rule)]
    return draft(
        ground,
        id=f"say-{_slug(slot or field)}-of-{_slug(tool)}-in-{skill}",
        module=path,
        ops=ops,
        rationale=f"In {len(failures)} replies `{tool}` gave `{slot}` and the reply left it out.",
        fixes=hit(failures, phrases) if phrases else tuple(sorted(ids)),
        at_risk=[s for s in others if s.passed and phrases and matches(phrases, s.comment)],
    )


def _widened(text: str, path: str, slot: str, phrases: Sequence[str]) -> Op | None:
    """More words for the reply pattern that has the slot: its head line says when it is used."""
    lines = lines_of(text)
    head: int | None = None
    for i, line in enumerate(lines):
        if _PATTERN.match(line.rstrip("\n")):
            head = i
        elif head is not None and f"{{{slot}}}" in line and slot and phrases:
            old = lines[head].rstrip("\n")
            fresh = [p for p in phrases if p not in old]
            if not fresh or text.count(old + "\n") != 1:
                return None
            return Op(
                op="replace", path=path, search=old + "\n", text=f"{old}, {', '.join(fresh)}\n"
            )
    return None


def refusal_edits(ground: Ground) -> Iterator[Edit | None]:
    """Refusals that were wrong, and answers that should have been refusals."""
    path = "tools/refuse.yaml"
    text = ground.text(path)
    if text is None:
        return
    over, missed = ground.with_key("over_refusal"), ground.with_key("missed_refusal")
    for failures, name, words in (
        (over, "refuse-less", "Do not use it for comments like {}."),
        (missed, "refuse-more", "Use it for comments like {}."),
    ):
        ids = {f.item_id for f in failures}
        others = [s for s in ground.seen if s.item_id not in ids]
        phrases = mine(ground, [f.seen.comment for f in failures], (s.comment for s in others))
        if phrases:
            yield draft(
                ground,
                id=name,
                module=path,
                ops=[extend_yaml(text, path, words.format(quoted(phrases)))],
                rationale=f"{len(failures)} comments were "
                + (
                    "refused though they had an answer."
                    if over is failures
                    else "answered in error."
                ),
                fixes=hit(failures, phrases),
                at_risk=[s for s in others if s.passed and matches(phrases, s.comment)],
            )


def language_edit(ground: Ground) -> Iterator[Edit | None]:
    """Replies in another language than the comment's: check it before the reply goes out."""
    failures = [
        f for f in ground.failures if any(o.kind == "wrong_language" for o in f.observations)
    ]
    checked = any(
        c.check == "output_format" and c.with_.get("language") == "match_viewer"
        for hook in ground.state.hooks
        for c in hook.checks
    )
    path = "hooks/reply-language.yaml"
    if checked or path in ground.files:
        return
    hook = {
        "schema": 1,
        "name": "reply-language",
        "event": "before_reply",
        "description": "A reply is in the language of the comment it answers.",
        "priority": 70,
        "checks": [{"check": "output_format", "with": {"language": "match_viewer"}}],
        "action": "retry",
        "message": "Not sent: {reason}. Say the same in the viewer's language.",
    }
    yield draft(
        ground,
        id="reply-language",
        module=path,
        ops=[Op(op="write", path=path, text=dump_yaml(hook))],
        rationale=f"{len(failures)} replies were in another language than the comment.",
        fixes=[f.item_id for f in failures],
    )


def limit_edits(ground: Ground) -> Iterator[Edit | None]:
    """A length check that steps in mostly where items fail: widen its limit within its range."""
    for hook in ground.state.hooks:
        for check in hook.checks:
            name = check.with_.get("constraint")
            if check.check == "length" and isinstance(name, str):
                yield _wider(ground, hook.name, name)


def _wider(ground: Ground, hook: str, name: str) -> Edit | None:
    pipeline = ground.state.pipelines.get(ground.pipeline)
    known = pipeline.constraints.get(name) if pipeline else None
    stopped = [
        f
        for f in ground.failures
        if any(o.kind == "hook" and o.detail.startswith(f"{hook}:") for o in f.observations)
    ]
    if known is None or len(stopped) < SUPPORT:
        return None
    value = min(known.range[1], known.value + max(1, round(known.value * 0.2)))
    path = pipeline_path(ground.pipeline)
    pointer = f"/constraints/{name}/value"
    return draft(
        ground,
        id=f"widen-{_slug(name)}",
        module=path,
        ops=[Op(op="json-pointer", path=path, pointer=pointer, value=value)]
        if value > known.value
        else [],
        rationale=f"The check `{hook}` stepped in for {len(stopped)} failing replies; "
        f"`{name}` may go from {known.value} to {value} within its range.",
        fixes=[f.item_id for f in stopped],
        risk="Every reply may become longer.",
    )


def claim_edits(ground: Ground) -> Iterator[Edit | None]:
    """Claims the judge found wrong, with no cause before them: a rule in the skill they are of."""
    for key in ground.keys("finding"):
        kind = key.partition(":")[2]
        if kind.startswith("missing") or kind in NO_CLAIM:
            continue
        failures = [
            f
            for f in ground.with_key(key)
            if f.seen.skills and f.leading is not None and f.leading.key == key
        ]
        if len(failures) < SUPPORT:
            continue
        counts = Counter(f.seen.skills[0] for f in failures)
        skill = min(counts, key=lambda s: (-counts[s], s))
        path = f"skills/{skill}/SKILL.md"
        text = ground.text(path)
        if text is None:
            continue
        about = kind.replace("_", " ")
        rule = f"No {about}: leave out what no tool result of this request says."
        yield draft(
            ground,
            id=f"no-{_slug(kind)}-in-{skill}",
            module=path,
            ops=[add_bullet(text, path, "Rules", rule)],
            rationale=f"The judge found `{kind}` in {counts[skill]} replies made with `{skill}`.",
            fixes=[f.item_id for f in failures if f.seen.skills[0] == skill],
            risk="A cautious reply may leave out what it could say.",
        )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "x"
