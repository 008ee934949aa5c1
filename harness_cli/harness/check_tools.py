"""Tools: names, schemas and executors; MCP servers and what was locked of them."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from harness_cli.harness.findings import Finding
from harness_cli.harness.parts import Parts
from harness_cli.harness.tools import tool_digest
from harness_cli.records.harness import McpServer, Tool
from harness_cli.store.redact import redact

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""MCP's rule for a tool's name; OpenAI-compatible servers are stricter."""
_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
EXECUTORS = ("sandbox", "python", "http", "mcp", "builtin", "evidence")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_WORDS = ("description", "title")
_MCP, _LOCK = "tools/mcp.yaml", "tools/mcp.lock.json"


def check_tools(parts: Parts) -> Iterator[Finding]:
    """What is wrong with the tool registry."""
    for path, tool in parts.tools.items():
        for at, rule, level, message, fix in _tool(tool):
            yield parts.finding(path, at, rule, message, level=level, fix=fix)
        stem = PurePosixPath(path).stem
        if tool.name != stem:
            yield parts.finding(
                path,
                "$.name",
                "tool/name",
                f"the name `{tool.name}` differs from its file `{stem}.yaml`",
                fix=f"write `name: {stem}` or rename the file",
            )
    yield from _duplicates(parts)
    yield from _standing(parts)
    for alias, server in parts.mcp.servers.items():
        yield from _server(parts, alias, server)
    yield from _locked(parts)


Row = tuple[str, str, Any, str, str]
"""(place, rule, level, message, fix)."""


def _tool(tool: Tool) -> Iterator[Row]:
    if not NAME.fullmatch(tool.name):
        fix = "1–128 letters, digits, `_`, `-`, `.`"
        yield "$.name", "tool/name", "error", f"`{tool.name}` is no tool name", fix
    elif not _WIRE_NAME.fullmatch(tool.name):
        message = f"many model servers refuse the name `{tool.name}`"
        yield "$.name", "tool/name", "warning", message, "up to 64 letters, digits, `_`, `-`"
    if not tool.description.strip():
        message = "the policy cannot know what this tool does"
        yield "$.name", "tool/description", "warning", message, "add a `description`"
    if tool.executor not in EXECUTORS:
        near = get_close_matches(tool.executor, EXECUTORS, n=1)
        fix = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(EXECUTORS)}"
        yield "$._meta", "tool/executor", "error", f"no executor `{tool.executor}`", fix
    yield from _schema("inputSchema", tool.input_schema)
    if tool.input_schema.get("type") != "object":
        message = "`inputSchema` must have `type: object`"
        yield "$.inputSchema", "tool/schema", "error", message, "MCP demands it"
    if tool.output_schema is not None:
        yield from _schema("outputSchema", tool.output_schema)
    yield from _arguments(tool)


def _arguments(tool: Tool) -> Iterator[Row]:
    properties = tool.input_schema.get("properties", {})
    if not isinstance(properties, dict):
        return
    closed = tool.input_schema.get("additionalProperties") is False
    required = tool.input_schema.get("required", [])
    for name in required if isinstance(required, list) else []:
        if isinstance(name, str) and name not in properties:
            level = "error" if closed else "warning"
            message = f"`{name}` is required and not described"
            yield "$.inputSchema.required", "tool/schema", level, message, "add it to `properties`"
    for name in tool.argument_names:
        if name not in properties:
            message = f"`_meta.harness.arguments` renames `{name}`, which is no property"
            yield "$._meta", "tool/arguments", "error", message, ""


def _schema(key: str, schema: Mapping[str, Any]) -> Iterator[Row]:
    """Valid JSON Schema 2020-12, with references that resolve inside and patterns that compile."""
    dialect = schema.get("$schema", _DIALECT)
    if str(dialect).rstrip("#") != _DIALECT:
        message = f"`{dialect}` is not the dialect read here"
        yield f"$.{key}.$schema", "tool/schema", "error", message, f"write `{_DIALECT}`"
        return
    try:
        _check_schema(schema)
    except SchemaError as exc:
        at = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in exc.absolute_path)
        message = f"no valid JSON Schema: {exc.message} at `{key}{at}`"
        yield f"$.{key}{at}", "tool/schema", "error", message, ""
        return
    for at, word, value in _keywords(schema, f"$.{key}"):
        if word == "$ref":
            try:
                _resolver(schema).lookup(value)
            except Unresolvable:
                message = f"`$ref: {value}` leads nowhere inside this schema"
                yield at, "tool/schema", "error", message, "nothing is fetched: use `#/$defs/…`"
        else:
            try:
                re.compile(value)
            except (re.error, RecursionError, OverflowError) as exc:
                yield at, "tool/schema", "error", f"`pattern` `{value}` does not compile: {exc}", ""


