"""Coupled renaming: a new name stands wherever a skill, block, hook, tool or failure class uses it.

Executors keep their own names: a renamed tool says under `_meta` what its executor calls it and its
arguments. A tool of an MCP server becomes a file of the harness that stands for the server's tool;
the lock, which records what the server lists, stays as it is.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import msgspec

from harness_cli.augmentation.arguments import Arguments, Parameters
from harness_cli.augmentation.draft import JUDGES, Draft, plain, yaml_text
from harness_cli.augmentation.skill_text import fronted, with_field
from harness_cli.augmentation.speech import Speech
from harness_cli.harness.hook_checks import CHECKS
from harness_cli.records.harness import McpLock

LOCK = "tools/mcp.lock.json"
SPOKEN = (".md", ".yaml")
SILENT = ("tools/mcp.yaml", LOCK, "replies.yaml")
"""Files that hold names of servers, or no names at all."""
DEFAULTS = {"reply_skill_required": "unless_tools", "malformed_output": "allow_empty_after"}
"""Check → the setting in which it supposes `refuse` when nothing is said."""
_WATCHING = re.compile(r"""^["']?tools|^\s*\{|\\(?:[xuU]|$)""", re.MULTILINE)
"""A hook's own list of tools, or YAML that might hide it or a name: in braces, with escapes."""
_OPERATION = re.compile(r"(^ +harness\.operation:.*$)", re.MULTILINE)
Names = Mapping[str, str]


def with_names(
    draft: Draft,
    *,
    skills: Names | None = None,
    tools: Names | None = None,
    hooks: Names | None = None,
    parameters: Parameters | None = None,
) -> Draft:
    """The draft with all of these names replaced, each everywhere at once.

    Names are those of the draft as it is; parameters go by tool. The map is left to the caller.
    """
    skills, tools, hooks, parameters = skills or {}, tools or {}, hooks or {}, parameters or {}
    if not (skills or tools or hooks or parameters):
        return draft
    draft = _spoken(draft, {**skills, **tools, **hooks}, parameters)
    for old, new in skills.items():
        draft = _skill(draft, old, new)
    draft = _hook_settings(draft, skills, tools)
    for old, new in hooks.items():
        draft = _named_file(draft, f"hooks/{old}.yaml", f"hooks/{new}.yaml", new)
    for old in sorted(tools.keys() | parameters.keys()):
        changed = {k: v for k, v in parameters.get(old, {}).items() if k != v}
        if changed or old in tools:
            draft = _tool(draft, old, tools.get(old, old), changed)
    return draft


def tool_files(draft: Draft) -> dict[str, str]:
    """Tool → its file in the harness."""
    found = (p for p in sorted(draft.files) if p.startswith("tools/") and p.endswith(".yaml"))
    return {path[6:-5]: path for path in found if path not in SILENT}


def tool_names(draft: Draft) -> list[str]:
    """Every tool that the harness offers, of its own and of MCP servers."""
    return sorted({*tool_files(draft), *_locked_tools(draft)})


def _locked_tools(draft: Draft) -> dict[str, bytes]:
    """Tool of an MCP server → its definition as JSON, less those that a file of the harness stands
    for."""
    if LOCK not in draft.files:
        return {}
    standing = {_stood_for(draft.files[path].data) for path in tool_files(draft).values()}
    locked = _locked(draft.files[LOCK].data)
    return {name: tool for name, tool in locked if name not in standing}


@lru_cache(maxsize=1024)
def _stood_for(file: bytes) -> str | None:
    """The server's tool that a file of the harness stands for; most stand for none."""
    data = plain(file)
    meta = data.get("_meta", {})
    if meta.get("harness.executor") != "mcp":
        return None
    return str(meta.get("harness.operation", data["name"]))


def tool_data(draft: Draft, name: str) -> dict[str, Any]:
    """The definition of a tool, wherever it stands."""
    path = f"tools/{name}.yaml"
    if path in draft.files:
        return dict(draft.data(path))
    return msgspec.json.decode(_locked_tools(draft)[name], type=dict[str, Any])


@lru_cache(maxsize=8)
def _locked(data: bytes) -> tuple[tuple[str, bytes], ...]:
    """Tools of servers and their definitions as JSON."""
    servers = msgspec.json.decode(data, type=McpLock).servers.values()
    listed = {name: locked.tool for tools in servers for name, locked in tools.items()}
    return tuple((name, msgspec.json.encode(tool)) for name, tool in listed.items())


