"""JUnit XML of a run, streamed: one test case a rollout, or an item where items have repeats.

The extra elements of repeated items are those of Maven Surefire's reruns, which CI servers know:
`flakyFailure` in a case that passed, `rerunFailure` beside the `failure` of one that did not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from harness_cli.evaluation.repeats import is_flaky, verdict
from harness_cli.records.run import Repeats, Report
from harness_cli.records.verdict import ItemResult

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may hold, escaped or not."""
_TAGS = {"failed": "failure", "errored": "error", "unscored": "skipped", "missing": "skipped"}


def junit(report: Report, results: Iterable[ItemResult]) -> Iterator[str]:
    """The document in pieces; an unscored case is skipped with its reason.

    `results` come sorted by item, as a run folder streams them.
    """
    repeats = report.repeats
    counts = report.counts if repeats is None else repeats.items
    ended = report.planned - counts.get("missing", 0) if repeats is None else repeats.begun
    skipped = ended - sum(counts.get(name, 0) for name in ("passed", "failed", "errored"))
    name = attribute(f"{report.run.evalset.name} {report.run.evalset.split or ''}".strip())
    numbers = (
        f'tests="{ended}" failures="{counts["failed"]}" '
        f'errors="{counts["errored"]}" skipped="{skipped}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites {numbers}>\n<testsuite name={name} {numbers}>\n"
    yield from _properties(report)
    if repeats is None:
        for result in results:
            yield _rollout_case(result)
    else:
        for _, group in groupby(results, key=lambda result: result.item_id):
            yield _item_case(list(group), repeats)
    yield "</testsuite>\n</testsuites>\n"


def _properties(report: Report) -> Iterator[str]:
    """What was measured, by digest."""
    run = report.run
    known = {
        "run": run.id,
        "policy": run.policy_id,
        "harness": run.harness_id,
        "judge": run.judge_id,
        "evalset": run.evalset.digest,
        "imported": run.imported.sha256 if run.imported else "",
    }
    yield "<properties>\n"
    for name, value in known.items():
        if value:
            yield f"<property name={attribute(name)} value={attribute(value)}/>\n"
    yield "</properties>\n"


def _rollout_case(result: ItemResult) -> str:
    suffix = f" #{result.repeat}" if result.repeat else ""
    start = _start(result.category, result.item_id + suffix, result.wall_s)
    if result.state == "passed":
        return f"{start}/>\n"
    return f"{start}>{_outcome(_TAGS[result.state], result)}</testcase>\n"


def _item_case(results: Sequence[ItemResult], repeats: Repeats) -> str:
    """One item: its verdict, how many repeats passed, and every repeat that did not."""
    states = [result.state for result in results]
    ended = verdict(states, repeats.need, repeats.of)
    walls = [result.wall_s for result in results if result.wall_s is not None]
    start = _start(results[0].category, results[0].item_id, sum(walls) if walls else None)
    said = f"{states.count('passed')} of {repeats.of} repeats passed, {repeats.need} needed"
    properties = [("repeats", said), ("flaky", str(is_flaky(states)).lower())]
    inner = "".join(f'<property name="{n}" value={attribute(v)}/>' for n, v in properties)
    parts = [f"<properties>{inner}</properties>"]
    bad = [result for result in results if result.state != "passed"]
    if ended == "passed":
        flaky = {"errored": "flakyError"}
        parts += [_outcome(flaky.get(r.state, "flakyFailure"), r) for r in bad]
    else:
        parts.append(_item_outcome(ended, said, bad))
    return f"{start}>{''.join(parts)}</testcase>\n"


def _item_outcome(ended: str, said: str, bad: Sequence[ItemResult]) -> str:
    """The element that decides, taken from the first repeat that ended so, then the others."""
    first = next((result for result in bad if result.state == ended), None)
    why = f": {first.error or why_failed(first)}" if first else ""
    body = text_node(first.reply) if first else ""
    tag = _TAGS[ended]
    decides = f"<{tag} message={attribute(said + why)}>{body}</{tag}>"
    if tag == "skipped":
        return decides
    rest = [result for result in bad if result is not first and result.state != "unscored"]
    again = {"errored": "rerunError"}
    return decides + "".join(_outcome(again.get(r.state, "rerunFailure"), r) for r in rest)


def _start(category: str, name: str, seconds: float | None) -> str:
    time = "" if seconds is None else f' time="{seconds:.3f}"'
    return f"<testcase classname={attribute(category)} name={attribute(name)}{time}"


def _outcome(tag: str, result: ItemResult) -> str:
    message = attribute(result.error or why_failed(result))
    return f"<{tag} message={message}>{text_node(result.reply)}</{tag}>"


def why_failed(result: ItemResult) -> str:
    """The findings and assertions that speak against a reply, in one line."""
    against = [f"{finding.kind}: {finding.detail}" for finding in result.findings]
    against += [f"{a.type}: {a.reason}" for a in result.assertions if a.passed is False]
    low = [f"{name} {value:g}" for name, value in result.scores.items() if value in (0, 0.5)]
    return "; ".join(against or low) or result.state


def attribute(text: str) -> str:
    """The value of an attribute, with its quotes."""
    return quoteattr(NOT_XML.sub("\ufffd", text))


def text_node(text: str) -> str:
    """Text between tags."""
    return escape(NOT_XML.sub("\ufffd", text))
