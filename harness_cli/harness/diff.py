"""The semantic difference of two harness states: this rule of this skill, this parameter."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from harness_cli.harness.diff_hooks import diff_hook
from harness_cli.harness.diff_prompts import diff_prompts
from harness_cli.harness.diff_text import diff_text
from harness_cli.harness.diff_tools import diff_tool, same_tool
from harness_cli.records.harness import HarnessState, Skill, Tool

Action = Literal["added", "removed", "changed", "renamed", "moved"]
T = TypeVar("T")


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One change, in the words of the harness."""

    module: str
    """skill, tool, hook, prompt, mcp, reply or file."""
    name: str
    """Of the skill, tool, hook, block, server …"""
    what: str = ""
    """The part: `description`, `Rules: rule`, `parameter link_id`, `check length: max_chars` …"""
    action: Action
    before: Any = None
    after: Any = None
    path: str = ""

    @property
    def title(self) -> str:
        """`skill item-qa · Rules: rule changed`."""
        part = f" · {self.what}" if self.what else ""
        return f"{self.module} {self.name}{part} {self.action}"


class StateDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that changed from state `a` to state `b`."""

    a: str
    """Harness id."""
    b: str
    changes: tuple[Change, ...] = ()

    @property
    def same(self) -> bool:
        """Same content, same name."""
        return self.a == self.b

    def modules(self) -> dict[str, int]:
        """Number of changes by module."""
        return dict(Counter(change.module for change in self.changes))


def diff_states(a: HarnessState, b: HarnessState) -> StateDiff:
    """What changed from `a` to `b`, by meaning; a file rewritten without effect is listed last."""
    changes = [
        *_skills(a, b),
        *_tools(a, b),
        *_hooks(a, b),
        *(Change(module=m, name=n, what=w, action=c, before=o, after=t, path=p)  # type: ignore[arg-type]
          for m, n, w, c, o, t, p in diff_prompts(a, b)),
        *_mcp(a, b),
        *_replies(a, b),
    ]  # fmt: skip
    changes += _files(a, b, {change.path for change in changes})
    return StateDiff(a=a.id, b=b.id, changes=tuple(changes))


def _pairs(
    old: Mapping[str, T], new: Mapping[str, T], same: Callable[[T, T], bool]
) -> tuple[list[tuple[str, T]], list[tuple[str, T]], list[tuple[str, str]]]:
    """Named things that went, that came, and (old name, new name) of those renamed."""
    gone = {name: value for name, value in old.items() if name not in new}
    come = {name: value for name, value in new.items() if name not in old}
    renamed = []
    for name in list(gone):
        twin = next((n for n, value in come.items() if same(gone[name], value)), None)
        if twin is not None:
            renamed.append((name, twin))
            del gone[name], come[twin]
    return list(gone.items()), list(come.items()), renamed


def _skills(a: HarnessState, b: HarnessState) -> Iterator[Change]:
    old, new = {s.name: s for s in a.skills}, {s.name: s for s in b.skills}
    gone, come, renamed = _pairs(old, new, lambda s, t: s.body == t.body and bool(s.body))
    for name, skill in gone:
        yield Change(
            module="skill", name=name, action="removed", before=skill.description, path=skill.path
        )
    for name, skill in come:
        yield Change(
            module="skill", name=name, action="added", after=skill.description, path=skill.path
        )
    for was, now in renamed:
        yield Change(
            module="skill", name=was, action="renamed", before=was, after=now, path=new[now].path
        )
    matched = [(name, name) for name in new if name in old] + renamed
    for was, now in sorted(matched, key=lambda pair: pair[1]):
        yield from _skill(old[was], new[now])


def _skill(old: Skill, new: Skill) -> Iterator[Change]:
    def change(what: str, action: Any, before: Any = None, after: Any = None) -> Change:
        return Change(
            module="skill", name=new.name, what=what, action=action,
            before=before, after=after, path=new.path,
        )  # fmt: skip

    for field in ("description", "license", "compatibility"):
        if getattr(old, field) != getattr(new, field):
            yield change(field, "changed", getattr(old, field), getattr(new, field))
    if old.allowed_tools != new.allowed_tools:
        yield change("allowed-tools", "changed", list(old.allowed_tools), list(new.allowed_tools))
    for key in sorted({*old.metadata, *new.metadata}):
        before, after = old.metadata.get(key), new.metadata.get(key)
        if before != after:
            yield change(f"metadata {key}", _action(before, after), before, after)
    for found in diff_text(old.body, new.body):
        what = f"{found.section}: {found.unit}" if found.section else found.unit
        what = f"section {found.section}".strip() if found.unit == "section" else what
        yield change(what, found.action, found.before, found.after)


def _action(before: Any, after: Any) -> str:
    return "added" if before is None else "removed" if after is None else "changed"


def _tools(a: HarnessState, b: HarnessState) -> Iterator[Change]:
    old, new = {t.name: t for t in a.all_tools()}, {t.name: t for t in b.all_tools()}
    gone, come, renamed = _pairs(old, new, same_tool)
    for name, tool in gone:
        yield _tool_change(a, tool, "", "removed", name, None)
    for name, tool in come:
        yield _tool_change(b, tool, "", "added", None, name)
    for was, now in renamed:
        yield _tool_change(b, new[now], "", "renamed", was, now)
    for was, now in [*((n, n) for n in new if n in old), *renamed]:
        for found in diff_tool(old[was], new[now]):
            yield _tool_change(b, new[now], found.what, found.action, found.before, found.after)


def _tool_change(
    state: HarnessState, tool: Tool, what: str, action: Any, before: Any, after: Any
) -> Change:
    path = "tools/mcp.lock.json" if state.server_of(tool.name) else f"tools/{tool.name}.yaml"
    return Change(
        module="tool", name=tool.name, what=what, action=action,
        before=before, after=after, path=path,
    )  # fmt: skip


def _hooks(a: HarnessState, b: HarnessState) -> Iterator[Change]:
    old, new = {h.name: h for h in a.hooks}, {h.name: h for h in b.hooks}
    for name in sorted({*old, *new}):
        path = f"hooks/{name}.yaml"
        if name not in old or name not in new:
            action: Action = "added" if name in new else "removed"
            yield Change(module="hook", name=name, action=action, path=path)
            continue
        for what, how, before, after in diff_hook(old[name], new[name]):
            yield Change(
                module="hook", name=name, what=what, action=how,  # type: ignore[arg-type]
                before=before, after=after, path=path,
            )  # fmt: skip


def _mcp(a: HarnessState, b: HarnessState) -> Iterator[Change]:
    for alias in sorted({*a.mcp, *b.mcp}):
        old, new = a.mcp.get(alias), b.mcp.get(alias)
        if old is None or new is None:
            yield Change(
                module="mcp",
                name=alias,
                action="added" if new else "removed",
                path="tools/mcp.yaml",
            )
            continue
        for field in old.__struct_fields__:
            before, after = getattr(old, field), getattr(new, field)
            if before != after:
                yield Change(
                    module="mcp", name=alias, what=field, action="changed",
                    before=msgspec.to_builtins(before), after=msgspec.to_builtins(after),
                    path="tools/mcp.yaml",
                )  # fmt: skip


def _replies(a: HarnessState, b: HarnessState) -> Iterator[Change]:
    if a.fallback != b.fallback:
        yield Change(
            module="prompt", name="fallback", what="text", action="changed",
            before=a.fallback, after=b.fallback, path="fallback.md",
        )  # fmt: skip
    for key in ("conservative", "refusal"):
        old, new = getattr(a.replies, key), getattr(b.replies, key)
        for code in sorted({*old, *new}):
            before, after = old.get(code), new.get(code)
            if before != after:
                yield Change(
                    module="reply", name=key, what=code, action=_action(before, after),  # type: ignore[arg-type]
                    before=before, after=after, path="replies.yaml",
                )  # fmt: skip


def _files(a: HarnessState, b: HarnessState, told: set[str]) -> Iterator[Change]:
    """Files that no change above speaks of: scripts, resources, and mere formatting."""
    for path in sorted({*a.files, *b.files} - told):
        before, after = a.files.get(path), b.files.get(path)
        if before == after:
            continue
        read = _is_read(path)
        if read and (before is None or after is None):
            continue  # the skill, tool, hook or block itself was added, removed or renamed
        what = "form only" if read else "content"
        action: Any = _action(before, after)
        yield Change(module="file", name=path, what=what, action=action, path=path)


def _is_read(path: str) -> bool:
    return path.endswith((".yaml", "SKILL.md", "mcp.lock.json", "fallback.md")) or path.startswith(
        "prompts/blocks/"
    )
