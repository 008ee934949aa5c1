"""Files of a harness by what they are: each read on its own, every mistake collected."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from harness_cli.errors import BadFile
from harness_cli.harness.findings import Finding, Level, of_error
from harness_cli.harness.reading import read_record
from harness_cli.harness.skills import read_skill
from harness_cli.records.harness import (
    Hook,
    McpFile,
    McpLock,
    Pipeline,
    Replies,
    Skill,
    Tool,
)
from harness_cli.records.reader import line_of, text_of
from harness_cli.store.tree import EXECUTABLE, FILE, GITLINK, SYMLINK, Entry

JUDGES, CLASSES = "judges", "failure_classes"
PIPELINE = "prompts/pipeline"
_MARKS = tuple(re.compile(m, re.MULTILINE) for m in (rb"^<{7} ", rb"^={7}\r?$", rb"^>{7} "))
"""What git writes around the sides of a merge, in this order."""


@dataclass
class Parts:
    """What was read, by path or name; a file that could not be read is missing here."""

    skills: dict[str, Skill] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    """Variant → pipeline; `default` is `pipeline.yaml`."""
    blocks: dict[str, str] = field(default_factory=dict)
    mcp: McpFile = field(default_factory=McpFile)
    lock: McpLock = field(default_factory=McpLock)
    fallback: str = ""
    replies: Replies | None = None
    files: dict[str, Entry] = field(default_factory=dict)
    """The content: everything but judges and failure classes."""
    findings: list[Finding] = field(default_factory=list)

    def tool_names(self) -> set[str]:
        """Every tool there is: in-tree, locked, and those an MCP server is meant to expose.

        Less those of a server that an in-tree tool stands for (`HarnessState.all_tools`).
        """
        stands = {tool.operation for tool in self.tools.values() if tool.executor == "mcp"}
        locked = {t.tool.name for server in self.lock.servers.values() for t in server.values()}
        named = {name for server in self.mcp.servers.values() for name in server.tools}
        return {tool.name for tool in self.tools.values()} | ((locked | named) - stands)

    def finding(
        self,
        path: str,
        at: str,
        rule: str,
        message: str,
        *,
        level: Level = "error",
        fix: str | None = None,
    ) -> Finding:
        """A finding at the line of the YAML node `at` (`$.checks[0].with`)."""
        entry = self.files.get(path)
        line = line_of(text_of(entry.data, name=path), at) if entry else 0
        return Finding(path=path, line=line, level=level, rule=rule, message=message, fix=fix or "")


def content(files: Mapping[str, Entry]) -> dict[str, Entry]:
    """The files that the harness id names: without `judges/` and `failure_classes/`."""
    aside = (f"{JUDGES}/", f"{CLASSES}/")
    return {path: entry for path, entry in files.items() if not path.startswith(aside)}


def judges(files: Mapping[str, Entry]) -> dict[str, dict[str, Entry]]:
    """Each judge's own files, by its name; paths start inside its folder."""
    found: dict[str, dict[str, Entry]] = {}
    for path, entry in files.items():
        steps = path.split("/", 2)
        if steps[0] == JUDGES and len(steps) == 3:
            found.setdefault(steps[1], {})[steps[2]] = entry
    return found


def pipeline_path(variant: str) -> str:
    """The file of a pipeline variant."""
    return f"{PIPELINE}.yaml" if variant == "default" else f"{PIPELINE}.{variant}.yaml"


def collect(files: Mapping[str, Entry]) -> Parts:
    """Read every file; what is wrong with one does not keep the others from being read."""
    parts = Parts(files=dict(files))
    for path in sorted(files):
        entry = files[path]
        problem = _unfit(path, entry)
        if problem:
            parts.findings.append(problem)
        else:
            _read(parts, path, entry.data)
    return parts


def _conflict(data: bytes) -> int | None:
    """Where an unresolved merge begins."""
    if b"<<<<<<< " not in data:
        return None
    start, at = None, 0
    for mark in _MARKS:
        found = mark.search(data, at)
        if found is None:
            return None
        start, at = found.start() if start is None else start, found.end()
    return start


