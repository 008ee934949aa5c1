"""What `harness export sft|prefs|rl-tasks` do with their options, and what they show."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.commands._progress import progress
from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.errors import BadFile
from harness_cli.evaluation.gate import Budget
from harness_cli.models.template_source import is_packaged_template
from harness_cli.records.reader import read_yaml
from harness_cli.records.training import DataCard, SftJob
from harness_cli.store.project import Project
from harness_cli.training.sft import write_sft
from harness_cli.training.teaching import teach


def export_sft(
    directory: Path,
    job_file: Path | None,
    given: Mapping[str, Any],
    folder: Path,
    *,
    max_cost: float | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the teacher and write the data set; options replace what the job says."""
    project = Project.find(directory)
    job = SftJob()
    if job_file is not None:
        job = read_yaml(directory / job_file, SftJob, name=str(job_file))
    if job.schema != 1:
        raise BadFile(f"{job_file}: schema {job.schema} is not known", hint="this is 1")
    # A path on the command line is meant from where the command is, one in a job from the project.
    paths = {
        key: str((directory / value).resolve())
        for key, value in given.items()
        if value and key in PATHS and not is_packaged_template(value)
    }
    named = {k: v for k, v in {**given, **paths}.items() if v is not None}
    job = msgspec.structs.replace(job, **named)
    with progress(quiet=quiet) as observe:
        taught = asyncio.run(
            teach(project, job, folder, budget=Budget(cost=max_cost), observe=observe)
        )
    card = write_sft(project, taught, job, folder, processes=len(os.sched_getaffinity(0)))
    shown(card, folder, as_json=as_json, quiet=quiet)


PATHS = ("template", "tokenizer")


def shown(card: DataCard, folder: Path, *, as_json: bool, quiet: bool) -> None:
    """The card of a data set: files, what was left out and why, notes."""
    if as_json:
        emit_json({**msgspec.to_builtins(card), "folder": str(folder)})
        return
    for said in () if quiet else card.notes:
        note(f"note: {said}")
    columns = ("file", "rows", "longest", "trained tokens")
    table(columns, [(n, f.rows, f.longest, f.trained) for n, f in card.files.items()])
    left = ", ".join(f"{n} × {reason}" for reason, n in card.left_out.items())
    line(f"{card.candidates} looked at; left out: {left or 'nothing'}")
    if card.retries:
        line("hook retries: " + ", ".join(f"{n} {how}" for how, n in card.retries.items()))
    buckets = card.job.get("buckets")
    if buckets:
        line("difficulty: " + ", ".join(f"{n} {name}" for name, n in buckets.items()))
    line(f"{card.kind} data of {card.evalset}: {folder}")
