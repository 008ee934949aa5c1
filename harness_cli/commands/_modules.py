"""Modules of a harness on the terminal: skills, tools, hooks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness_cli.commands._show import emit_json, line, table
from harness_cli.errors import UnknownName
from harness_cli.harness.load import load_state
from harness_cli.harness.tokens import estimate
from harness_cli.harness.tools import offered
from harness_cli.records.harness import HarnessState, Hook, Skill
from harness_cli.records.reader import dump_yaml
from harness_cli.store.project import Project


def show(
    kind: str, name: str | None, rev: str | None, folder: Path, *, as_json: bool, quiet: bool
) -> None:
    """One module by name, or all of its kind as a table."""
    state = load_state(Project.find(folder), rev)
    named, columns, row = _KINDS[kind](state)
    if name is None:
        if as_json:
            emit_json({"harness": state.id, f"{kind}s": list(named.values())})
        elif quiet:
            line("\n".join(named))
        else:
            table(columns, [row(value) for value in named.values()])
        return
    if name not in named:
        raise UnknownName.of(kind, name, named)
    value = named[name]
    if as_json:
        emit_json({"harness": state.id, kind: value})
    elif isinstance(value, Skill):
        _skill(value)
    else:
        line(dump_yaml(value).rstrip())


def _skill(skill: Skill) -> None:
    line(f"{skill.name}  ({skill.kind}, version {skill.version}, {skill.path})")
    line(skill.description)
    for key, value in skill.metadata.items():
        line(f"  {key}: {value}")
    if skill.allowed_tools:
        line(f"  allowed-tools: {' '.join(skill.allowed_tools)}")
    line(f"\n{skill.body.rstrip()}")


Kind = tuple[dict[str, Any], list[str], Callable[[Any], list[Any]]]


def _skills(state: HarnessState) -> Kind:
    def row(skill: Skill) -> list[Any]:
        tokens = f"≈{estimate(skill.body)}"
        return [skill.name, skill.kind, skill.version, tokens, skill.description]

    columns = ["skill", "kind", "version", "tokens", "description"]
    return {skill.name: skill for skill in state.skills}, columns, row


def _tools(state: HarnessState) -> Kind:
    executors = {tool.name: tool.executor for tool in state.all_tools()}

    def row(tool: dict[str, Any]) -> list[Any]:
        schema = tool["parameters"]
        required = schema.get("required", [])
        shown = [n if n in required else f"[{n}]" for n in schema.get("properties", {})]
        name = tool["name"]
        executor = state.server_of(name) or executors[name]
        return [name, executor, " ".join(shown), tool["description"]]

    named = {d["function"]["name"]: d["function"] for d in offered(state)}
    return named, ["tool", "executor", "arguments", "description"], row


def _hooks(state: HarnessState) -> Kind:
    def row(hook: Hook) -> list[Any]:
        does = ", ".join(check.check for check in hook.checks) or " ".join(hook.command)
        return [hook.priority, hook.name, hook.event, does, hook.action]

    columns = ["priority", "hook", "event", "checks", "action"]
    return {hook.name: hook for hook in state.hooks}, columns, row


_KINDS: dict[str, Callable[[HarnessState], Kind]] = {
    "skill": _skills,
    "tool": _tools,
    "hook": _hooks,
}
