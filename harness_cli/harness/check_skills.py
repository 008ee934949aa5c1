"""Skills among the rest of the harness: what they name must exist."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from harness_cli.harness.findings import Finding
from harness_cli.harness.parts import Parts
from harness_cli.records.harness import Skill
from harness_cli.records.reader import text_of

_TICKED = re.compile(r"`([A-Za-z][A-Za-z0-9_-]{2,63})`")
_BULLET = re.compile(r"^\s*[-*]\s+`([^`\s]+)`")
_NEAR = 0.82
"""How alike a name in backticks must be to a known one to be taken for a slip."""
CHANNELS = ("public", "private", "both")


def check_skills(parts: Parts, *, judge: bool = False) -> Iterator[Finding]:
    """What is wrong between skills and tools; a judge needs no reply skill."""
    skills = parts.skills
    for path, skill in skills.items():
        yield from _metadata(parts, path, skill)
        yield from _references(parts, path, skill)
    yield from _folders(parts)
    failed = any(f.path.startswith("skills/") and f.level == "error" for f in parts.findings)
    if not judge and not failed and not any(s.kind == "reply" for s in skills.values()):
        yield Finding(
            path="skills",
            rule="skill/none",
            message="the harness has no reply skill",
            fix="write `skills/<name>/SKILL.md` with `metadata.harness.kind: reply`",
        )
    loads = any(t.operation == "load_skill" for t in parts.tools.values())
    broken = any(f.path.startswith("tools/load_skill") for f in parts.findings)
    if skills and not loads and not broken:
        yield Finding(
            path="tools/load_skill.yaml",
            rule="skill/load",
            message="there are skills and no tool that loads one",
            fix="add the built-in tool `load_skill` (`_meta: {harness.executor: builtin}`)",
        )


def _metadata(parts: Parts, path: str, skill: Skill) -> Iterator[Finding]:
    known = parts.tool_names()
    for name in _words(skill.metadata.get("harness.tools", "")):
        if name not in known and name != "none":
            near = get_close_matches(name, known, n=1)
            yield Finding(
                path=path,
                line=_line(parts, path, "harness.tools"),
                rule="skill/tools",
                message=f"`metadata.harness.tools` names `{name}`, which is no tool",
                fix=f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known))}",
            )
    for channel in _words(skill.metadata.get("harness.channel", "")):
        if channel not in CHANNELS:
            yield Finding(
                path=path,
                line=_line(parts, path, "harness.channel"),
                level="warning",
                rule="skill/channel",
                message=f"`{channel}` is no channel",
                fix=f"known: {', '.join(CHANNELS)}",
            )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\s,]+", text)


def _line(parts: Parts, path: str, word: str) -> int:
    lines = text_of(parts.files[path].data, name=path).split("\n")
    return next((n for n, line in enumerate(lines, 1) if word in line), 1)


def _references(parts: Parts, path: str, skill: Skill) -> Iterator[Finding]:
    """Names in backticks that are almost a tool or a skill, or stand as one under `## Tools`."""
    tools, skills = parts.tool_names(), {s.name for s in parts.skills.values()}
    known = tools | skills
    text = text_of(parts.files[path].data, name=path)
    first = text.count("\n", 0, text.rfind(skill.body.strip("\n"))) + 1 if skill.body else 1
    section = ""
    for number, line in enumerate(skill.body.split("\n"), first):
        if line.startswith("## "):
            section = line[3:].strip().lower()
        listed = _BULLET.match(line) if section == "tools" else None
        for name in _TICKED.findall(line):
            if name in known:
                continue
            near = _nearest(name, known)
            if near or (listed and listed[1] == name):
                yield Finding(
                    path=path,
                    line=number,
                    level="warning",
                    rule="skill/reference",
                    message=f"`{name}` is neither a tool nor a skill",
                    fix=f"did you mean `{near}`?" if near else "name a tool of the harness",
                )


def _nearest(name: str, known: set[str]) -> str | None:
    """What `get_close_matches` finds: the likest known name; each pair is compared once."""
    alike = ((likeness, other) for other in known if (likeness := _likeness(name, other)) >= _NEAR)
    return max(alike, default=(0.0, None))[1]


@lru_cache(maxsize=16384)
def _likeness(name: str, other: str) -> float:
    """difflib's ratio, or 0 where a bound of it is below what counts as near."""
    if 2.0 * min(len(name), len(other)) / (len(name) + len(other)) < _NEAR:
        return 0.0
    matcher = SequenceMatcher(None, other, name)
    if matcher.quick_ratio() < _NEAR:
        return 0.0
    return matcher.ratio()


def _folders(parts: Parts) -> Iterator[Finding]:
    """Folders under `skills/` that hold files and no SKILL.md: such a skill would be absent."""
    inside: dict[str, set[str]] = {}
    for path in parts.files:
        steps = path.split("/")
        if steps[0] == "skills" and len(steps) > 2:
            inside.setdefault(steps[1], set()).add("/".join(steps[2:]))
    for name, files in sorted(inside.items()):
        if "SKILL.md" not in files and not any(f.lower() == "skill.md" for f in files):
            yield Finding(
                path=f"skills/{name}",
                rule="skill/missing",
                message="a skill folder without `SKILL.md`",
                fix=f"write `skills/{name}/SKILL.md` or remove the folder",
            )
