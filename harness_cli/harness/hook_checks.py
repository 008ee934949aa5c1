"""The built-in checks a declarative hook may name, their settings and where they can look.

One table for the linter, the diff and the documentation; `runtime/hooks` carries them out.
"""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["regexes", "tools", "skills", "number", "words", "word", "constraint"]

REPLY = ("after_model", "before_reply", "after_reply")
CALL = ("after_model", "before_tool")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a check."""

    kind: Kind
    words: tuple[str, ...] = ()
    """The values that `word` and `words` know."""
    required: bool = False


@dataclass(frozen=True, slots=True)
class BuiltinCheck:
    """A check by what it can be told and at which events it has something to look at."""

    events: tuple[str, ...]
    settings: dict[str, Setting] = field(default_factory=dict)
    one_of: tuple[str, ...] = ()
    """Settings of which at least one must be given."""


_PATTERNS = Setting("regexes", required=True)

CHECKS: dict[str, BuiltinCheck] = {
    "arguments_schema": BuiltinCheck(("before_tool",)),
    "reply_skill_required": BuiltinCheck(("before_reply",), {"unless_tools": Setting("tools")}),
    "tool_required": BuiltinCheck(
        ("before_reply",),
        {
            "triggers": Setting("regexes", required=True),
            "tools": Setting("tools", required=True),
            "on": Setting("word", ("comment", "reply")),
        },
    ),
    "forbid_pattern": BuiltinCheck(
        ("request", *CALL, "before_reply", "after_reply"),
        {"patterns": _PATTERNS, "on": Setting("word", ("reply", "comment", "arguments"))},
    ),
    "require_pattern": BuiltinCheck(REPLY, {"patterns": _PATTERNS, "when": Setting("regexes")}),
    "length": BuiltinCheck(
        REPLY,
        {
            "max_chars": Setting("number"),
            "max_words": Setting("number"),
            "constraint": Setting("constraint"),
        },
        one_of=("max_chars", "max_words", "constraint"),
    ),
    "output_format": BuiltinCheck(
        REPLY,
        {
            "forbid": Setting("words", ("markdown", "json", "tags", "urls", "list")),
            "language": Setting("word", ("match_viewer",)),
        },
    ),
    "grounded_claims": BuiltinCheck(
        REPLY, {"kinds": Setting("words", ("price", "percent", "stock", "days"))}
    ),
    "ai_identity": BuiltinCheck(
        REPLY,
        {
            "asked": Setting("regexes"),
            "disclose": Setting("regexes"),
            "forbid": Setting("regexes"),
        },
    ),
    "unsupported_promise": BuiltinCheck(REPLY, {"patterns": Setting("regexes")}),
    "repeat_call": BuiltinCheck(CALL, {"limit": Setting("number")}),
    "loop_stop": BuiltinCheck(CALL, {"limit": Setting("number")}),
    "malformed_output": BuiltinCheck(("after_model",), {"allow_empty_after": Setting("tools")}),
    "parallel_mutations": BuiltinCheck(CALL, {"limit": Setting("number")}),
    "request_valid": BuiltinCheck(
        ("request",), {"max_chars": Setting("number"), "max_comments": Setting("number")}
    ),
    "tool_result_schema": BuiltinCheck(("after_tool",)),
    "answer_required": BuiltinCheck(("before_reply",), {"tools": Setting("tools", required=True)}),
    "single_answer": BuiltinCheck(("after_model",), {"tools": Setting("tools", required=True)}),
    "skills_required": BuiltinCheck(("before_tool",), {"skills": Setting("skills", required=True)}),
    "evidence_cited": BuiltinCheck(("before_tool",)),
}
