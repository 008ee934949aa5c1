"""SKILL.md in the Agent Skills format: read whole or refused, never half.

Source: agentskills.io specification (fields, lengths, names).
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from harness_cli.errors import BadFile
from harness_cli.harness import frontmatter
from harness_cli.harness.findings import Finding, bad_file, errors, of_error
from harness_cli.harness.frontmatter import Frontmatter
from harness_cli.records.harness import Skill
from harness_cli.records.reader import line_of

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
KINDS = ("reply", "strategy")
_LENGTHS = {"name": 64, "description": 1024, "compatibility": 500}
_TOOL = re.compile(r"[^\s,()]+(?:\([^)]*\))?")


def parse_skill(data: bytes, path: str) -> Skill:
    """`skills/<name>/SKILL.md` as a record.

    `path` ends in `<name>/SKILL.md`. Raises `BadFile` that lists everything wrong with the file.
    """
    skill, findings = read_skill(data, path)
    if skill is None:
        raise bad_file(errors(findings))
    return skill


def read_skill(data: bytes, path: str) -> tuple[Skill | None, list[Finding]]:
    """The skill, or None when something is wrong with it, and every finding; the same bytes are
    read once."""
    skill, findings = _read_once(data, path)
    return skill, list(findings)


@lru_cache(maxsize=2048)
def _read_once(data: bytes, path: str) -> tuple[Skill | None, tuple[Finding, ...]]:
    skill, findings = _read(data, path)
    return skill, tuple(findings)


def _read(data: bytes, path: str) -> tuple[Skill | None, list[Finding]]:
    try:
        parts = frontmatter.split(data, path)
    except BadFile as exc:
        return None, [of_error(exc, path, "skill/frontmatter")]
    findings = list(_check(parts, path))
    if errors(findings):
        return None, findings
    fields = parts.fields
    skill = Skill(
        name=fields["name"],
        description=fields["description"].strip(),
        body=parts.body,
        license=fields.get("license"),
        compatibility=fields.get("compatibility"),
        metadata=fields.get("metadata") or {},
        allowed_tools=allowed_tools(fields.get("allowed-tools", "")),
        path=path,
    )
    return skill, findings


def allowed_tools(value: str | list[str]) -> tuple[str, ...]:
    """Tool patterns of `allowed-tools`: by blanks, or commas; `Bash(git log:*)` stays whole."""
    text = value if isinstance(value, str) else " ".join(value)
    return tuple(_TOOL.findall(text))


def _check(parts: Frontmatter, path: str) -> Iterator[Finding]:
    yield from _unknown(parts, path)
    yield from _texts(parts, path)
    yield from _name(parts, path)
    yield from _metadata(parts, path)
    yield from _allowed(parts, path)
    if not parts.body.strip():
        yield Finding(
            path=path,
            level="warning",
            rule="skill/body",
            message="the skill has no instructions",
            fix="write them below the frontmatter",
        )


def _at(parts: Frontmatter, key: str) -> int:
    return line_of(parts.source, f"$.{key}") + parts.first_line - 1


def _unknown(parts: Frontmatter, path: str) -> Iterator[Finding]:
    for key in parts.fields:
        if key in FIELDS:
            continue
        near = get_close_matches(key.replace("_", "-"), FIELDS, n=1, cutoff=0.75)
        meant = f"did you mean `{near[0]}`?" if near else f"move it: `metadata:` → `{key}:`"
        yield Finding(
            path=path,
            line=_at(parts, key),
            rule="skill/unknown-key",
            message=f"`{key}` is no top-level key of a skill",
            fix=meant,
        )


def _texts(parts: Frontmatter, path: str) -> Iterator[Finding]:
    for key in ("name", "description", "license", "compatibility"):
        value = parts.fields.get(key)
        rule = f"skill/{key}"
        if value is None:
            if key in ("name", "description"):
                yield Finding(
                    path=path,
                    line=parts.first_line,
                    rule=rule,
                    message=f"`{key}` is missing",
                    fix=f"add `{key}: …` to the frontmatter",
                )
            continue
        message = _wrong_text(key, value)
        if message:
            fix = "put what is said at length into the body" if "characters" in message else ""
            yield Finding(path=path, line=_at(parts, key), rule=rule, message=message, fix=fix)


def _wrong_text(key: str, value: Any) -> str | None:
    if not isinstance(value, str):
        return f"`{key}` must be text"
    if not value.strip() and key != "license":
        return f"`{key}` is empty"
    limit = _LENGTHS.get(key)
    if limit and len(value) > limit:
        return f"`{key}` has {len(value)} characters, at most {limit} are allowed"
    return None


def _name(parts: Frontmatter, path: str) -> Iterator[Finding]:
    name = parts.fields.get("name")
    if not isinstance(name, str) or not name.strip():
        return
    folder = PurePosixPath(path).parent.name
    if not NAME.fullmatch(name):
        proper = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]+", "-", name.lower())).strip("-")
        yield Finding(
            path=path,
            line=_at(parts, "name"),
            rule="skill/name",
            message=f"`{name}` is no skill name: lowercase letters, digits, single hyphens inside",
            fix=f"name it `{proper}`" if proper else "",
        )
    elif folder and name != folder:
        yield Finding(
            path=path,
            line=_at(parts, "name"),
            rule="skill/name",
            message=f"the name `{name}` differs from its folder `{folder}`",
            fix=f"write `name: {folder}` or rename the folder",
        )


def _metadata(parts: Frontmatter, path: str) -> Iterator[Finding]:
    metadata = parts.fields.get("metadata", "")
    if metadata == "":
        return
    if not isinstance(metadata, dict):
        yield Finding(
            path=path,
            line=_at(parts, "metadata"),
            rule="skill/metadata",
            message="`metadata` must map names to text",
        )
        return
    for key, value in metadata.items():
        if not isinstance(value, str):
            yield Finding(
                path=path,
                line=_at(parts, "metadata"),
                rule="skill/metadata",
                message=f"`metadata.{key}` must be text",
                fix=f'write it in one line: `{key}: "…"`',
            )
    kind = metadata.get("harness.kind", "reply")
    if isinstance(kind, str) and kind not in KINDS:
        yield Finding(
            path=path,
            line=_at(parts, "metadata"),
            rule="skill/kind",
            message=f"`metadata.harness.kind` is `{kind}`",
            fix="write `reply` or `strategy`",
        )


def _allowed(parts: Frontmatter, path: str) -> Iterator[Finding]:
    value = parts.fields.get("allowed-tools")
    if value is None:
        return
    listed = isinstance(value, list) and all(isinstance(v, str) for v in value)
    if isinstance(value, str) or listed:
        if listed or "," in value:
            yield Finding(
                path=path,
                line=_at(parts, "allowed-tools"),
                level="warning",
                rule="skill/allowed-tools",
                message="`allowed-tools` is read, but other programs expect one line",
                fix=f"write `allowed-tools: {' '.join(allowed_tools(value))}`",
            )
        return
    yield Finding(
        path=path,
        line=_at(parts, "allowed-tools"),
        rule="skill/allowed-tools",
        message="`allowed-tools` must be tool names with blanks between them",
    )
