"""Checks on an agent that answers by a tool: one verdict, which cites what was seen."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from harness_cli.errors import HookError
from harness_cli.runtime.hooks.check_text import Found
from harness_cli.runtime.hooks.moment import Moment, Objection

_REF = re.compile(r'"ref": "([^"\\]+)"')
"""A reference in the case that a judge is given. Text that is judged stands there with its quotes
escaped, so it can make none."""


def answer_required(tools: Sequence[str]) -> Found:
    """The answer is a call of one of `tools`; text alone is none."""
    _names("tools", tools)

    def check(moment: Moment) -> Objection | None:
        if any(c.name in tools and c.result.ok for c in moment.calls):
            return None
        return Objection(reason=f"text is no answer here; call {' or '.join(tools)}")

    return check


def single_answer(tools: Sequence[str]) -> Found:
    """At most one call of `tools` in one answer: of two verdicts neither counts."""
    _names("tools", tools)

    def check(moment: Moment) -> Objection | None:
        count = sum(a.name in tools for a in moment.asked)
        if count < 2:
            return None
        return Objection(reason=f"{count} calls of {' or '.join(tools)} in one answer; give one")

    return check


def skills_required(skills: Sequence[str]) -> Found:
    """These skills were loaded before the call."""
    _names("skills", skills)

    def check(moment: Moment) -> Objection | None:
        missing = [s for s in skills if s not in moment.skills]
        return Objection(reason=f"not loaded yet: {', '.join(missing)}") if missing else None

    return check


def evidence_cited() -> Found:
    """Every `ref` under `evidence` of the call stands in the request or in a result so far."""

    def check(moment: Moment) -> Objection | None:
        arguments = (moment.call.arguments if moment.call else None) or {}
        cited = arguments.get("evidence")
        rows = cited if isinstance(cited, list) else []
        refs = [row.get("ref") for row in rows if isinstance(row, dict)]
        known = references(moment)
        unknown = sorted({str(ref) for ref in refs if ref not in known})
        if not unknown:
            return None
        near = ", ".join(sorted(known)[:40])
        return Objection(reason=f"no evidence is named {', '.join(unknown)}; there is: {near}")

    return check


def references(moment: Moment) -> set[str]:
    """What may be cited: references of the request's case and of the results so far."""
    known = set(_REF.findall(moment.request.prompt or ""))
    for call in moment.calls:
        if call.result.ok:
            known.update(_refs(call.result.structured))
    return known


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("ref"), str):
            yield value["ref"]
        for inner in value.values():
            yield from _refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _refs(inner)


def _names(setting: str, values: Sequence[str]) -> None:
    if isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise HookError(f"`{setting}` must be a list of texts")
