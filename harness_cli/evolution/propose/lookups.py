"""Edits about tools that were not called: a required-tool hook, a rule in the skill, the tool."""

from collections.abc import Iterator

from harness_cli.evolution.failure import Failure, Seen
from harness_cli.evolution.mining import matches, pattern_of
from harness_cli.evolution.propose.drafts import Ground, draft, hit, mine, quoted
from harness_cli.evolution.propose.sections import add_bullet, extend_yaml
from harness_cli.records.diagnosis import Edit, Op
from harness_cli.records.harness import Hook
from harness_cli.records.reader import dump_yaml


def tool_edits(ground: Ground) -> Iterator[Edit | None]:
    """For each tool that failures did not call: require it, and say when to call it."""
    for key in ground.keys("tool_not_called"):
        tool = key.partition(":")[2]
        failures = ground.with_key(key)
        others = [s for s in ground.seen if not _wants(s, tool)]
        phrases = mine(ground, [f.seen.comment for f in failures], (s.comment for s in others))
        if not phrases or all(t.name != tool for t in ground.state.all_tools()):
            continue
        ops = _requirement(ground, tool, phrases)
        module = ops[0].path if ops else f"tools/{tool}.yaml"
        yield draft(
            ground,
            id=f"require-{tool.replace('_', '-')}",
            module=module,
            ops=[*ops, *_words(ground, tool, failures, phrases)],
            rationale=f"{len(failures)} replies needed `{tool}` and did not call it; before a "
            f"reply to a comment with {quoted(phrases)} it must have answered.",
            fixes=hit(failures, phrases),
            at_risk=[s for s in others if s.passed and matches(phrases, s.comment)],
            risk="An unneeded call costs one more round.",
        )


def _wants(seen: Seen, tool: str) -> bool:
    return tool in seen.expected_tools or (not seen.expected_tools and tool in seen.tools)


def _requirement(ground: Ground, tool: str, phrases: list[str]) -> list[Op]:
    """A hook with `tool_required`, or more triggers for the one there is."""
    patterns = [pattern_of(p) for p in phrases]
    found = _existing(ground, tool)
    if found is None:
        name = f"requires-{tool.replace('_', '-')}"
        path = f"hooks/{name}.yaml"
        if path in ground.files:
            return []
        return [Op(op="write", path=path, text=_hook(name, tool, patterns))]
    hook, place = found
    have = set(hook.checks[place].with_.get("triggers", ()))
    pointer = f"/checks/{place}/with/triggers/-"
    return [
        Op(op="json-pointer", path=f"hooks/{hook.name}.yaml", pointer=pointer, value=p)
        for p in patterns
        if p not in have
    ]


def _existing(ground: Ground, tool: str) -> tuple[Hook, int] | None:
    for hook in ground.state.hooks:
        for place, check in enumerate(hook.checks):
            settings = check.with_
            alone = list(settings.get("tools", ())) == [tool] and settings.get("on") != "reply"
            here = f"hooks/{hook.name}.yaml" in ground.files
            if check.check == "tool_required" and alone and here:
                return hook, place
    return None


def _hook(name: str, tool: str, patterns: list[str]) -> str:
    return dump_yaml(
        {
            "schema": 1,
            "name": name,
            "event": "before_reply",
            "description": f"A comment of this kind is answered from {tool}, never from memory.",
            "priority": 60,
            "checks": [{"check": "tool_required", "with": {"triggers": patterns, "tools": [tool]}}],
            "action": "retry",
            "message": f"Not sent: {{reason}}. Call {tool}, then answer from its result.",
            "max_retries": 1,
        }
    )


def _words(
    ground: Ground, tool: str, failures: list[Failure], phrases: list[str]
) -> Iterator[Op | None]:
    """Say when to call the tool: in the skill that should be loaded, and in the tool."""
    said = quoted(phrases)
    right = [s for f in failures for s in f.seen.expected_skills or f.seen.skills]
    skill = min(set(right), key=lambda s: (-right.count(s), s)) if right else ""
    path, tool_path = f"skills/{skill}/SKILL.md", f"tools/{tool}.yaml"
    text, tool_text = ground.text(path), ground.text(tool_path)
    if text is not None:
        bullet = f"`{tool}`: when the comment says something like {said}."
        yield add_bullet(text, path, "Tools", bullet)
    if tool_text is not None:
        yield extend_yaml(tool_text, tool_path, f"Use it for comments like {said}.")