def _unfit(path: str, entry: Entry) -> Finding | None:
    """Links and submodules are never followed; names must be plain."""
    if entry.mode in (SYMLINK, GITLINK):
        kind = "a symbolic link" if entry.mode == SYMLINK else "a submodule"
        return Finding(
            path=path,
            rule="file/link",
            message=f"{kind}, which is never followed",
            fix="put the file itself here",
        )
    if entry.mode not in (FILE, EXECUTABLE):
        return Finding(path=path, rule="file/mode", message=f"unknown file mode {entry.mode}")
    if not path.isprintable():
        return Finding(
            path=path,
            rule="file/name",
            message="line breaks, control characters or bytes that are no UTF-8 in the name",
            fix="rename the file",
        )
    start = _conflict(entry.data)
    if start is not None:
        return Finding(
            path=path,
            line=entry.data.count(b"\n", 0, start) + 1,
            rule="file/conflict",
            message="the two sides of a merge stand here, with git's marks between them",
            fix="keep one side, remove the marks",
        )
    return None


def _read(parts: Parts, path: str, data: bytes) -> None:
    folder, _, rest = path.partition("/")
    if folder == "skills":
        _read_skill(parts, path, rest, data)
    elif folder == "tools":
        _read_tool_file(parts, path, rest, data)
    elif folder == "hooks" and rest.endswith(".yaml"):
        hook, findings = read_record(data, Hook, path, "hook/file")
        parts.findings += findings
        if hook is not None:
            parts.hooks[path] = hook
    elif folder == "prompts":
        _read_prompt_file(parts, path, data)
    elif path == "fallback.md":
        parts.fallback = _text(parts, path, data).strip()
    elif path == "replies.yaml":
        parts.replies, findings = read_record(data, Replies, path, "replies/file")
        parts.findings += findings
    elif path.endswith(".yml"):
        parts.findings.append(_not_read(path))


def _not_read(path: str) -> Finding:
    return Finding(
        path=path,
        rule="file/not-read",
        message="nothing reads `.yml` files",
        fix=f"rename it to `{PurePosixPath(path).with_suffix('.yaml').name}`",
    )


def _read_skill(parts: Parts, path: str, rest: str, data: bytes) -> None:
    steps = rest.split("/")
    if len(steps) == 2 and steps[1] == "SKILL.md":
        skill, findings = read_skill(data, path)
        parts.findings += findings
        if skill is not None:
            parts.skills[path] = skill
    elif steps[-1].lower() == "skill.md":
        parts.findings.append(
            Finding(
                path=path,
                rule="skill/place",
                message="a skill here is never found",
                fix="its place is `skills/<name>/SKILL.md`",
            )
        )


def _read_tool_file(parts: Parts, path: str, rest: str, data: bytes) -> None:
    findings: list[Finding] = []
    if rest == "mcp.yaml":
        mcp, findings = read_record(data, McpFile, path, "mcp/file")
        parts.mcp = mcp or parts.mcp
    elif rest == "mcp.lock.json":
        lock, findings = read_record(data, McpLock, path, "mcp/lock")
        parts.lock = lock or parts.lock
    elif rest.endswith(".yaml"):
        tool, findings = read_record(data, Tool, path, "tool/file")
        if tool is not None:
            parts.tools[path] = tool
    elif rest.endswith(".yml"):
        findings = [_not_read(path)]
    parts.findings += findings


def _read_prompt_file(parts: Parts, path: str, data: bytes) -> None:
    if path.startswith("prompts/blocks/") and path.endswith(".md"):
        name = path.removeprefix("prompts/blocks/").removesuffix(".md")
        parts.blocks[name] = _text(parts, path, data)
    elif path.startswith(PIPELINE) and path.endswith(".yaml"):
        variant = path.removeprefix(PIPELINE).removesuffix(".yaml").removeprefix(".") or "default"
        pipeline, findings = read_record(data, Pipeline, path, "pipeline/file")
        parts.findings += findings
        if pipeline is not None:
            parts.pipelines[variant] = pipeline
    else:
        parts.findings.append(
            Finding(
                path=path,
                level="warning",
                rule="file/not-read",
                message="nothing reads this file",
                fix="`prompts/blocks/<name>.md` or `prompts/pipeline.<variant>.yaml`",
            )
        )


def _text(parts: Parts, path: str, data: bytes) -> str:
    try:
        return text_of(data, name=path)
    except BadFile as exc:
        parts.findings.append(of_error(exc, path, "file/encoding"))
        return ""