def _resolver(schema: Mapping[str, Any]) -> Any:
    """Finds what a reference inside a schema leads to."""
    inside = Resource.from_contents(schema, default_specification=DRAFT202012)
    return Registry().with_resource("", inside).resolver("")


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `SchemaError` for what is no JSON Schema; schemas of one shape are checked once."""
    try:
        known = _is_valid(msgspec.json.encode(_shape(schema), order="sorted"))
    except (TypeError, msgspec.ValidationError):
        known = False
    if not known:
        Draft202012Validator.check_schema(schema)


@lru_cache(maxsize=1024)
def _is_valid(shape: bytes) -> bool:
    return bool(
        Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid(msgspec.json.decode(shape))
    )


def _shape(node: Any) -> Any:
    """A schema less its wording: any text may describe, and a property may be called anything
    (where it is required, too: names there must only differ)."""
    if isinstance(node, list):
        return [_shape(n) for n in node]
    if not isinstance(node, dict):
        return node
    made = {k: _shape(v) for k, v in node.items() if not (k in _WORDS and isinstance(v, str))}
    properties = made.get("properties")
    if isinstance(properties, dict):
        shapes = sorted(properties.values(), key=lambda s: msgspec.json.encode(s, order="sorted"))
        made["properties"] = {str(n): shape for n, shape in enumerate(shapes)}
    required = made.get("required")
    if isinstance(required, list) and all(isinstance(name, str) for name in required):
        numbers = {name: str(n) for n, name in enumerate(dict.fromkeys(required))}
        made["required"] = [numbers[name] for name in required]
    return made


def _keywords(node: Any, at: str) -> Iterator[tuple[str, str, str]]:
    """Every `$ref` and `pattern` of a schema, wherever it stands."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("$ref", "pattern") and isinstance(value, str):
                yield f"{at}.{key}", key, value
            elif key not in ("enum", "const", "default", "examples"):
                yield from _keywords(value, f"{at}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _keywords(value, f"{at}[{index}]")


def _duplicates(parts: Parts) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    rows = [(path, tool.name) for path, tool in parts.tools.items()]
    stands = {tool.operation for tool in parts.tools.values() if tool.executor == "mcp"}
    for alias, listed in parts.lock.servers.items():
        names = [locked.tool.name for locked in listed.values()]
        rows += [(f"{_LOCK} ({alias})", name) for name in names if name not in stands]
    for path, name in rows:
        if name in seen:
            where = path.partition(" ")[0]
            yield Finding(
                path=where,
                rule="tool/name",
                message=f"`{name}` is also the name of the tool in `{seen[name]}`",
                fix="a policy cannot tell them apart: rename one",
            )
        seen.setdefault(name, path)


def _standing(parts: Parts) -> Iterator[Finding]:
    """A file that stands for a server's tool, and no server was locked with such a tool."""
    locked = {name for listed in parts.lock.servers.values() for name in listed}
    for path, tool in parts.tools.items():
        if tool.executor == "mcp" and tool.operation not in locked:
            near = get_close_matches(tool.operation, sorted(locked), n=1)
            yield parts.finding(
                path,
                "$._meta",
                "tool/executor",
                f"`{tool.name}` stands for `{tool.operation}`, which no server was locked with",
                fix=f"did you mean `{near[0]}`?" if near else "`harness tools lock`",
            )


def _server(parts: Parts, alias: str, server: McpServer) -> Iterator[Finding]:
    at = f"$.servers.{alias}"
    stdio = server.transport == "stdio"
    if stdio and not server.command:
        yield parts.finding(
            _MCP, at, "mcp/server", f"`{alias}` has no `command`", fix="add its argv"
        )
    if not stdio and not (server.url or "").startswith(("http://", "https://")):
        message = f"`{alias}` has no http `url`"
        yield parts.finding(_MCP, at, "mcp/server", message, fix="add `url: https://…`")
    if min(server.start_timeout_s, server.call_timeout_s) <= 0:
        yield parts.finding(_MCP, at, "mcp/server", f"a time limit of `{alias}` is not above 0")
    for variable, value in server.env.items():
        if redact(value) != value:
            message = f"`{variable}` of `{alias}` looks like a secret"
            fix = "the server inherits the environment: set it there, not in a file"
            yield parts.finding(_MCP, f"{at}.env.{variable}", "mcp/secret", message, fix=fix)
    locked = parts.lock.servers.get(alias, {})
    if not locked:
        yield parts.finding(
            _MCP,
            at,
            "mcp/lock",
            f"`{alias}` is not locked: the policy sees none of its tools",
            level="warning",
            fix="`harness tools lock`",
        )
        return
    for name in server.tools:
        if name not in locked:
            message = f"`{alias}` was locked without its tool `{name}`"
            yield parts.finding(
                _MCP, f"{at}.tools", "mcp/lock", message, fix="`harness tools lock`"
            )


def _locked(parts: Parts) -> Iterator[Finding]:
    for alias, listed in parts.lock.servers.items():
        if alias not in parts.mcp.servers:
            message = f"`{alias}` is locked, but `{_MCP}` has no such server"
            yield Finding(path=_LOCK, rule="mcp/lock", message=message, fix="`harness tools lock`")
        for name, locked in listed.items():
            at = f"$.servers.{alias}.{name}"
            if tool_digest(locked.tool) != locked.sha256:
                yield parts.finding(
                    _LOCK,
                    at,
                    "mcp/lock",
                    f"the digest of `{name}` ({alias}) does not fit what is locked",
                    fix="the lock was edited: `harness tools lock` writes it anew",
                )
            for _, rule, level, message, fix in _tool(locked.tool):
                yield parts.finding(_LOCK, at, rule, f"{name}: {message}", level=level, fix=fix)
