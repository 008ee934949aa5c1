"""One report in the forms people and machines read: rows for a table, Markdown, JUnit.

The numbers come from `Report` alone, so that every form says the same.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from harness_cli.records.run import MetricSummary, Report
from harness_cli.records.verdict import ItemResult

COLUMNS = ("metric", "mean %", "95 % interval", "scored")
CATEGORY_COLUMNS = ("category", "metric", "mean %", "95 % interval", "scored")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may hold, escaped or not."""


def title(report: Report) -> str:
    """What was run, in one line."""
    run = report.run
    split = f" {run.evalset.split}" if run.evalset.split else ""
    dirty = " (uncommitted)" if run.dirty else ""
    parts = [
        f"{run.evalset.name}{split}",
        f"policy {run.policy_id}",
        f"harness {run.harness_id[:12]}{dirty}",
        f"judge {run.judge_id}",
        f"run {run.id}",
    ]
    if not run.fresh:
        parts.append("replayed answers, not timed")
    return " · ".join(parts)


def headline(report: Report) -> str:
    """`passed / failed / unscored / errored of N` (METHODS §2), and what is missing."""
    counts = [f"{name} {n}" for name, n in report.counts.items() if name != "missing" or n]
    status = "" if report.status == "complete" else f" ({report.status})"
    return f"{' / '.join(counts)} of {report.planned}{status}"


def metric_rows(report: Report) -> list[tuple[str, ...]]:
    """One row a metric: mean, interval, `n of N`."""
    return [(m.metric, *_numbers(m)) for m in report.metrics]


def category_rows(report: Report, metrics: Iterable[str]) -> list[tuple[str, ...]]:
    """One row a category and metric."""
    wanted = set(metrics)
    return [
        (category, m.metric, *_numbers(m))
        for category, summaries in report.categories.items()
        for m in summaries
        if m.metric in wanted
    ]


def usage_line(report: Report) -> str:
    """Tokens and money; what is not known is said, never shown as 0."""
    usage = report.usage
    cost = usage.get("cost")
    money = "cost unknown" if cost is None else f"cost ${cost:.4f}"
    if cost is not None and usage.get("results_without_cost"):
        money += f" + unknown for {usage['results_without_cost']} results"
    return f"{usage.get('calls', 0)} model calls, {_tokens(usage)}, {money}"


def _tokens(usage: dict[str, Any]) -> str:
    asked, said = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    unknown = usage.get("results_without_usage", 0)
    if unknown and not (asked or said):
        return "tokens unknown"
    more = f" + unknown for {unknown} results" if unknown else ""
    return f"{asked} + {said} tokens{more}"


def pass_line(report: Report) -> str:
    """pass^k of repeated items; undefined is said."""
    shown = [
        f"pass^{k} {'undefined' if value is None else _percent(value)}"
        for k, value in report.pass_hat.items()
    ]
    return ", ".join(shown)


def markdown(report: Report) -> str:
    """The report for `$GITHUB_STEP_SUMMARY` and pull requests."""
    lines = [f"### {_cell(title(report))}", "", headline(report), ""]
    lines += _markdown_table(COLUMNS, metric_rows(report))
    rows = category_rows(report, headline_metrics(report))
    if rows:
        lines += ["", *_markdown_table(CATEGORY_COLUMNS, rows)]
    lines += ["", usage_line(report)]
    if report.pass_hat:
        lines += ["", pass_line(report)]
    if report.incidents:
        lines += ["", *(f"- {_cell(name)}: {n}" for name, n in report.incidents.items() if n)]
    return "\n".join(lines) + "\n"


def headline_metrics(report: Report) -> tuple[str, ...]:
    """The metrics shown per category: the first three that were scored at all."""
    return tuple(m.metric for m in report.metrics if m.scored)[:3]


def junit(report: Report, results: Iterable[ItemResult]) -> Iterator[str]:
    """JUnit XML, one test case a rollout, streamed; an unscored one is skipped with its reason."""
    counts = report.counts
    skipped = counts.get("unscored", 0)
    name = _attribute(f"{report.run.evalset.name} {report.run.evalset.split or ''}".strip())
    numbers = (
        f'tests="{report.planned - counts.get("missing", 0)}" failures="{counts["failed"]}" '
        f'errors="{counts["errored"]}" skipped="{skipped}"'
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f"<testsuites {numbers}>\n<testsuite name={name} {numbers}>\n"
    for result in results:
        yield _test_case(result)
    yield "</testsuite>\n</testsuites>\n"


def _test_case(result: ItemResult) -> str:
    suffix = f" #{result.repeat}" if result.repeat else ""
    name = _attribute(result.item_id + suffix)
    time = "" if result.wall_s is None else f' time="{result.wall_s:.3f}"'
    start = f"<testcase classname={_attribute(result.category)} name={name}{time}"
    if result.state == "passed":
        return f"{start}/>\n"
    tag = {"failed": "failure", "errored": "error", "unscored": "skipped"}[result.state]
    message = _attribute(result.error or why_failed(result))
    detail = _text(result.reply)
    return f"{start}><{tag} message={message}>{detail}</{tag}></testcase>\n"


def why_failed(result: ItemResult) -> str:
    """The findings and assertions that speak against a reply, in one line."""
    against = [f"{finding.kind}: {finding.detail}" for finding in result.findings]
    against += [f"{a.type}: {a.reason}" for a in result.assertions if a.passed is False]
    low = [f"{name} {value:g}" for name, value in result.scores.items() if value in (0, 0.5)]
    return "; ".join(against or low) or result.state


def _numbers(summary: MetricSummary) -> tuple[str, str, str]:
    mean = "–" if summary.mean is None else _percent(summary.mean)
    interval = summary.interval
    ends = "–" if interval is None else f"[{_percent(interval.low)}, {_percent(interval.high)}]"
    return mean, ends, f"{summary.scored} of {summary.of}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _markdown_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    columns = list(columns)
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    return lines + [f"| {' | '.join(_cell(c) for c in row)} |" for row in rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _attribute(text: str) -> str:
    return quoteattr(NOT_XML.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(NOT_XML.sub("\ufffd", text))
