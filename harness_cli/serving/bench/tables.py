"""The tables of a benchmark as rows of text: TR Tables 7 and 18, breakdowns, contrasts."""

from collections.abc import Iterable, Sequence
from typing import Final

from harness_cli.serving.bench.contrast import Contrast, Ratio
from harness_cli.serving.bench.figures import Figures, Timed
from harness_cli.serving.bench.groups import Group
from harness_cli.stats.paired import Paired
from harness_cli.stats.percentiles import AcrossRuns

Table = tuple[Sequence[str], list[Sequence[object]]]
"""Head and rows."""
WHERE: Final = ("models", "tools", "rest")
HEAD: Final = (
    "configuration", "C", "runs", "wall P50", "wall P95", "TTFT P95", "first delta P95",
    "decode mean", "decode median", "≤ bound", "success",
)  # fmt: skip


def headline(found: Iterable[Group]) -> Table:
    """As TR Table 7, with the first delta beside TTFT and the median beside the mean."""
    rows: list[Sequence[object]] = []
    for group in found:
        values = group.values
        one = group.figures[0] if len(group.figures) == 1 else None
        rows.append(
            (
                group.name,
                group.concurrency,
                len(group.runs),
                _seconds(values["wall_p50"], one.wall.p50_interval if one else None),
                _seconds(values["wall_p95"], one.wall.p95_interval if one else None),
                _seconds(values["ttft_p95"], one.ttft.p95_interval if one else None),
                _seconds(values["first_delta_p95"], one.first_delta.p95_interval if one else None),
                _range(values["decode_mean"], 1),
                _range(values["decode_median"], 1),
                _percent(values["attainment"], one),
                _percent(values["success"], None),
            )
        )
    return HEAD, rows


def shapes(found: Iterable[Group]) -> Table:
    """As TR Table 18, of each group's first run."""
    head = ("configuration", "C", "calls/req", "input/call", "output/call", "cached", "tools/req")
    rows: list[Sequence[object]] = []
    for group in found:
        shape = group.figures[0].shape
        cached = "–" if shape.cached_share is None else f"{shape.cached_share:.0%}"
        rows.append(
            (
                group.name,
                group.concurrency,
                _number(shape.calls_per_request, 2),
                _number(shape.input_per_call, 0),
                _number(shape.output_per_call, 0),
                cached,
                _number(shape.tools_per_request, 2),
            )
        )
    return head, rows


def calls(found: Iterable[Group]) -> Table:
    """One row for each place in the order of calls, of each group's first run."""
    head = (
        "configuration", "C", "call", "n", "latency s", "TTFT s", "input", "cached", "output",
        "decode median",
    )  # fmt: skip
    rows: list[Sequence[object]] = [
        (
            group.name,
            group.concurrency,
            row.index + 1,
            row.n,
            _number(row.latency_s, 3),
            _number(row.ttft_s, 3),
            _number(row.input_tokens, 0),
            _number(row.cached_tokens, 0),
            _number(row.output_tokens, 0),
            _number(row.decode_tps, 1),
        )
        for group in found
        for row in group.figures[0].by_call
    ]
    return head, rows


def tools(found: Iterable[Group]) -> Table:
    """One row a tool, of each group's first run."""
    head = ("configuration", "C", "tool", "n", "failed", "mean s", "P95 s")
    rows: list[Sequence[object]] = [
        (
            group.name,
            group.concurrency,
            row.name,
            row.n,
            row.failed,
            f"{row.mean_s:.3f}",
            f"{row.p95_s:.3f}",
        )
        for group in found
        for row in group.figures[0].by_tool
    ]
    return head, rows


def shares(found: Iterable[Group]) -> Table:
    """Where a request's time goes, of each group's first run: means over successful requests."""
    head = ("configuration", "C", "s in models", "in tools", "in neither")
    rows: list[Sequence[object]] = [
        (group.name, group.concurrency, *(_number(told.get(k), 3) for k in WHERE))
        for group in found
        if (told := group.figures[0].seconds)
    ]
    return head, rows


def contrasts(found: Iterable[Contrast]) -> Table:
    """The second arm against the first."""
    head = (
        "C", "pairs", "decode speed-up", "of medians", "wall s", "wall P95", "TTFT s", "TTFT P95",
        "≤ bound +/−", "tokens/req",
    )  # fmt: skip
    rows: list[Sequence[object]] = [
        (
            c.concurrency,
            c.pairs,
            ratio(c.decode),
            ratio(c.decode_median),
            difference(c.wall, 3),
            ratio(c.wall_p95),
            difference(c.ttft, 3),
            ratio(c.ttft_p95),
            f"+{c.attainment.gained} −{c.attainment.lost}",
            difference(c.output, 1),
        )
        for c in found
    ]
    return head, rows


def ratio(value: Ratio) -> str:
    """`1.69× [1.60, 1.78]`."""
    if value.value is None:
        return "–"
    if value.low is None or value.high is None:
        return f"{value.value:.2f}×"
    return f"{value.value:.2f}× [{value.low:.2f}, {value.high:.2f}]"


def difference(value: Paired, digits: int) -> str:
    """`−0.866 [−1.02, −0.71]`."""
    if value.mean is None:
        return "–"
    low, high = value.low, value.high
    ends = "" if low is None or high is None else f" [{low:+.{digits}f}, {high:+.{digits}f}]"
    return f"{value.mean:+.{digits}f}{ends}"


def remarks(group: Group) -> list[str]:
    """What a reader of the table must know beside it."""
    found: list[str] = []
    for run, numbers in zip(group.runs, group.figures, strict=True):
        where = f"{group.name}, C={group.concurrency}, run {run}"
        found += [f"{where}: {warning}" for warning in numbers.warnings]
        reasons = [f"{count} {reason}" for reason, count in numbers.failures.items()]
        if reasons:
            found.append(f"{where}: {', '.join(reasons)}")
        if numbers.retries:
            why = ", ".join(f"{n} {reason}" for reason, n in numbers.retry_reasons.items())
            found.append(f"{where}: {numbers.retries} retries ({why})")
    return found


def spread(value: Timed) -> str:
    """`P50 3.40, P95 8.11 [7.6, 9.0] s of n = 100`."""
    if value.p50 is None or value.p95 is None:
        return "unknown"
    return f"P50 {value.p50:.3f}, P95 {value.p95:.3f} s of n = {value.n}"


def markdown(table: Table) -> str:
    """A table for a page or a CI job."""
    head, rows = table
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _seconds(value: AcrossRuns | None, interval: tuple[float | None, float | None] | None) -> str:
    if value is None:
        return "–"
    if value.runs > 1 or interval is None:
        return _range(value, 3)
    low, high = ("?" if end is None else f"{end:.3f}" for end in interval)
    return f"{value.mean:.3f} [{low}, {high}]"


def _range(value: AcrossRuns | None, digits: int) -> str:
    """The mean, and the range where there is more than one run."""
    if value is None:
        return "–"
    if value.runs == 1:
        return f"{value.mean:.{digits}f}"
    return f"{value.mean:.{digits}f} ({value.low:.{digits}f}–{value.high:.{digits}f})"


def _percent(value: AcrossRuns | None, one: Figures | None) -> str:
    if value is None:
        return "–"
    if value.runs > 1:
        return f"{value.mean:.1%} ({value.low:.0%}–{value.high:.0%})"
    interval = one.attainment_interval if one else None
    ends = f" [{interval.low:.0%}, {interval.high:.0%}]" if interval else ""
    return f"{value.mean:.0%}{ends}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