def _spoken(draft: Draft, names: Names, parameters: Parameters) -> Draft:
    """Every text with new names; the words of judges are not the host's harness."""
    speech, arguments = Speech(names), Arguments(parameters)
    changed: dict[str, str | None] = {}
    for path in draft.files:
        if not path.endswith(SPOKEN) or path in SILENT or path.startswith(JUDGES):
            continue
        text = draft.text(path)
        made = arguments.renamed(text) if path.endswith(".md") else text
        made = _but_operations(made, speech) if path.startswith("tools/") else speech.renamed(made)
        if made != text:
            changed[path] = made
    return draft.written(changed) if changed else draft


def _but_operations(text: str, speech: Speech) -> str:
    """A tool's file in the new names; what its executor calls it stays."""
    pieces = _OPERATION.split(text)
    return "".join(p if _OPERATION.match(p) else speech.renamed(p) for p in pieces)


def _skill(draft: Draft, old: str, new: str) -> Draft:
    """The skill's own folder and name; the report's name for it no longer fits."""
    path = f"skills/{old}/SKILL.md"
    front, body = fronted(draft.text(path))
    front = with_field(front, "name", new)
    lines = [line for line in front.split("\n") if not line.startswith("  harness.report-name:")]
    draft = draft.written({path: "\n".join(lines) + body})
    inside = (p for p in draft.files if p.startswith(f"skills/{old}/"))
    return draft.moved({p: f"skills/{new}/{p.removeprefix(f'skills/{old}/')}" for p in inside})


def _named_file(draft: Draft, old: str, new: str, name: str) -> Draft:
    data = draft.data(old)
    data["name"] = name
    return draft.written({old: yaml_text(data)}).moved({old: new})


def _hook_settings(draft: Draft, skills: Names, tools: Names) -> Draft:
    """Names in the lists of hooks, and in the patterns that choose the tools they watch."""
    changed: dict[str, str | None] = {}
    known = tool_names(draft)
    for path, text in draft.texts("hooks/", ext=".yaml").items():
        if not _settable(text, skills, tools):
            continue
        data = draft.data(path)
        before = msgspec.json.encode(data)
        for check in data.get("checks", ()):
            _settings(check, skills, tools)
        if "tools" in data:
            data["tools"] = _patterns(data["tools"], tools, known)
        if msgspec.json.encode(data) != before:
            changed[path] = yaml_text(data)
    return draft.written(changed) if changed else draft


def _settable(text: str, skills: Names, tools: Names) -> bool:
    """Whether anything in a hook's file can hold a name; most files need not be read for it."""
    names = [*skills, *tools, *(DEFAULTS if "refuse" in tools else ())]
    return _WATCHING.search(text) is not None or any(map(text.__contains__, names))


def _settings(check: dict[str, Any], skills: Names, tools: Names) -> None:
    known = CHECKS.get(str(check.get("check")))
    names = {"tools": tools, "skills": skills}
    given: dict[str, Any] = check.get("with") or {}
    for key, setting in known.settings.items() if known else ():
        if setting.kind in names and isinstance(given.get(key), list):
            given[key] = [names[setting.kind].get(n, n) for n in given[key]]
    supposed = DEFAULTS.get(str(check.get("check")))
    if supposed and "refuse" in tools and supposed not in given:
        check["with"] = {**given, supposed: [tools["refuse"]]}


def _patterns(patterns: list[str], tools: Names, known: list[str]) -> list[str]:
    """Patterns of tool names; one that no longer fits a renamed tool gets its name beside it, and
    one that fits no tool any more gives way to the names."""
    now = [tools.get(name, name) for name in known]
    found: list[str] = []
    for pattern in patterns:
        watched = [tools.get(n, n) for n in known if fnmatchcase(n, pattern)]
        if pattern == "*" or any(fnmatchcase(name, pattern) for name in now):
            found.append(pattern)
        found += [name for name in watched if not fnmatchcase(name, pattern)]
    return list(dict.fromkeys(found))


def _tool(draft: Draft, old: str, new: str, parameters: Names) -> Draft:
    """One tool's definition under its new name, with its new parameters."""
    data = tool_data(draft, old)
    meta = dict(data.get("_meta") or {})
    if new != old:
        meta.setdefault("harness.operation", old)
    data["name"] = new
    if parameters:
        schema = data["inputSchema"]
        properties = schema["properties"]
        schema["properties"] = {parameters.get(k, k): v for k, v in properties.items()}
        if "required" in schema:
            schema["required"] = [parameters.get(k, k) for k in schema["required"]]
        theirs = dict(meta.get("harness.arguments") or {})
        meta["harness.arguments"] = {
            **{ours: name for ours, name in theirs.items() if ours not in parameters},
            **{here: theirs.get(ours, ours) for ours, here in parameters.items()},
        }
    data["_meta"] = meta
    path = f"tools/{old}.yaml"
    text = Arguments({new: parameters}).renamed(yaml_text(data)) if parameters else yaml_text(data)
    return draft.written({path: text}).moved({path: f"tools/{new}.yaml"})
