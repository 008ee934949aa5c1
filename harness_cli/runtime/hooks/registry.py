"""The built-in checks by the name a hook file uses. Each factory takes its settings by keyword."""

from collections.abc import Callable
from typing import Any

from harness_cli.runtime.hooks import (
    check_answer,
    check_calls,
    check_conduct,
    check_judging,
    check_text,
)
from harness_cli.runtime.hooks.check_grounded import grounded_claims
from harness_cli.runtime.hooks.moment import Moment, Objection

CHECKS: dict[str, Callable[..., Callable[[Moment], Objection | None]]] = {
    "request_valid": check_text.request_valid,
    "forbid_pattern": check_text.forbid_pattern,
    "require_pattern": check_text.require_pattern,
    "length": check_text.length,
    "output_format": check_text.output_format,
    "ai_identity": check_conduct.ai_identity,
    "unsupported_promise": check_conduct.unsupported_promise,
    "arguments_schema": check_calls.arguments_schema,
    "tool_result_schema": check_calls.tool_result_schema,
    "reply_skill_required": check_calls.reply_skill_required,
    "tool_required": check_calls.tool_required,
    "malformed_output": check_answer.malformed_output,
    "parallel_mutations": check_answer.parallel_mutations,
    "repeat_call": check_answer.repeat_call,
    "loop_stop": check_answer.loop_stop,
    "grounded_claims": grounded_claims,
    "answer_required": check_judging.answer_required,
    "single_answer": check_judging.single_answer,
    "skills_required": check_judging.skills_required,
    "evidence_cited": check_judging.evidence_cited,
}


def settings_of(name: str) -> dict[str, Any]:
    """The settings a check takes, with their defaults."""
    import inspect

    return {
        p.name: None if p.default is p.empty else p.default
        for p in inspect.signature(CHECKS[name]).parameters.values()
    }
