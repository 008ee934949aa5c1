"""What `harness eval` does with its options: run, show, write, and turn outcomes into an exit."""

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_cli.commands._dropping import show_drops, with_drops
from harness_cli.commands._progress import progress
from harness_cli.commands._show import emit_json, line, note, step_summary, table
from harness_cli.errors import Locked, UsageError
from harness_cli.evaluation import noise_text
from harness_cli.evaluation import report as shown
from harness_cli.evaluation.aa_pair import OPTION, is_half, options_of_other, other_half
from harness_cli.evaluation.engine import Outcome, evaluate
from harness_cli.evaluation.noise import measured_with
from harness_cli.evaluation.plan import NO_JUDGE, EvalOptions
from harness_cli.evaluation.rejudge import is_another_judge, rejudge, resume_rejudged
from harness_cli.evaluation.rescore import rescore_with
from harness_cli.records.noise import Noise
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

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
    outcomes: list[Outcome] = []
    for chosen in _asked(project, evalsets, options, aa=aa):
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
    noise = _noise(project, outcomes, aa=aa)
    if as_json:
        paired = [floor for floor in noise if len(floor.runs) > 1]
        reports = [with_drops(project, o.report, o.run) for o in outcomes]
        emit_json(_as_json(reports, paired))
    for floor in noise if not as_json else ():
        show_noise(floor, aa=len(floor.runs) > 1)
    for outcome in outcomes if not as_json else ():
        show_drops(project, outcome.run)
    for outcome in outcomes:
        for words in _unpaired(project, outcome):
            note(words)
        outcome.check()


def _check(
    evalsets: Sequence[str], options: EvalOptions, *, aa: bool, junit_file: Path | None
) -> None:
    if options.resume is not None and len(evalsets) > 1:
        raise UsageError("--resume goes on with one run")
    if options.rescore is not None and aa:
        raise UsageError("--rescore makes no rollouts, so no pair of runs", hint="leave out --aa")
    if junit_file is not None and (len(evalsets) > 1 or aa):
        raise UsageError("--junit writes one file, so it takes one run")


def _asked(
    project: Project, evalsets: Sequence[str], options: EvalOptions, *, aa: bool
) -> Iterator[EvalOptions]:
    names: list[str | None] = [*evalsets] or [None]
    seed = options.seed or 0
    said = tuple(sys.argv[1:])
    command = (*said, OPTION) if aa and OPTION not in said else said
    for name in names:
        chosen = replace(options, evalset=name, command=command)
        yield chosen
        if aa and options.resume is not None:
            yield from _rest_of_pair(project, options.resume, chosen)
        elif aa:  # repeats of the first run have the seeds right behind its own
            yield replace(chosen, seed=seed + (options.repeat or 1))


def _rest_of_pair(
    project: Project, resumed: RunFolder, options: EvalOptions
) -> Iterator[EvalOptions]:
    """What is left of an A/A once one of its runs is whole."""
    other = other_half(RunStore(project.runs), resumed)
    if other is None:
        yield options_of_other(resumed.config(), options)
    elif other.status() != "complete":
        yield replace(options, resume=other, seed=None)


def _noise(project: Project, outcomes: Sequence[Outcome], *, aa: bool) -> list[Noise]:
    """The noise floor of every complete A/A pair, and of every complete run with repeats."""
    complete = [o.run for o in outcomes if o.report.status == "complete"]
    groups = {run.id: [run] for run in complete if run.config().repeat > 1}
    for run in complete:
        if aa or is_half(run.config()):
            groups.pop(run.id, None)
            other = other_half(RunStore(project.runs), run)
            if other is not None and other.status() == "complete":
                pair = sorted((run, other), key=lambda r: r.config().seed)
                groups["+".join(r.id for r in pair)] = pair
    return [measured_with(project, runs) for runs in groups.values()]


def _unpaired(project: Project, outcome: Outcome) -> Iterator[str]:
    """Why a run of an A/A has no noise floor yet, and what makes it."""
    if not is_half(outcome.run.config()):
        return
    other = other_half(RunStore(project.runs), outcome.run)
    whole = outcome.report.status == "complete"
    if other is None:
        go_on = f"`harness eval --resume {outcome.run.id} --aa` makes it"
        yield f"no noise floor yet: the other run of this A/A was not started; {go_on}"
    elif not whole or other.status() != "complete":
        open_ = outcome.run if not whole else other
        yield (
            f"no noise floor yet: run {open_.id} of this A/A is {open_.status()}; "
            f"`harness eval --resume {open_.id}` goes on and measures it"
        )


def show_noise(noise: Noise, *, aa: bool) -> None:
    """What runs of the same thing differ by, and what that leaves of the gates."""
    if not aa and not noise.gates:
        return
    line(noise_text.title(noise))
    table(noise_text.COLUMNS, noise_text.metric_rows(noise))
    if noise.gates:
        table(noise_text.GATE_COLUMNS, noise_text.gate_rows(noise))
    for remark in noise_text.remarks(noise):
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
    for said in shown.repeat_lines(report):
        line(said)
    for said in shown.judge_lines(report):
        line(said)
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
            if options.rescore is not None:
                if is_another_judge(project, options.rescore, options.judge):
                    return asyncio.run(rejudge(project, options.rescore, options, observe=observe))
                # Its own judge named: nothing is to be asked.
                chosen = replace(options, judge=None if options.judge != NO_JUDGE else NO_JUDGE)
                return rescore_with(project, options.rescore, chosen)
            if options.resume is not None and options.resume.config().rejudged is not None:
                return asyncio.run(
                    resume_rejudged(project, options.resume, options, observe=observe)
                )
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


def _as_json(reports: list[Any], noise: list[Noise]) -> Any:
    if noise:
        return {"reports": reports, "noise": noise}
    return reports[0] if len(reports) == 1 else {"reports": reports}
