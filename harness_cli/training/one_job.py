"""What every job on TRL's trainers does from its plan to its checkpoint, whatever it trains by.

The first process locks the job, says in `state.json` how far it is and how it ended, and registers
what came of it; processes beside it train their part and write nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_cli.errors import Interrupted
from harness_cli.records.canonical import write_json
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.training_job import TrainingJob
from harness_cli.store.project import Project
from harness_cli.training.job_folder import Following, JobFolder, Running, main_process
from harness_cli.training.keeping import Made, in_turn, keep, record_of, registered
from harness_cli.training.opening import Base

if TYPE_CHECKING:
    from harness_cli.models.chat_template import ChatTemplate
    from harness_cli.training.local_trainer import Observe, Student, Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A job that was checked, and the trainer that is its own."""

    verb: str
    job: TrainingJob
    base: Base
    template: "ChatTemplate"
    data: Mapping[str, str]
    """File or folder of training data → SHA-256."""
    digest: str
    """Of the data: states of other data are another job's."""
    steps: int
    trainer: "Callable[[JobFolder, Student, Watch], AbstractContextManager[Any]]"
    """Opens the trainer; what it holds is given back at the end."""
    teacher: Base | None = None
    rewound: Callable[[Path, int], None] = lambda _, __: None
    """Cuts what a kind of job writes beside its curve, to a step."""


def run_work(
    project: Project,
    work: Work,
    *,
    resume: bool,
    again: bool,
    observe: "Observe | None",
) -> Checkpoint:
    """Train, and register what comes of it.

    `resume` goes on from the newest state, and gives the checkpoint of a job that is done already;
    `again` forgets the states of an earlier try. Raises `HarnessError` where there are some and
    neither is said, `Stale` where they are another job's.
    """
    made = Made(work.base, work.data, work.digest)
    if main_process():
        return in_turn(
            project,
            work.verb,
            work.job,
            made,
            lambda folder, step: _trained(project, work, folder, step, observe),
            resume=resume,
            again=again,
        )
    done = registered(project, made, work.job, resume=resume, again=again)
    return done or _followed(work, JobFolder.of(project.root, work.job.name), resume=resume)


def _trained(
    project: Project, work: Work, folder: JobFolder, step: int, observe: "Observe | None"
) -> Checkpoint:
    from harness_cli.training import local_trainer

    job = work.job
    folder.prune_states(job.keep)
    folder.cut_curve(step)
    work.rewound(folder.path, step)
    student = local_trainer.open_student(job, work.base.folder, work.template)
    running = Running.begin(folder, job, work.verb, steps=work.steps, data_sha256=work.digest)
    watch = local_trainer.Watch(running, job, observe)
    with saying_how_it_ends(running):
        write_json(folder.path / "job.json", job)
        with work.trainer(folder, student, watch) as trainer:
            local_trainer.train(trainer, watch, running, step)
            return keep(
                project,
                running,
                _record(work, watch),
                lambda target: local_trainer.write_model(trainer, student, job, target),
            )


def _followed(work: Work, folder: JobFolder, *, resume: bool) -> Checkpoint:
    """A process beside the first. The record it gives back is of what it trained; the first process
    registers the checkpoint."""
    from harness_cli.training import local_trainer

    saved = folder.saved_steps() if resume else []
    student = local_trainer.open_student(work.job, work.base.folder, work.template)
    running = Following.of(folder, work.job, work.verb)
    watch = local_trainer.Watch(running, work.job, None)
    with work.trainer(folder, student, watch) as trainer:
        local_trainer.train(trainer, watch, running, saved[-1] if saved else 0)
    return _record(work, watch)


@contextmanager
def saying_how_it_ends(running: Running) -> Iterator[None]:
    """Write down what ended a job, where nobody nearer to it did: a job that failed while its
    trainer was built is no job that runs."""
    try:
        yield
    except BaseException as exc:
        if running.state.status == "running":
            stopped = isinstance(exc, KeyboardInterrupt | Interrupted)
            error = "" if stopped else f"{type(exc).__name__}: {exc}"
            running.ended("stopped" if stopped else "failed", error=error)
        raise


def _record(work: Work, watch: "Watch") -> Checkpoint:
    return record_of(
        work.job,
        work.verb,
        work.base,
        work.data,
        steps=work.steps,
        metrics=watch.last,
        teacher=work.teacher,
    )
