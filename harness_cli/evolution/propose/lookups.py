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
        if phrases and any(t.name == tool for t in ground.state.all_tools()):
            risky = [s for s in others if s.passed and matches(phrases, s.comment)]
            yield _requirement(ground, tool, failures, phrases, risky)
            yield _words(ground, tool, failures, phrases, risky)


def _wants(seen: Seen, tool: str) -> bool:
    return tool in seen.expected_tools or (not seen.expected_tools and tool in seen.tools)


def _requirement(
    ground: Ground, tool: str, failures: list[Failure], phrases: list[str], risky: list[Seen]
) -> Edit | None:
    """A hook with `tool_required`, or more triggers for the one there is."""
    patterns = [pattern_of(p) for p in phrases]
    found = _existing(ground, tool)
    if found is None:
        name = f"requires-{tool.replace('_', '-')}"
        path = f"hooks/{name}.yaml"
        ops = (
            []
            if path in ground.files
            else [Op(op="write", path=path, text=_hook(name, tool, patterns))]
        )
    else:
        hook, place = found
        path = f"hooks/{hook.name}.yaml"
        have = set(hook.checks[place].with_.get("triggers", ()))
        pointer = f"/checks/{place}/with/triggers/-"
        ops = [
            Op(op="json-pointer", path=path, pointer=pointer, value=p)
            for p in patterns
            if p not in have
        ]
    return draft(
        ground,
        id=f"require-{tool.replace('_', '-')}",
        module=path,
        ops=ops,
        rationale=f"{len(failures)} replies needed `{tool}` and did not call it. Before a reply to "
        f"a comment with {quoted(phrases)} the tool must have answered.",
        fixes=hit(failures, phrases),
        at_risk=risky,
        risk="An unneeded call costs one more round.",
    )


def _existing(ground: Ground, tool: str) -> tuple[Hook, int] | None:
    for hook in ground.state.hooks:
        for place, check in enumerate(hook.checks):
            settings = check.with_
            fits = list(settings.get("tools", ())) == [tool] and settings.get("on") != "reply"
            if (
                check.check == "tool_required"
                and fits
                and f"hooks/{hook.name}.yaml" in ground.files
            ):
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
    ground: Ground, tool: str, failures: list[Failure], phrases: list[str], risky: list[Seen]
) -> Edit | None:
    """Say when to call the tool: in the skill that was loaded most, and in the tool itself."""
    said = quoted(phrases)
    loaded = [s for f in failures for s in f.seen.skills]
    skill = min(set(loaded), key=lambda s: (-loaded.count(s), s)) if loaded else ""
    path, tool_path = f"skills/{skill}/SKILL.md", f"tools/{tool}.yaml"
    text, tool_text = ground.text(path), ground.text(tool_path)
    ops = []
    if text is not None:
        bullet = f"`{tool}`: when the comment says something like {said}."
        ops.append(add_bullet(text, path, "Tools", bullet))
    if tool_text is not None:
        ops.append(extend_yaml(tool_text, tool_path, f"Use it for comments like {said}."))
    return draft(
        ground,
        id=f"describe-{tool.replace('_', '-')}",
        module=path if text is not None else tool_path,
        ops=ops,
        rationale=f"{len(failures)} replies needed `{tool}`; say that {said} calls for it.",
        fixes=hit(failures, phrases),
        at_risk=risky,
    )
