"""Hooks: known checks, known settings, patterns that compile, command files that exist."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from harness_cli.errors import UsageError
from harness_cli.harness.conditions import compiled
from harness_cli.harness.findings import Finding
from harness_cli.harness.hook_checks import CHECKS, BuiltinCheck, Setting
from harness_cli.harness.parts import Parts
from harness_cli.records.harness import Check, Hook
from harness_cli.store.tree import EXECUTABLE

_TOOL_EVENTS = ("before_tool", "after_tool")


def check_hooks(parts: Parts) -> Iterator[Finding]:
    """What is wrong with the hooks of a harness."""
    for path, hook in parts.hooks.items():
        yield from _shape(parts, path, hook)
        yield from _matching(parts, path, hook)
        yield from _command(parts, path, hook)
        for index, check in enumerate(hook.checks):
            yield from _check(parts, path, hook, check, f"$.checks[{index}]")


def _shape(parts: Parts, path: str, hook: Hook) -> Iterator[Finding]:
    stem = PurePosixPath(path).stem
    if hook.name != stem:
        yield parts.finding(
            path,
            "$.name",
            "hook/name",
            f"the name `{hook.name}` differs from its file `{stem}.yaml`",
            fix=f"write `name: {stem}` or rename the file",
        )
    if bool(hook.checks) == bool(hook.command):
        both = (
            "both `checks` and a `command`" if hook.checks else "neither `checks` nor a `command`"
        )
        yield parts.finding(
            path, "$.event", "hook/empty", f"the hook has {both}", fix="give it one"
        )
    if hook.timeout_s <= 0:
        yield parts.finding(path, "$.timeout_s", "hook/time", "`timeout_s` must be above 0")
    if hook.max_retries < 0:
        yield parts.finding(path, "$.max_retries", "hook/time", "`max_retries` is below 0")


def _matching(parts: Parts, path: str, hook: Hook) -> Iterator[Finding]:
    if hook.when is not None:
        try:
            compiled(hook.when)
        except UsageError as exc:
            yield parts.finding(path, "$.when", "hook/condition", str(exc), fix=exc.hint)
    if hook.event not in _TOOL_EVENTS:
        if hook.tools != ("*",):
            yield parts.finding(
                path,
                "$.tools",
                "hook/tools",
                f"`tools` has no meaning at `{hook.event}`",
                level="warning",
                fix=f"remove it, or use {' or '.join(_TOOL_EVENTS)}",
            )
        return
    known = parts.tool_names()
    for index, pattern in enumerate(hook.tools):
        if not any(fnmatchcase(name, pattern) for name in known):
            yield parts.finding(
                path,
                f"$.tools[{index}]",
                "hook/tools",
                f"`{pattern}` matches no tool",
                level="warning",
                fix=_near(pattern, known),
            )


def _command(parts: Parts, path: str, hook: Hook) -> Iterator[Finding]:
    for index, word in enumerate(hook.command):
        if not word.startswith("hooks/"):
            continue
        entry = parts.files.get(word)
        if entry is None:
            yield parts.finding(
                path,
                f"$.command[{index}]",
                "hook/command",
                f"no file `{word}` in the harness",
                fix=_near(word, parts.files) or "commit the file under `hooks/`",
            )
        elif index == 0 and entry.mode != EXECUTABLE:
            yield parts.finding(
                path,
                f"$.command[{index}]",
                "hook/command",
                f"`{word}` is not executable",
                fix=f"`chmod +x` it, or name its interpreter first: `[python3, {word}]`",
            )


def _check(parts: Parts, path: str, hook: Hook, check: Check, at: str) -> Iterator[Finding]:
    known = CHECKS.get(check.check)
    if known is None:
        yield parts.finding(
            path,
            f"{at}.check",
            "hook/unknown-check",
            f"no built-in check `{check.check}`",
            fix=_near(check.check, CHECKS) or f"known: {', '.join(CHECKS)}",
        )
        return
    if hook.event not in known.events:
        yield parts.finding(
            path,
            f"{at}.check",
            "hook/event",
            f"`{check.check}` has nothing to look at on `{hook.event}`",
            level="warning",
            fix=f"its events: {', '.join(known.events)}",
        )
    yield from _settings(parts, path, check, known, at)


def _settings(
    parts: Parts, path: str, check: Check, known: BuiltinCheck, at: str
) -> Iterator[Finding]:
    given = check.with_
    for name in sorted(given.keys() - known.settings.keys()):
        yield parts.finding(
            path,
            f"{at}.with.{name}",
            "hook/unknown-setting",
            f"`{check.check}` has no setting `{name}`",
            fix=_near(name, known.settings) or f"known: {', '.join(known.settings) or 'none'}",
        )
    for name, setting in known.settings.items():
        if name in given:
            for message, fix in _setting(parts, setting, given[name]):
                where, text = f"{at}.with.{name}", f"`{name}`: {message}"
                yield parts.finding(path, where, "hook/setting", text, fix=fix)
        elif setting.required:
            message, fix = f"`{check.check}` needs `{name}`", f"`with: {{{name}: …}}`"
            yield parts.finding(path, at, "hook/setting", message, fix=fix)
    if known.one_of and not given.keys() & set(known.one_of):
        message = f"`{check.check}` needs one of {', '.join(known.one_of)}"
        yield parts.finding(path, at, "hook/setting", message, fix="give it under `with`")


def _setting(parts: Parts, setting: Setting, value: Any) -> Iterator[tuple[str, str]]:
    """(message, fix) of everything wrong with one setting's value."""
    if setting.kind == "number":
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            yield f"`{value}` is no whole number above 0", ""
    elif setting.kind == "constraint":
        names = {name for p in parts.pipelines.values() for name in p.constraints}
        if not isinstance(value, str) or value not in names:
            yield f"no pipeline has a constraint `{value}`", _near(str(value), names)
    elif setting.kind == "word":
        if value not in setting.words:
            yield f"`{value}` is not known", f"known: {', '.join(setting.words)}"
    elif not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        yield "must be a list of texts", "write `[…, …]`"
    else:
        for text in value:
            yield from _text(parts, setting, text)


def _text(parts: Parts, setting: Setting, text: str) -> Iterator[tuple[str, str]]:
    if setting.kind == "regexes":
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as exc:
            yield f"`{text}` is no regular expression: {exc}", "escape it, or put it in quotes"
    elif setting.kind == "tools":
        known = parts.tool_names()
        if text not in known:
            yield f"no tool `{text}`", _near(text, known)
    elif setting.kind == "skills":
        names = {skill.name for skill in parts.skills.values()}
        if text not in names:
            yield f"no skill `{text}`", _near(text, names)
    elif text not in setting.words:
        yield f"`{text}` is not known", f"known: {', '.join(setting.words)}"


def _near(word: str, known: Any) -> str:
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{found[0]}`?" if found else ""
