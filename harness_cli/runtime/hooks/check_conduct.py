"""Checks on the conduct of the host: it is an AI and says so, it promises nothing of its own."""

from collections.abc import Sequence

from harness_cli.runtime.hooks.check_text import Found, comments_of, patterns_of
from harness_cli.runtime.hooks.moment import Moment, Objection
from harness_cli.runtime.hooks.patterns import find_any

ASKED = (
    r"\b(?:are|r) (?:you|u) (?:an? )?(?:real|human|person|robot|bot|ai)\b",
    r"\breal (?:person|human)\b",
    r"真人|机器人|人工智能|数字人",
)
DISCLOSED = (r"\b(?:AI|virtual|digital|avatar)\b|人工智能|虚拟|数字人|AI",)
CLAIMED = (
    r"\bI(?:'m| am) (?:an? )?(?:real|human|actual)\b|\bI(?:'m| am) not (?:an? )?(?:robot|bot|AI)\b",
    r"我(?:就)?是真人|我不是(?:机器人|AI|数字人)",
)
PROMISES = (
    r"\b(?:I|we) (?:guarantee|promise)\b|\bguaranteed\b|\b100 ?% (?:safe|effective)\b",
    r"保证|包好|包治|百分之?百(?:有效|安全)|绝对(?:有效|安全)",
)
"""What the two checks look for where a hook names nothing of its own."""


def ai_identity(
    asked: Sequence[str] = ASKED,
    disclose: Sequence[str] = DISCLOSED,
    forbid: Sequence[str] = CLAIMED,
) -> Found:
    """The host never passes for a human, and says that it is an AI when it is asked."""
    questions, disclosures, claims = patterns_of(asked), patterns_of(disclose), patterns_of(forbid)

    def check(moment: Moment) -> Objection | None:
        claim = find_any(claims, moment.reply)
        if claim is not None:
            return Objection(reason=f"the reply passes for a human: `{claim[:60]}`")
        if not moment.reply or find_any(questions, comments_of(moment.request)) is None:
            return None
        if disclosures and find_any(disclosures, moment.reply) is None:
            return Objection(reason="the viewer asks who speaks and the reply does not say: an AI")
        return None

    return check


def unsupported_promise(patterns: Sequence[str] = PROMISES) -> Found:
    """No guarantee or promise that neither a tool result nor an FAQ entry makes."""
    regexes = patterns_of(patterns)

    def check(moment: Moment) -> Objection | None:
        found = find_any(regexes, moment.reply)
        if found is None or found.casefold() in _sources(moment):
            return None
        return Objection(reason=f"nothing supports the promise `{found[:60]}`")

    return check


def _sources(moment: Moment) -> str:
    """Everything a reply may rest on, as one lower-case text."""
    ours = ("load_skill",)
    told = (c for c in moment.calls if c.result.ok and c.name not in ours)
    parts = [c.result.content for c in told if c.executor != "builtin"]
    parts += [f.answer for f in moment.request.faq]
    return "\n".join(parts).casefold()
