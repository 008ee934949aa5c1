"""`harness train … --engine verl|roll`: a job as a folder for another engine, and on its way."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_cli.commands._show import emit_json, line, note
from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.records.cluster import Cluster
from harness_cli.records.reader import read_yaml
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.folders import written_whole
from harness_cli.store.project import Project
from harness_cli.training.job_folder import JobFolder

if TYPE_CHECKING:
    from harness_cli.commands._training import Wish

ENGINES: Final = ("here", "verl", "roll")


def scale(
    project: Project,
    directory: Path,
    job: TrainingJob,
    wish: "Wish",
    *,
    as_json: bool,
) -> None:
    """Write the job's folder for an engine, and hand it in unless it is a dry run."""
    engine = wish.engine
    if engine not in ENGINES:
        raise UnknownName.of("engine", engine, ENGINES)
    for name in ("resume", "again", "background", "gpus"):
        if getattr(wish, name):
            raise UsageError(f"--{name} is for jobs that train here", hint=f"without --{name}")
    machines = read_cluster(directory, wish.cluster)
    folder = JobFolder.of(project.root, job.name).path / engine
    if engine == "roll":
        _roll(project, job, machines, folder, as_json=as_json)
    else:
        _verl(project, job, machines, folder, dry_run=wish.dry_run, as_json=as_json)


def read_cluster(directory: Path, file: Path | None) -> Cluster:
    """The machines of a file; one node of eight GPUs without one."""
    if file is None:
        return Cluster()
    found = read_yaml(directory / file, Cluster, name=str(file))
    if found.schema != 1:
        raise BadFile(f"{file}: schema {found.schema} is not known", hint="this is 1")
    return found


def _verl(
    project: Project,
    job: TrainingJob,
    cluster: Cluster,
    folder: Path,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    from harness_cli.training.scale.submit import client_env, submit
    from harness_cli.training.scale.verl_folder import write_verl_job

    with written_whole(folder) as part:
        made = write_verl_job(project, job, cluster, part)
    told: dict[str, Any] = {
        "folder": str(folder),
        "command": list(made.words),
        "environment": client_env(cluster),
        "overrides": list(made.overrides),
        "left_out_a_round": made.left,
    }
    if not dry_run:
        told["ray"] = submit(folder, cluster, made.words)
    if as_json:
        emit_json({"dry_run": dry_run, **told})
        return
    if dry_run:
        env = " ".join(f"{k}={v}" for k, v in client_env(cluster).items())
        line(f"cd {shlex.quote(str(folder))} && {env} {shlex.join(made.words)}")
        note("written, not handed in; overrides.txt has the same, one a line")
    else:
        line(told["ray"])
        note(f"handed in from {folder}")
    if made.left:
        note(f"{made.left} tasks of each round are no whole step: verl leaves out others each time")
    if cluster.model is None:
        note("`model` of the cluster file is not set: the nodes must see the base's own folder")


def _roll(
    project: Project, job: TrainingJob, cluster: Cluster, folder: Path, *, as_json: bool
) -> None:
    from harness_cli.training.scale.roll_folder import write_roll_job

    if not isinstance(job, RlTraining):
        raise UsageError("ROLL is exported to for reinforcement alone", hint="--engine verl")
    with written_whole(folder) as part:
        name = write_roll_job(project, job, cluster, part, home=folder).name
    file = folder / name
    words = ["python", str(folder / "start.py")]
    if as_json:
        emit_json({"folder": str(folder), "config": str(file), "command": words})
        return
    line(shlex.join(words))
    note(f"written: {file.name}; to be started where ROLL is installed (docs/scale_out.md)")
