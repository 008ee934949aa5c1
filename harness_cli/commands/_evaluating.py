"""What `harness eval` does with its options: run, show, write, and turn outcomes into an exit."""

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_cli.commands._progress import progress
from harness_cli.commands._show import emit_json, line, note, step_summary, table
from harness_cli.errors import Locked, UsageError
from harness_cli.evaluation import comparison_text as compared
from harness_cli.evaluation import report as shown
from harness_cli.evaluation.engine import Outcome, evaluate
from harness_cli.evaluation.plan import EvalOptions
from harness_cli.records.run import Report
from harness_cli.store.project import Project

log = logging.getLogger("harness.evaluation")
ERRORS_SHOWN = 5


def evaluate_all(
    project: Project,
    evalsets: Sequence[str],
    options: EvalOptions,
    *,
    aa: bool,
    junit_file: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """One run an evalset (two with `aa`), in order; an unfinished one ends the command."""
    _check(evalsets, options, aa=aa, junit_file=junit_file)
    outcomes = []
    for chosen in _asked(evalsets, options, aa=aa):
        outcome = _evaluate(project, chosen, quiet=quiet)
        if outcome is None:
            continue
        outcomes.append(outcome)
        about = {"run": outcome.run.id, "status": outcome.report.status}
        log.info("run ended", extra={**about, "counts": outcome.report.counts})
        _write(outcome, junit_file)
        if not as_json:
            show(outcome)
        if outcome.report.status != "complete":
            break
    if as_json:
        emit_json(_as_json([o.report for o in outcomes]))
    for outcome in outcomes:
        outcome.check()
    if aa and not as_json:
        for one, other in zip(outcomes[::2], outcomes[1::2], strict=True):
            show_noise(one, other)


def _check(
    evalsets: Sequence[str], options: EvalOptions, *, aa: bool, junit_file: Path | None
) -> None:
    if options.resume is not None and (len(evalsets) > 1 or aa):
        raise UsageError("--resume goes on with one run")
    if junit_file is not None and (len(evalsets) > 1 or aa):
        raise UsageError("--junit writes one file, so it takes one run")


def _asked(evalsets: Sequence[str], options: EvalOptions, *, aa: bool) -> Iterator[EvalOptions]:
    names: list[str | None] = [*evalsets] or [None]
    seed = options.seed or 0
    for name in names:
        chosen = replace(options, evalset=name, command=tuple(sys.argv[1:]))
        yield chosen
        if aa:  # repeats of the first run have the seeds right behind its own
            yield replace(chosen, seed=seed + (options.repeat or 1))


def show_noise(one: Outcome, other: Outcome) -> None:
    """What two runs of the same thing differ by, and the difference such a run can see."""
    from harness_cli.evaluation.compare import compare

    found = compare(
        one.run.results(),
        other.run.results(),
        config_a=one.run.config(),
        config_b=other.run.config(),
    )
    line(f"A/A: {one.run.id} and {other.run.id} differ by their seeds alone")
    table(compared.METRIC_COLUMNS, compared.metric_rows(found))
    for remark in compared.remarks(found):
        line(remark)


def one_of(option: str, value: str | None, known: tuple[str, ...]) -> Any:
    """`value` where it is one of the known words."""
    if value is not None and value not in known:
        raise UsageError(f"{option} takes {', '.join(known)}, not `{value}`")
    return value


def show(outcome: Outcome) -> None:
    """The tables of one run, and what errored."""
    report = outcome.report
    line(shown.title(report))
    line(shown.headline(report))
    table(shown.COLUMNS, shown.metric_rows(report))
    rows = shown.category_rows(report, shown.headline_metrics(report))
    if rows:
        table(shown.CATEGORY_COLUMNS, rows)
    line(shown.usage_line(report))
    if report.pass_hat:
        line(shown.pass_line(report))
    for name, count in report.incidents.items():
        if count:
            line(f"{name}: {count}")
    _show_errors(outcome)
    line(f"run {outcome.run.id}: {outcome.run.path}")


def _show_errors(outcome: Outcome) -> None:
    wanted = outcome.report.counts["errored"] + outcome.report.counts["unscored"]
    if not wanted:
        return
    seen = 0
    for result in outcome.run.results():
        if result.state in ("errored", "unscored"):
            seen += 1
            if seen <= ERRORS_SHOWN:
                line(f"{result.state} {result.item_id}: {result.error}")
    if seen > ERRORS_SHOWN:
        line(f"… and {seen - ERRORS_SHOWN} more")


def _evaluate(project: Project, options: EvalOptions, *, quiet: bool) -> Outcome | None:
    try:
        with progress(quiet=quiet) as observe:
            return asyncio.run(evaluate(project, options, observe=observe))
    except Locked as exc:
        if options.if_locked != "skip":
            raise
        note(f"skipped: {exc}")
        return None


def _write(outcome: Outcome, junit_file: Path | None) -> None:
    step_summary(shown.markdown(outcome.report))
    if junit_file is not None:
        with junit_file.open("w", encoding="utf-8") as file:
            file.writelines(shown.junit(outcome.report, outcome.run.results()))


def _as_json(reports: list[Report]) -> Any:
    return reports[0] if len(reports) == 1 else {"reports": reports}
