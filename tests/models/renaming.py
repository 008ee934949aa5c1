"""A project whose skills and tools carry other names, everywhere and consistently.

The files of a harness, and what items expect, keep every word but the names: of folders and files,
in front matter, settings and lists, in back quotes, and where a rule points to another skill. A
tool's executor still knows it by its old name (`_meta.harness.operation`).
"""

import json
import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_cli.harness.load import load_state
from harness_cli.harness.tools import tool_digest
from harness_cli.records.canonical import canonical_json
from harness_cli.runtime.mcp_lock import read_lock
from harness_cli.store.project import Project

Names = Mapping[str, str]
LOCK = "tools/mcp.lock.json"
BUILT_IN = ("load_skill", "refuse")
POINTERS = r"(?<=: )|(?<=use )|(?<=load )|(?<=with )"
"""What stands before the name of a skill that is an ordinary word as well (`thanks`, `greet`)."""


def names_of(project: Project) -> tuple[list[str], list[str]]:
    """Skills and tools that can be renamed, each sorted."""
    state = load_state(project)
    locked = {t.tool.name for server in state.lock.servers.values() for t in server.values()}
    tools = {t.name for t in state.tools} | locked
    return sorted(s.name for s in state.skills), sorted(tools - set(BUILT_IN))


def permuted(names: Sequence[str], rng: random.Random) -> dict[str, str]:
    """Every name becomes another one of the same list."""
    shuffled = list(names)
    while any(a == b for a, b in zip(names, shuffled, strict=True)):
        rng.shuffle(shuffled)
    return dict(zip(names, shuffled, strict=True))


def made_up(names: Sequence[str], rng: random.Random, joint: str) -> dict[str, str]:
    """Every name becomes one without meaning, of as many parts."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    found: dict[str, str] = {}
    for name in names:
        parts = ["".join(rng.sample(syllables, 3)) for _ in name.split(joint)]
        found[name] = joint.join(parts)
    return found


def rename(project: Project, skills: Names, tools: Names) -> None:
    """Rewrite the harness in place and commit it."""
    locked = read_lock(project.harness)
    for path in sorted(project.harness.rglob("*")):
        if path.is_file() and path.name != Path(LOCK).name:
            path.write_text(_renamed(path.read_text(), skills, tools))
    _move(project.harness / "skills", skills, "")
    _move(project.harness / "tools", tools, ".yaml")
    for path in (project.harness / "tools").glob("*.yaml"):
        _keep_operation(path, {new: old for old, new in tools.items()})
    _write_lock(project.harness / LOCK, locked, tools)
    for words in (["add", "-A"], ["commit", "-qm", "other names"]):
        subprocess.run(["git", *words], cwd=project.root, check=True, capture_output=True)


def renamed_item(item: dict[str, Any], skills: Names, tools: Names) -> dict[str, Any]:
    """The item, expecting what it expected under the new names."""
    expect = dict(item.get("expect", {}))
    expect["skills"] = [skills.get(s, s) for s in expect.get("skills", ())]
    expect["order"] = [tools.get(t, t) for t in expect.get("order", ())]
    expect["tools"] = [{**t, "name": tools.get(t["name"], t["name"])} for t in expect["tools"]]
    return {**item, "expect": expect, "assert": [_check(a, tools) for a in item.get("assert", ())]}


def _check(check: dict[str, Any], tools: Names) -> dict[str, Any]:
    if not check["type"].removeprefix("not-").startswith("trajectory:"):
        return check
    value = check.get("value")
    if isinstance(value, dict) and "name" in value:
        value = {**value, "name": tools.get(value["name"], value["name"])}
    return {**check, "value": tools.get(value, value) if isinstance(value, str) else value}


def _renamed(text: str, skills: Names, tools: Names) -> str:
    plain = [n for n in skills if "-" not in n and n not in ("aftersale", "chillchat")]
    marked = [n for n in (*skills, *tools) if n not in plain]
    every = {**skills, **tools}
    words = "|".join(sorted(map(re.escape, marked), key=len, reverse=True))
    ordinary = "|".join(map(re.escape, plain))
    pointed = rf"(?:{POINTERS})(?:{ordinary})(?=[.,;\s]|$)"
    pattern = rf"(?<![\w-])(?:{words})(?![\w-])|`(?:{ordinary})`|{pointed}"

    def other(found: re.Match[str]) -> str:
        said = found[0]
        return f"`{every[said[1:-1]]}`" if said.startswith("`") else every[said]

    return re.sub(pattern, other, text, flags=re.MULTILINE)


def _move(folder: Path, names: Names, ending: str) -> None:
    there = {old: new for old, new in names.items() if (folder / f"{old}{ending}").exists()}
    for old in there:
        (folder / f"{old}{ending}").rename(folder / f"moving-{old}{ending}")
    for old, new in there.items():
        (folder / f"moving-{old}{ending}").rename(folder / f"{new}{ending}")


def _keep_operation(path: Path, old: Names) -> None:
    if path.stem in old:
        text = path.read_text()
        assert text.count("_meta: {") == 1, path
        path.write_text(text.replace("_meta: {", f"_meta: {{harness.operation: {old[path.stem]}, "))


def _write_lock(path: Path, lock: Any, tools: Names) -> None:
    plain = json.loads(path.read_text())
    for alias, listed in lock.servers.items():
        entries = plain["servers"][alias] = {}
        for name, one in listed.items():
            tool = _named_anew(one.tool, tools)
            entries[tools[name]] = {
                "sha256": tool_digest(tool),
                "tool": json.loads(canonical_json(tool)),
            }
    path.write_text(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")


def _named_anew(tool: Any, tools: Names) -> Any:
    import msgspec

    made = json.loads(_renamed(canonical_json(tool).decode(), {}, tools))
    made["_meta"] = {**made.get("_meta", {}), "harness.operation": tool.operation}
    return msgspec.convert(made, type(tool))
