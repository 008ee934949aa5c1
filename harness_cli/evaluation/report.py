"""One report in the forms people and machines read: rows for a table, Markdown, JUnit.

The numbers come from `Report` alone, so that every form says the same.
"""

from collections.abc import Iterable
from typing import Any

from harness_cli.evaluation import repeats
from harness_cli.evaluation.judging_tally import judging_lines
from harness_cli.evaluation.junit import junit as junit  # its name at this seam
from harness_cli.evaluation.junit import why_failed as why_failed
from harness_cli.evaluation.role_table import ROLE_COLUMNS, role_lines, role_rows
from harness_cli.records.counting import counted
from harness_cli.records.run import MetricSummary, Report

COLUMNS = ("metric", "mean %", "95 % interval", "scored")
CATEGORY_COLUMNS = ("category", "metric", "mean %", "95 % interval", "scored")


def title(report: Report) -> str:
    """What was run, in one line."""
    run = report.run
    split = f" {run.evalset.split}" if run.evalset.split else ""
    dirty = " (uncommitted)" if run.dirty else ""
    made = f"harness {run.harness_id[:12]}{dirty}"
    if run.imported is not None:
        made = f"imported from {run.imported.file}"
    parts = [
        f"{run.evalset.name}{split}",
        f"policy {run.policy_id}",
        made,
        f"judge {run.judge_id}",
        f"run {run.id}",
    ]
    if run.excluded:
        parts.append(f"NO HEADLINE: {run.excluded}")
    if run.rejudged is not None:
        parts.append(f"rollouts of {run.rescored_of} judged anew, its judge was {run.rejudged}")
    elif not run.fresh and run.imported is None:
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
        money += f" + unknown for {counted(usage['results_without_cost'], 'result')}"
    return f"{counted(usage.get('calls', 0), 'model call')}, {_tokens(usage)}, {money}"


def judge_lines(report: Report) -> list[str]:
    """Who graded and what it took, and who has which role (TR App. E.1)."""
    return [*judging_lines(report), *role_lines(report)]


def _tokens(usage: dict[str, Any]) -> str:
    asked, said = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
    unknown = usage.get("results_without_usage", 0)
    if unknown and not (asked or said):
        return "tokens unknown"
    more = f" + unknown for {counted(unknown, 'result')}" if unknown else ""
    return f"{asked} + {said} tokens{more}"


def pass_line(report: Report) -> str:
    """pass^k of repeated items; undefined is said."""
    shown = [
        f"pass^{k} {'undefined' if value is None else _percent(value)}"
        for k, value in report.pass_hat.items()
    ]
    return ", ".join(shown)


def repeat_lines(report: Report) -> list[str]:
    """Items by verdict, the flaky ones by name, the share of spread that is the policy's own."""
    return repeats.lines(report.repeats, headline_metrics(report))


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
    for said in repeat_lines(report):
        lines += ["", _cell(said)]
    for said in judging_lines(report):
        lines += ["", _cell(said)]
    if report.run.roles:
        lines += ["", *_markdown_table(ROLE_COLUMNS, role_rows(report))]
    if report.incidents:
        lines += ["", *(f"- {_cell(name)}: {n}" for name, n in report.incidents.items() if n)]
    return "\n".join(lines) + "\n"


def headline_metrics(report: Report) -> tuple[str, ...]:
    """The metrics shown per category: the first three that were scored at all."""
    return tuple(m.metric for m in report.metrics if m.scored)[:3]


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
