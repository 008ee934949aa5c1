"""What `harness train figures` does: TR Figures 5 and 6 of an RL job."""

from pathlib import Path

import msgspec

from harness_cli.commands._show import emit_json, line, note, table
from harness_cli.errors import UsageError
from harness_cli.records.canonical import write_atomic
from harness_cli.records.reader import read_json
from harness_cli.records.rl_job import RlTraining
from harness_cli.store.project import Project
from harness_cli.training.job_folder import job_named
from harness_cli.training.rl_figures import FIGURES, figures, means


def draw_figures(
    directory: Path, name: str | None, output: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Write the page of a job and show its first and last means."""
    folder, state = job_named(Project.find(directory).root, name)
    if state.verb != "rl":
        raise UsageError(
            f"`{state.name}` is a job of `train {state.verb}`, which has no rewards",
            hint="harness train status lists the jobs",
        )
    job = read_json(folder.path / "job.json", RlTraining, name="job.json")
    lines = folder.curve()
    path = folder.path / FIGURES if output is None else output
    write_atomic(path, figures(state.name, lines, job.penalty).encode())
    found = means(lines, job.penalty)
    if as_json:
        emit_json({"job": state.name, "figures": str(path), "means": msgspec.to_builtins(found)})
        return
    line(str(path))
    if not quiet and found:
        note(f"means of the first and the last {found[0].steps} iterations")
        table(
            ("", "first", "last", "change"),
            [
                (m.name, round(m.first, 3), round(m.last, 3), round(m.last - m.first, 3))
                for m in found
            ],
        )
