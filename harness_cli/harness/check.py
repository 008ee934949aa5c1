"""All checks of a harness: each file on its own, then what the files say about each other."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from harness_cli.harness.check_classes import check_classes
from harness_cli.harness.check_hooks import check_hooks
from harness_cli.harness.check_judge import check_judge
from harness_cli.harness.check_prompts import check_prompts
from harness_cli.harness.check_skills import check_skills
from harness_cli.harness.check_tools import check_tools
from harness_cli.harness.findings import Finding, ordered
from harness_cli.harness.parts import JUDGES, Parts, collect, content, judges
from harness_cli.store.tree import Entry

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_REPLIES, _FALLBACK = "replies.yaml", "fallback.md"


def check_files(files: Mapping[str, Entry]) -> list[Finding]:
    """Every finding about a harness and its judges, errors and warnings, in order of place."""
    parts = collect(content(files))
    found = [*parts.findings, *check_parts(parts), *check_classes(files)]
    for name, inside in judges(files).items():
        judge = collect(inside)
        found += [
            msgspec.structs.replace(f, path=f"{JUDGES}/{name}/{f.path}")
            for f in [*judge.findings, *check_parts(judge, judge=True)]
        ]
    return ordered(found)


def check_parts(parts: Parts, *, judge: bool = False) -> Iterator[Finding]:
    """What is wrong between the files of one harness; a judge needs no skills and no replies."""
    yield from check_skills(parts, judge=judge)
    yield from check_tools(parts)
    yield from check_hooks(parts)
    yield from check_prompts(parts, judge=judge)
    if judge:
        yield from check_judge(parts)
    else:
        yield from _last_words(parts)


def _last_words(parts: Parts) -> Iterator[Finding]:
    """The compact fallback prompt and the conservative replies."""
    if not parts.fallback:
        yield Finding(
            path=_FALLBACK,
            level="warning",
            rule="fallback/missing",
            message="no compact fallback prompt: a rollout that runs out of time says nothing new",
            fix="write a short prompt that needs no tools",
        )
    if parts.replies is None:
        if _REPLIES not in parts.files:
            yield Finding(
                path=_REPLIES,
                level="warning",
                rule="replies/missing",
                message="no conservative replies: when all else fails nothing is said",
                fix="write `conservative: {en: …, zh: …}`",
            )
        return
    for key, texts in (
        ("conservative", parts.replies.conservative),
        ("refusal", parts.replies.refusal),
    ):
        yield from _languages(parts, key, texts)


def _languages(parts: Parts, key: str, texts: Mapping[str, str]) -> Iterator[Finding]:
    for code, text in texts.items():
        at = f"$.{key}.{code}"
        if not _LANGUAGE.fullmatch(code):
            message = f"`{code}` is no language code"
            yield parts.finding(_REPLIES, at, "replies/language", message, fix="`en`, `zh`, …")
        if not text.strip():
            yield parts.finding(_REPLIES, at, "replies/text", f"`{key}.{code}` says nothing")
    missing = [code for code in ("en", "zh") if code not in texts]
    if missing and (key == "conservative" or texts):
        yield parts.finding(
            _REPLIES,
            f"$.{key}",
            "replies/language",
            f"`{key}` has no text in {', '.join(missing)}",
            level="warning",
            fix="viewers write English and Chinese",
        )
