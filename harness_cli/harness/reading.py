"""A harness file into a record, with every mistake in it and not only the first."""

import json
import re
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from harness_cli.errors import BadFile
from harness_cli.harness.findings import Finding, of_error
from harness_cli.records.decode_fixes import fix_for
from harness_cli.records.reader import decode, line_of, text_of
from harness_cli.records.yaml_entries import load_entries

T = TypeVar("T")
_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_MOST = 20
"""Mistakes reported per file."""
_SYNTAX = "look for a quote, a bracket or an indent that is missing or too much"


def read_record(data: bytes, kind: type[T], path: str, rule: str) -> tuple[T | None, list[Finding]]:
    """YAML or (`.json`) JSON into a record; None and all findings when it is none.

    The same bytes are read once: harnesses that differ in a few files share the records of the
    others, which nobody changes.
    """
    hashable: Any = kind
    record, findings = _read_once(data, hashable, path, rule)
    return record, list(findings)


@lru_cache(maxsize=4096)
def _read_once(data: bytes, kind: Any, path: str, rule: str) -> tuple[Any, tuple[Finding, ...]]:
    record, findings = _read(data, kind, path, rule)
    return record, tuple(findings)


def _read(data: bytes, kind: type[T], path: str, rule: str) -> tuple[T | None, list[Finding]]:
    try:
        text = text_of(data, name=path)
        value = _load_json(text, path) if path.endswith(".json") else load_entries(text, name=path)
    except BadFile as exc:
        found = of_error(exc, path, rule)
        return None, [msgspec.structs.replace(found, fix=exc.hint or _SYNTAX)]
    if value is None:
        message, fix = "the file is empty", "fill it or remove it"
        return None, [Finding(path=path, line=1, rule=rule, message=message, fix=fix)]
    record, findings = read_value(value, kind, path, rule, text)
    version = value.get("schema", 1) if isinstance(value, dict) else 1
    if hasattr(kind, "schema") and version != 1 and not findings:
        findings.append(
            Finding(
                path=path,
                line=line_of(text, "$.schema"),
                rule="file/schema",
                message=f"schema {version} is not known to this version",
                fix="this version reads schema 1; `harness migrate` moves old files",
            )
        )
    return (None if findings else record), findings


def _load_json(text: str, path: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as exc:
        message = f"{path}:{exc.lineno}:{exc.colno}: {exc.msg}"
        raise BadFile(message, hint="the file is cut short or no JSON") from exc
    except ValueError as exc:  # NaN, Infinity, a number of 5,000 digits
        raise BadFile(f"{path}:1: {exc}", hint="write a number that JSON knows") from exc
    except RecursionError as exc:
        raise BadFile(f"{path}:1: nested too deeply") from exc


def _no_number(word: str) -> Any:
    raise ValueError(f"`{word}` is no JSON")


def read_value(
    value: Any, kind: type[T], path: str, rule: str, text: str
) -> tuple[T | None, list[Finding]]:
    """Plain data into a record: a wrong field is reported, taken out, and the rest is read."""
    findings: list[Finding] = []
    taken: list[list[str | int]] = []
    while len(findings) < _MOST:
        try:
            record = decode(kind, value, where=path)
        except BadFile as exc:
            steps = _place(exc, value, kind)
            missing = _MISSING.search(str(exc.__cause__))
            if missing and [*steps, missing["name"]] in taken:
                break  # it stands in the file, wrong, and has been reported
            fix = exc.hint or fix_for(str(exc.__cause__), kind, steps)
            findings.append(_finding(str(exc.__cause__), steps, path, rule, text, fix))
            if missing or not steps:
                break
            taken.append(steps)
            value = _without(value, steps)
            continue
        return (None if findings else record), findings
    return None, findings


def _place(exc: BadFile, value: Any, kind: Any) -> list[str | int]:
    """Where the decoder stopped, as keys and indexes."""
    cause = str(exc.__cause__)
    place = _PATH.search(cause)
    steps = _steps(place["path"] if place else "$", value, kind, cause)
    unknown = _UNKNOWN.search(cause)
    return [*steps, unknown["name"]] if unknown else steps


def _finding(
    cause: str, steps: list[str | int], path: str, rule: str, text: str, fix: str
) -> Finding:
    where = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)
    message, shown = _PATH.sub("", cause), where.lstrip(".")
    return Finding(
        path=path,
        line=line_of(text, f"${where}") if text else 0,
        rule=rule,
        message=f"{message} at `{shown}`" if shown and "unknown field" not in cause else message,
        fix=fix,
    )


def _steps(path: str, value: Any, kind: Any, cause: str) -> list[str | int]:
    """A msgspec path as keys and indexes; `[...]` (some value of a mapping) is looked for."""
    steps: list[str | int] = []
    node = value
    for key, index in _STEP.findall(path.removeprefix("$")):
        step: str | int = key or index
        if index == "..." and isinstance(node, dict):
            step = _culprit(value, steps, node, kind, cause)
        elif index.isdigit():
            step = int(index)
        steps.append(step)
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            break
    return steps


def _culprit(value: Any, steps: list[str | int], node: dict[Any, Any], kind: Any, why: str) -> str:
    """The key of `node` without which the error is another one or none."""
    for key in node:
        try:
            msgspec.convert(_without(value, [*steps, key]), kind)
        except msgspec.ValidationError as exc:
            if str(exc) == why:
                continue
        return str(key)
    return str(next(iter(node)))


def _without(value: Any, steps: list[str | int]) -> Any:
    """A copy of plain data without the node at `steps`."""
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        if not rest:
            return {k: v for k, v in value.items() if k != step}
        return {k: _without(v, rest) if k == step else v for k, v in value.items()}
    if isinstance(value, list) and isinstance(step, int):
        if not rest:
            return [v for i, v in enumerate(value) if i != step]
        return [_without(v, rest) if i == step else v for i, v in enumerate(value)]
    return value
