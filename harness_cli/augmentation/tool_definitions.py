"""Dimension 3 (TR §3.2): tools and parameters under other names, described in other words.

Moves: `rename`, `parameters`, `describe`, `reorder` (of parameters). A tool does what it did: its
executor is told its own names (`_meta.harness.operation`, `_meta.harness.arguments`), also where an
MCP server runs it.
"""

from random import Random
from typing import Any

import msgspec

from harness_cli.augmentation.draft import Draft, allowed, yaml_text
from harness_cli.augmentation.naming import renamed
from harness_cli.augmentation.renames import tool_data, tool_names, with_names
from harness_cli.augmentation.reworded import described, reworded
from harness_cli.augmentation.tables import Named, tool_table
from harness_cli.records.augmentation import Dimension


def vary(draft: Draft, draw: Random, dimension: Dimension) -> Draft:
    """The draft with other tool definitions."""
    names = tool_names(draft)
    draft = _rewritten(draft, names, draw, dimension)
    new: dict[str, str] = {}
    parameters: dict[str, dict[str, str]] = {}
    if allowed(dimension, "rename"):
        new = renamed(names, tool_table().tools, names, draw, dimension.strength, joint="_")
    if allowed(dimension, "parameters"):
        parameters = _parameters(draft, names, draw, dimension.strength)
    changed = {t: {k: v for k, v in p.items() if k != v} for t, p in parameters.items()}
    changed = {tool: names for tool, names in changed.items() if names}
    draft = with_names(draft, tools=new, parameters=parameters)
    draft = draft.mapped(
        tools={**draft.map.tools, **new}, parameters={**draft.map.parameters, **changed}
    )
    return draft.counted(rename=len(new), parameters=sum(map(len, changed.values())))


def _parameters(
    draft: Draft, names: list[str], draw: Random, chance: float
) -> dict[str, dict[str, str]]:
    """Tool → parameter → new name: one new name for all tools that have the parameter.

    A parameter that the schema also uses elsewhere, in a nested object or a condition, keeps its
    name in that tool; it is listed under its own name, since texts are read by this table.
    """
    schemas = {name: tool_data(draft, name)["inputSchema"] for name in names}
    having = sorted({p for schema in schemas.values() for p in schema.get("properties", {})})
    table = {p: Named(names=others) for p, others in tool_table().parameters.items()}
    new = renamed(having, table, having, draw, chance, joint="_")
    return {
        tool: {
            p: new[p] if _renamable(schema, p) else p
            for p in schema.get("properties", {})
            if p in new
        }
        for tool, schema in schemas.items()
    }


def _renamable(schema: dict[str, Any], name: str) -> bool:
    """The parameter stands in `properties` and `required`, and nowhere else in the schema."""
    rest = {k: v for k, v in schema.items() if k not in ("properties", "required")}
    inner = list(schema["properties"].values())
    return f'"{name}"' not in msgspec.json.encode([rest, inner]).decode()


def _rewritten(draft: Draft, names: list[str], draw: Random, dimension: Dimension) -> Draft:
    """With other descriptions, and parameters in another order."""
    changed: dict[str, str | None] = {}
    counts = {"describe": 0, "reorder": 0}
    for name in names:
        data = tool_data(draft, name)
        before = msgspec.json.encode(data)
        if allowed(dimension, "describe") and draw.random() < dimension.strength:
            counts["describe"] += _describe(draft, name, data, draw)
        properties = data["inputSchema"].get("properties", {})
        if (
            allowed(dimension, "reorder")
            and len(properties) > 1
            and draw.random() < dimension.strength
        ):
            order = list(properties)
            draw.shuffle(order)
            data["inputSchema"]["properties"] = {p: properties[p] for p in order}
            counts["reorder"] += order != list(properties)
        if msgspec.json.encode(data) != before:
            changed[f"tools/{name}.yaml"] = yaml_text(data)
    return draft.written(changed).counted(**counts)


def _describe(draft: Draft, name: str, data: dict[str, Any], draw: Random) -> bool:
    """Put other words into a definition; whether any word changed."""
    table = tool_table().tools.get(name)
    old = str(data.get("description", ""))
    data["description"] = described(draft, old, table.descriptions if table else (), draw)
    changed = bool(data["description"] != old)
    for schema in data["inputSchema"].get("properties", {}).values():
        text = schema.get("description")
        if isinstance(text, str):
            schema["description"] = reworded(draft, text, draw, 1.0)
            changed = changed or schema["description"] != text
    return changed
