"""Findings: what is wrong, where, and what to do about it; as text, JSON and SARIF 2.1.0."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from harness_cli import __version__
from harness_cli.errors import BadFile, UsageError
from harness_cli.harness.fixes import FIXES
from harness_cli.records.counting import counted

Level = Literal["error", "warning", "note"]
_PLACE = re.compile(r":(?P<line>\d+)(?::(?P<column>\d+))?: ")
_INFORMATION = "https://json.schemastore.org/sarif-2.1.0.json"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to fix. `line` and `column` start at 1; 0 means the file as a whole."""

    path: str
    line: int = 0
    column: int = 0
    level: Level = "error"
    rule: str
    """`<subject>/<what>`, stable: `skill/name`, `hook/unknown-check` … ."""
    message: str
    fix: str = ""
    """What to do about it; the rule's own when none is given."""

    def __post_init__(self) -> None:
        if not self.fix:
            msgspec.structs.force_setattr(self, "fix", FIXES.get(self.rule, ""))

    @property
    def place(self) -> str:
        """`path:line:column`, as editors and terminals understand it."""
        shown = shown_path(self.path)
        if not self.line:
            return shown
        return f"{shown}:{self.line}" + (f":{self.column}" if self.column else "")


def shown_path(path: str) -> str:
    """A path fit to print: line breaks, control characters and stray bytes are escaped."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def of_error(error: UsageError, path: str, rule: str) -> Finding:
    """A reader's `BadFile` as a finding; its `name:line:column:` becomes the place."""
    text = str(error)
    line = column = 0
    if text.startswith(path):
        found = _PLACE.match(text, len(path))
        if found:
            line, column = int(found["line"]), int(found["column"] or 0)
            text = text[found.end() :]
        else:
            text = text[len(path) :].removeprefix(": ")
    return Finding(
        path=path, line=line, column=column, rule=rule, message=text, fix=error.hint or ""
    )


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """By path, line, column; equal ones once."""
    unique = {msgspec.structs.astuple(f): f for f in findings}
    return sorted(unique.values(), key=lambda f: (f.path, f.line, f.column, f.rule, f.message))


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those that keep a state from loading."""
    return [f for f in findings if f.level == "error"]


def bad_file(findings: Sequence[Finding]) -> BadFile:
    """One exception that lists every error."""
    wrong = errors(findings)
    if len(wrong) == 1:
        return BadFile(f"{wrong[0].place}: {wrong[0].message}", hint=wrong[0].fix or None)
    lines = [f"  {f.place}: {f.message}" + (f"; {f.fix}" if f.fix else "") for f in wrong]
    message = f"{counted(len(wrong), 'error')}\n" + "\n".join(lines)
    return BadFile(message, hint="`harness check` shows them with the warnings")


def as_text(findings: Sequence[Finding]) -> str:
    """One finding a line pair: place, level, message [rule], and the fix below it."""
    lines: list[str] = []
    for finding in findings:
        message = " ".join(finding.message.split())
        lines.append(f"{finding.place}: {finding.level}: {message} [{finding.rule}]")
        if finding.fix:
            lines.append(f"    fix: {finding.fix}")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """`{"findings": […], "errors": n, "warnings": n}`."""
    return {
        "findings": [{**msgspec.structs.asdict(f), "path": shown_path(f.path)} for f in findings],
        "errors": len(errors(findings)),
        "warnings": sum(f.level == "warning" for f in findings),
    }


def as_sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run, as code-scanning services read it."""
    rules = sorted({f.rule for f in findings})
    return {
        "$schema": _INFORMATION,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "harness",
                        "version": __version__,
                        "rules": [{"id": rule, "name": _pascal(rule)} for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"PROJECT": {"description": {"text": "The project folder."}}},
                "results": [_result(f, rules.index(f.rule)) for f in findings],
            }
        ],
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "artifactLocation": {"uri": _uri(finding.path), "uriBaseId": "PROJECT"}
    }
    if finding.line:
        place["region"] = {"startLine": finding.line}
        if finding.column:
            place["region"]["startColumn"] = finding.column
    text = finding.message + (f"\nFix: {finding.fix}" if finding.fix else "")
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.encode("utf-8", "surrogateescape"))


def _pascal(rule: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"[^a-z0-9]+", rule))
