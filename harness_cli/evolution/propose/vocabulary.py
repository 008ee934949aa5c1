"""Edits that name what a skill and a tool cover: the fields that were asked for and not fetched.

Fields are words of the catalogue, not of the comments, so they hold for questions worded otherwise.
"""

import re
from collections.abc import Iterator, Sequence

from harness_cli.evolution.failure import Failure
from harness_cli.evolution.propose.drafts import Ground, draft
from harness_cli.evolution.propose.sections import add_bullet, extend_skill, extend_yaml
from harness_cli.records.diagnosis import Edit

TWICE = 2
"""Items that must miss a field before it is named, unless that names none in the whole run."""
MOST = 24
"""Fields one edit may name."""
_FIELD = re.compile(r"[a-z]+(?:_[a-z]+)*")


def vocabulary_edits(ground: Ground) -> Iterator[Edit | None]:
    """For each skill that was not loaded: name the fields it covers; the same for its tools."""
    groups: dict[str, list[tuple[Failure, str]]] = {}
    for failure in ground.failures:
        fields = [f for o in failure.observations if (f := _field(o.key))]
        missed = {s for s in failure.seen.expected_skills if s not in failure.seen.skills}
        for skill in missed or set(failure.seen.expected_skills):
            groups.setdefault(skill, []).extend((failure, f) for f in fields)
    made: list[Edit | None] = []
    for least in (TWICE, 1):  # a small run hardly repeats a field; an edit needs its support anyway
        if not any(made):
            made = [_covering(ground, s, pairs, least) for s, pairs in sorted(groups.items())]
    yield from made


def _field(key: str) -> str | None:
    """The field of a `fact_not_fetched` key as a word; ids and nested names are none."""
    kind, _, detail = key.partition(":")
    field = detail.rpartition(".")[2]
    if kind != "fact_not_fetched" or not _FIELD.fullmatch(field) or field == "name":
        return None
    return field


def _covering(
    ground: Ground, skill: str, pairs: Sequence[tuple[Failure, str]], least: int
) -> Edit | None:
    path = f"skills/{skill}/SKILL.md"
    text, state = ground.text(path), ground.state.skill(skill)
    if text is None or state is None:
        return None
    said = f"{state.description} {state.body}".casefold()
    fields = _worth_naming(pairs, state.description.casefold(), least=least)
    if not fields:
        return None
    named = ", ".join(f.replace("_", " ") for f in fields)
    chinese = "、".join(z for f in fields if (z := ground.fields.get(f)) and z not in said)
    words = f"{named}（{chinese}）" if chinese else named
    fixes = sorted({failure.item_id for failure, f in pairs if f in fields})
    ops = [
        extend_skill(text, path, f"Covers {words}."),
        add_bullet(text, path, "When to use", f"The viewer asks about {words}."),
    ]
    for tool in _tools(pairs, fields):
        tool_path = f"tools/{tool}.yaml"
        tool_text = ground.text(tool_path)
        if tool_text is not None:
            ops.append(extend_yaml(tool_text, tool_path, f"Gives {words}."))
    return draft(
        ground,
        id=f"covers-{skill}",
        module=path,
        ops=ops,
        rationale=f"{len(fixes)} failures asked for {named}; `{skill}` does not say that it covers "
        "them.",
        fixes=fixes,
        risk="Another skill that covers the same may be loaded less often.",
    )


def _worth_naming(pairs: Sequence[tuple[Failure, str]], described: str, *, least: int) -> list[str]:
    """The fields that `least` items missed and the description does not have, most missed first."""
    counts = {
        f: len({failure.item_id for failure, g in pairs if g == f})
        for _, f in pairs
        if f.replace("_", " ") not in described
    }
    often = (f for f, n in counts.items() if n >= least)
    return sorted(often, key=lambda f: (-counts[f], f))[:MOST]


def _tools(pairs: Sequence[tuple[Failure, str]], fields: Sequence[str]) -> list[str]:
    """The tool that most of these failures needed and did not call."""
    missing = [
        o.detail
        for failure, field in pairs
        if field in fields
        for o in failure.observations
        if o.kind == "tool_not_called"
    ]
    best = sorted(set(missing), key=lambda t: (-missing.count(t), t))
    return best[:1]
