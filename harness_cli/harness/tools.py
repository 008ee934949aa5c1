"""The tool registry towards a policy: definitions it is offered, arguments it may pass."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from harness_cli.harness.memo import Memo
from harness_cli.harness.plain_schema import Check, plain_check
from harness_cli.records.canonical import digest
from harness_cli.records.harness import HarnessState, Tool

Definition = dict[str, Any]
_OFFERED: Memo[tuple[Definition, ...]] = Memo(32)
_VALIDATORS: Memo[Draft202012Validator] = Memo(512)
_PLAIN: Memo[Check | None] = Memo(512)
_NOWHERE: Registry[Any] = Registry()
"""A registry that fetches nothing: a schema's `$ref` never leaves the schema."""


def offered(
    state: HarnessState, *, overlay: Sequence[Mapping[str, Any]] = ()
) -> tuple[Definition, ...]:
    """OpenAI tool definitions of a state, by name; the same objects for the same state.

    The argument of the built-in `load_skill` lists the skills there are. `overlay` holds the
    tools of a robustness item (MCP or OpenAI form): one of a known name replaces it.
    """
    parts = (state.tools, state.lock, state.skills)
    base = _OFFERED.get(parts, "", lambda: tuple(_definition(t, state) for t in state.all_tools()))
    if not overlay:
        return base
    by_name = {d["function"]["name"]: d for d in base}
    by_name |= {d["function"]["name"]: d for d in map(_overlaid, overlay)}
    return tuple(by_name.values())


def _definition(tool: Tool, state: HarnessState) -> Definition:
    schema = tool.input_schema
    if tool.operation == "load_skill" and tool.executor == "builtin":
        schema = _with_skills(tool, [skill.name for skill in state.skills])
    function = {"name": tool.name, "description": tool.description, "parameters": schema}
    return {"type": "function", "function": function}


def skill_argument(tool: Tool) -> str | None:
    """The argument of `load_skill` that names the skill, whatever it is called now."""
    properties = tool.input_schema.get("properties", {})
    theirs = tool.argument_names
    named = [ours for ours in properties if theirs.get(ours, ours) == "name"]
    texts = [key for key, value in properties.items() if value.get("type") == "string"]
    return next(iter([*named, *texts]), None)


def _with_skills(tool: Tool, names: list[str]) -> dict[str, Any]:
    schema = deepcopy(tool.input_schema)
    argument = skill_argument(tool)
    if argument is not None and names:
        schema["properties"][argument]["enum"] = names
    return schema


def _overlaid(given: Mapping[str, Any]) -> Definition:
    function = given.get("function", given)
    parameters = function.get("parameters", function.get("inputSchema"))
    return {
        "type": "function",
        "function": {
            "name": str(function["name"]),
            "description": str(function.get("description", "")),
            "parameters": parameters or {"type": "object", "properties": {}},
        },
    }


def argument_errors(tool: Tool, arguments: Any) -> list[str]:
    """What is wrong with a call's arguments, each with its path; empty when nothing is.

    The schema is compiled once. Source: JSON Schema 2020-12, MCP's default dialect.
    """
    return value_errors(tool.input_schema, arguments)


def value_errors(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong with a value under a schema; the same schema object is compiled once."""
    plain = _PLAIN.get((schema,), "", lambda: plain_check(schema))
    if plain is not None and plain(value):
        return []
    validator = _VALIDATORS.get(
        (schema,), "", lambda: Draft202012Validator(schema, registry=_NOWHERE)
    )
    try:
        found = sorted(
            validator.iter_errors(value), key=lambda e: (list(map(str, e.path)), e.message)
        )
    except Unresolvable as exc:
        return [f"the schema refers to `{exc.ref}`, which it does not hold"]
    return [f"`{e.json_path.removeprefix('$.')}`: {e.message}" for e in found]


def tool_digest(tool: Tool) -> str:
    """SHA-256 over canonical JSON of what a server lists for a tool (FORMATS, *Tools and MCP*).

    All six keys always stand there, null where the server gave nothing.
    """
    return digest(
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations,
        }
    )
