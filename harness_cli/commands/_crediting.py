"""What `harness edit credit`, `prune` and `heldout` show."""

import asyncio
from pathlib import Path

from harness_cli.commands._editing import new_file
from harness_cli.commands._progress import progress
from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.evolution.crediting import CreditReport, credited, find_around
from harness_cli.evolution.prune import prune
from harness_cli.loop.heldout import Asked, study
from harness_cli.records.counting import counted
from harness_cli.store.project import Project


def show_credit(
    project: Project, name: str | None, *, budget: int, as_json: bool, quiet: bool
) -> None:
    """Credit the hunks of one applied proposal; `budget` items may be run with one left out."""
    around = find_around(project, name)
    silent = as_json or quiet
    say = (lambda words: None) if silent else note  # noqa: ARG005  a silent listener
    with progress(quiet=silent) as observe:
        report = asyncio.run(credited(project, around, budget=budget, say=say, observe=observe))
    if as_json:
        emit_json(report)
        return
    line(f"proposal {report.proposal}: runs {report.before} -> {report.after}")
    table(["hunk", "path", "mark", "promised", "fixed", "broken"], [
        [c.hunk, c.path, c.mark, len(c.predicted), len(c.fixed), len(c.broken)]
        for c in report.credits
    ])  # fmt: skip
    for c in report.credits:
        line(f"{c.hunk}: {c.mark}: {c.why}")
    if not quiet:
        _advise(report, around.before.config().evalset.name)


def _advise(report: CreditReport, evalset: str) -> None:
    noise = report.noise
    if noise is None:
        note(f"no A/A run is there: `harness eval {evalset} --aa` measures the noise floor")
    else:
        note(
            f"noise floor: {counted(noise.gained, 'flip')} between runs {' and '.join(noise.runs)}"
        )
    if any(c.mark == "cannot tell" and c.left_out is None for c in report.credits):
        note("--budget ITEMS leaves hunks out one at a time and measures what moved")
    note("next: harness edit prune")


def propose_pruning(project: Project, output: Path | None, *, as_json: bool, quiet: bool) -> None:
    """Write the proposal that takes idle hunks out; nothing is applied."""
    proposal, left = prune(project)
    path = new_file(project, proposal, output) if proposal.edits else None
    if as_json:
        emit_json({"proposal": proposal, "file": path and str(path), "left": left})
        return
    for words in () if quiet else left:
        note(f"left alone: {words}")
    if path is None:
        note(f"nothing to take out: {proposal.note}")
        return
    line(str(path))
    if not quiet:
        note(f"{counted(len(proposal.edits), 'edit')}; decide and apply: harness edit apply {path}")


def show_heldout(project: Project, asked: Asked, *, as_json: bool, quiet: bool) -> None:
    """Run the held-out study and print its rows as TR Table 8 has them."""
    silent = as_json or quiet
    say = (lambda words: None) if silent else note  # noqa: ARG005  a silent listener
    with progress(quiet=silent) as observe:
        done = asyncio.run(study(project, asked, say, observe))
    if as_json:
        emit_json(done)
        return
    for opened in done.opened_before:
        note(f"note: {opened.split} was opened before, {opened.at} by {opened.by}: {opened.why}")
    table(
        ["policy", "errors before", "after", "error reduction", "p", "without a score"],
        [
            [
                row.policy,
                f"{row.before.errors} of {row.before.scored}",
                f"{row.after.errors} of {row.after.scored}",
                None if row.reduction is None else f"{row.reduction:.1%}",
                None if row.mcnemar is None else f"{row.mcnemar.p:.4f}",
                f"{row.before.missing}, {row.after.missing}",
            ]
            for row in done.rows
        ],
    )
    if not quiet:
        by = f"panel `{asked.judge}`" if asked.judge else "deterministic naturalness check"
        note(f"errors: replies the {by} objects to; p: exact McNemar")
