"""Where an agentic distillation rolls its student out: the environment of the teacher's RL job.

Table 5 of the report teaches each student by the RL checkpoint of its own environment, so what the
teacher's record says is the default; a job may say otherwise, field by field.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.rl_job import RlTraining
from harness_cli.records.training_job import OpdTraining
from harness_cli.store.checkpoints import read_checkpoint
from harness_cli.store.project import Project
from harness_cli.training.opening import Base
from harness_cli.training.playing import Playground
from harness_cli.training.rl_items import with_tasks
from harness_cli.training.rl_plan import ground_of

FIELDS: Final = (
    "evalset", "split", "limit", "tasks", "buckets", "rooms", "augmented", "recipe", "pool",
    "at_once",
)  # fmt: skip
"""What of an RL job says where it plays."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A source of tasks, and the settings it was opened with."""

    job: RlTraining
    ground: Playground
    made_of: dict[str, str]
    """What the tasks are made of, with digests."""


def open_environment(project: Project, job: OpdTraining, teacher: Base) -> Environment:
    """The environment of a job. Raises `UsageError` where neither it nor its teacher names one."""
    strange = sorted(job.environment.keys() - {*FIELDS})
    if strange:
        raise UsageError(
            f"`environment` of `{job.name}` knows no `{strange[0]}`", hint=", ".join(FIELDS)
        )
    fields = {**_of_teacher(teacher), **job.environment}
    if not fields:
        raise UsageError(
            f"`{job.teacher}` was not trained by `harness train rl`: it has no environment",
            hint="environment: {evalset: …}, or {rooms: {tasks: …}}",
        )
    given = {
        "name": job.name,
        "base": job.base,
        "seed": job.seed,
        "served": msgspec.to_builtins(job.served),
        "measured_by": job.measured_by,
        "new_tokens": job.new_tokens,
        "temperature": job.temperature,
        **fields,
    }
    try:
        rl = msgspec.convert(given, RlTraining)
    except msgspec.ValidationError as exc:
        raise UsageError(f"`environment` of `{job.name}`: {exc}") from exc
    rl = with_tasks(project, rl)
    ground, made_of = ground_of(project, rl)
    return Environment(rl, ground, made_of)


def _of_teacher(teacher: Base) -> dict[str, Any]:
    record = read_checkpoint(teacher.folder)
    if record is None or record.made_by != "rl":
        return {}
    return {name: record.job[name] for name in FIELDS if name in record.job}
