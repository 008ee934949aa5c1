"""What `harness serve logs --stats` shows of logs and of metrics."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness_cli.commands._serving import has_job, only_served, policy_log, replica_logs
from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.errors import UsageError
from harness_cli.records.engine_logs import LogStats, MetricsStats, Spread
from harness_cli.serving.engine_logs.metrics import fetch_metrics, metrics_stats
from harness_cli.serving.engine_logs.read import read_lines, read_log
from harness_cli.serving.engine_logs.stats import NEW, log_stats
from harness_cli.store.project import Project

SERIES = ("running", "queue", "accept_len", "accept_rate", "throughput")
SHOWN = ("running req", "queue", "accept len", "accept rate", "gen tokens/s")


def show_stats(
    directory: Path,
    names: Sequence[str],
    metrics: str | None,
    before: str | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Diagnostics of logs by name or file, of a metrics page, or of both."""
    logs = [found for name in names for found in _stats(directory, name)]
    if not logs and metrics is None:
        logs = _stats(directory, only_served(Project.find(directory).root))
    scraped = [] if metrics is None else _scraped(metrics, before)
    if as_json:
        emit_json({"logs": logs, "metrics": scraped})
        return
    if logs:
        _show_logs(logs, quiet=quiet)
    for found in scraped:
        _show_metrics(found)


def _stats(directory: Path, name: str) -> list[LogStats]:
    """One log, or every replica's of a job."""
    if name == "-":
        return [log_stats(*read_lines(sys.stdin, "stdin"))]
    if (directory / name).is_file():
        return [log_stats(*read_log(directory / name))]
    root = Project.find(directory).root
    if has_job(root, name):
        return [log_stats(*read_log(path)) for path in replica_logs(root, name)]
    if "/" in name or name.endswith((".log", ".txt")):
        raise UsageError(f"no log at `{name}`")
    return [log_stats(*read_log(policy_log(root, name)))]


def _scraped(source: str, before: str | None) -> list[MetricsStats]:
    """A page as it is, or what happened since an earlier one or within some seconds."""
    if before is None:
        return [metrics_stats(source, fetch_metrics(source))]
    try:
        wait = float(before)
    except ValueError:
        return [metrics_stats(source, fetch_metrics(source), fetch_metrics(before))]
    if not 0 < wait <= 86_400:
        raise UsageError(f"--before {before}: seconds to wait, at most a day, or a file")
    first, begun = fetch_metrics(source), time.monotonic()
    time.sleep(wait)
    again = fetch_metrics(source)
    return [metrics_stats(source, again, first, time.monotonic() - begun)]


def _show_logs(logs: Sequence[LogStats], *, quiet: bool) -> None:
    """TR Table 20's shape, line-weighted as there; the time-weighted numbers below."""
    columns = ("log", *(f"{name}, mean/P50/P95" if name != "queue" else "queue, P95/max"
                        for name in SHOWN))  # fmt: skip
    table(columns, [(Path(s.log).name, *_row(s, timed=False)) for s in logs])
    if quiet:
        return
    rows = [(Path(s.log).name, *_row(s, timed=True)) for s in logs]
    line()
    table(columns, rows, title="weighted by time")
    for found in logs:
        line()
        _said(found)


def _row(found: LogStats, *, timed: bool) -> list[str | None]:
    return [_cell(name, getattr(found, name), timed=timed) for name in SERIES]


def _cell(name: str, spread: Spread | None, *, timed: bool) -> str | None:
    if spread is None:
        return None
    digits = {"running": 2, "queue": 0, "accept_rate": 3}.get(name, 2)
    mean, p50, p95 = (
        (spread.time_mean, spread.time_p50, spread.time_p95)
        if timed
        else (spread.mean, spread.p50, spread.p95)
    )
    if mean is None or p50 is None or p95 is None:
        return None
    if name == "queue":
        return f"{p95:g}/{spread.max:g}"
    short = f"{p50:g}/{p95:g}" if name == "running" else f"{p50:.{digits}f}/{p95:.{digits}f}"
    return f"{mean:.{digits}f}/{short}"


def _said(found: LogStats) -> None:
    line(
        f"{Path(found.log).name}: {found.decode} decode and {found.prefill} prefill lines of "
        f"{found.lines}; {found.other} other, {found.foreign} foreign, {found.mangled} mangled"
    )
    if found.begins:
        line(f"  from {found.begins} to {found.ends} by the log's own clock")
    if found.ranks:
        line(f"  ranks {', '.join(found.ranks)}; {found.repeated} lines repeat another rank's")
    for text in found.formats:
        line(f"  format {text}")
    _rates(found)
    if found.idle_lines:
        line(f"  {found.idle_lines} first lines after idle time: left out of tokens/s")
    if found.statuses:
        line("  answers: " + ", ".join(f"{k} × {v}" for k, v in found.statuses.items()))
    for text in found.warnings:
        note(f"warning: {Path(found.log).name}: {text}")


def _rates(found: LogStats) -> None:
    if found.convention is None or found.rate_old is None or found.rate_new is None:
        return
    era = "SGLang 0.5.11 and later" if found.convention == NEW else "SGLang 0.5.4 to 0.5.10"
    line(
        f"  accept rate is {found.convention} with {found.drafts} drafts ({era}); "
        f"the same in both: {found.rate_old:.3f} by accept_len/drafts, {found.rate_new:.3f} by "
        "(accept_len-1)/(drafts-1)"
    )


def _show_metrics(found: MetricsStats) -> None:
    told = [
        ("between the two pages, s" if found.seconds else "since", found.seconds or "the start"),
        ("generated tokens", found.generated),
        ("verifications", found.passes),
        ("accept length, token-weighted", found.accept_len),
        ("accepted / drafted", found.accept_rate),
        *((name, value) for name, value in found.gauges.items()),
    ]
    table((f"metrics of {found.engine}", "value"), [row for row in told if row[1] is not None])
