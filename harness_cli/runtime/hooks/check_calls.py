"""Checks on tool calls, their results, and what must have been called before a reply."""

from collections.abc import Sequence

from harness_cli.errors import HookError
from harness_cli.harness.memo import Memo
from harness_cli.harness.tools import argument_errors, value_errors
from harness_cli.runtime.arguments import stored_arguments
from harness_cli.runtime.hooks.check_text import Found, comments_of
from harness_cli.runtime.hooks.moment import Asked, Moment, Objection
from harness_cli.runtime.hooks.patterns import compiled, find_any

_ERRORS: Memo[list[str]] = Memo(4_096)
"""Viewers ask the same again: the same arguments under the same schema are judged once."""


def schema_problem(asked: Asked) -> str:
    """What is wrong with a call's arguments, "" when nothing is. Computed once per call."""
    if asked.problem:
        return asked.problem
    if asked.tool is None or asked.arguments is None:
        return ""
    if asked.errors is None:
        tool, arguments = asked.tool, asked.arguments
        asked.errors = _ERRORS.get(
            (tool.input_schema,),
            stored_arguments(arguments),
            lambda: argument_errors(tool, arguments),
        )
    return "; ".join(asked.errors)


def arguments_schema() -> Found:
    """The arguments are one JSON object and fit the tool's schema."""

    def check(moment: Moment) -> Objection | None:
        problem = schema_problem(moment.call) if moment.call else ""
        return Objection(reason=problem) if problem else None

    return check


def tool_result_schema() -> Found:
    """A successful result has content, and fits the tool's `outputSchema` where it has one."""

    def check(moment: Moment) -> Objection | None:
        result, call = moment.result, moment.call
        if result is None or call is None or not result.ok:
            return None
        if not result.content.strip():
            return Objection(reason=f"`{call.name}` gave back nothing")
        schema = call.tool.output_schema if call.tool else None
        if not schema:
            return None
        errors = value_errors(schema, result.structured)[:3]
        return Objection(reason=f"`{call.name}` gave back: {'; '.join(errors)}") if errors else None

    return check


def reply_skill_required(unless_tools: Sequence[str] = ("refuse",)) -> Found:
    """At least one reply skill was loaded before a substantive reply (TR §2.4, Skill Routing)."""
    _names("unless_tools", unless_tools)

    def check(moment: Moment) -> Objection | None:
        if not moment.reply or moment.compact or moment.reply_skills:
            return None
        if any(c.name in unless_tools for c in moment.calls):
            return None
        return Objection(reason="no reply skill was loaded; load the one that fits")

    return check


def tool_required(triggers: Sequence[str], tools: Sequence[str], on: str = "comment") -> Found:
    """Where a comment (or the reply) matches, one of the tools has given a result."""
    _names("triggers", triggers)
    _names("tools", tools)
    if on not in ("comment", "reply"):
        raise HookError(f"`on: {on}` is not one of comment, reply")
    regexes = [compiled(t) for t in triggers]

    def check(moment: Moment) -> Objection | None:
        if not moment.reply or moment.compact or moment.refused:
            return None
        if any(c.name in tools for c in moment.calls):
            return None
        text = comments_of(moment.request) if on == "comment" else moment.reply
        found = find_any(regexes, text)
        if found is None:
            return None
        return Objection(reason=f"`{found[:40]}` needs a call of {' or '.join(tools)} first")

    return check


def _names(setting: str, values: Sequence[str]) -> None:
    if isinstance(values, str) or not all(isinstance(v, str) for v in values):
        raise HookError(f"`{setting}` must be a list of texts")
