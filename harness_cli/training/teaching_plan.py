"""What a job of supervised data resolves to: items, harness states, teacher, judge, roles."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from harness_cli.errors import UsageError
from harness_cli.evaluation.evalsets import Evalset, load_evalset, tool_names
from harness_cli.evaluation.variants import States
from harness_cli.harness.load import load_state
from harness_cli.harness.roles import role_problems
from harness_cli.judges.open import GROUNDED
from harness_cli.records.config import JudgeConfig
from harness_cli.records.harness import HarnessState
from harness_cli.records.run import EvalsetRef
from harness_cli.records.training import SftJob
from harness_cli.store.project import Project
from harness_cli.training.drawn_states import draw_states
from harness_cli.training.measured import refuse_measuring
from harness_cli.training.template_source import tools_for

ORIGINAL: Final = "original"
OURS: Final = ("teacher", "rejection_judge", "reward_judge", "final_judge")
"""Roles that must be kept apart for this data (TR App. E.1)."""


@dataclass(frozen=True, slots=True)
class TeachingPlan:
    """A job, resolved."""

    job: SftJob
    evalset: Evalset
    base: HarnessState
    teacher: str
    judge: str
    judge_config: JudgeConfig
    states: States | None
    names: tuple[str, ...]
    """The states in order; `ORIGINAL` is the harness as it is."""
    warnings: tuple[str, ...]

    @property
    def each(self) -> int:
        """Rollouts an item."""
        return len(self.names) * self.job.candidates


def resolve(project: Project, job: SftJob, folder: Path) -> TeachingPlan:
    """Load what a job names; augmented states are drawn into `folder`, or read from it.

    Raises `UsageError` for items that measure, for roles that must not be one, `UnknownName`.
    """
    base = load_state(project)
    refuse_measuring(project, EvalsetRef(name=job.evalset, split=job.split, digest="", n=0))
    evalset = load_evalset(project, job.evalset, split=job.split, tools=tool_names(base))
    if evalset.states is not None:
        raise UsageError(
            f"`{job.evalset}` runs under states of its own",
            hint=f"name its items' evalset, `{evalset.header.items_of}`",
        )
    if not job.students:
        raise UsageError("the job names no student", hint="students: [agent, tool, response]")
    if job.template is not None:
        # What a wrong path would end after hours of a teacher's work ends here.
        tools_for(project.root, job.template, job.tokenizer).open()
    if not (job.original or job.states):
        raise UsageError("the job names no harness state", hint="`original: true` or `states: N`")
    evalset = replace(evalset, items=evalset.items.first(job.limit))
    roles = project.config.roles
    teacher, _ = project.policy(job.teacher or roles.get("teacher"))
    judge = job.judge or roles.get("rejection_judge") or evalset.header.judge
    states, drawn = draw_states(project, job, folder / "states", base, list(evalset.items))
    return TeachingPlan(
        job=job,
        evalset=evalset,
        base=base,
        teacher=teacher,
        judge=judge,
        judge_config=_judge(project, judge),
        states=states,
        names=((ORIGINAL,) if job.original else ()) + drawn,
        warnings=_role_warnings(project, teacher, judge),
    )


def _judge(project: Project, name: str) -> JudgeConfig:
    found = project.config.judges.get(name)
    if found is not None:
        return found
    if name == GROUNDED:
        return JudgeConfig(kind="grounded")
    if name in project.config.policies:
        return JudgeConfig(panel=(name,))
    raise UsageError(f"no judge named `{name}`", hint="`harness doctor` lists them")


def _role_warnings(project: Project, teacher: str, judge: str) -> tuple[str, ...]:
    """What the role check has to say; raises `UsageError` for what must not be (TR App. E.1)."""
    roles = {**project.config.roles, "teacher": teacher, "rejection_judge": judge}
    config = msgspec.structs.replace(project.config, roles=roles)
    found = list(role_problems(config))
    for place, level, message, fix in found:
        if level == "error":
            raise UsageError(f"harness.yaml {place}: {message}", hint=fix)
    return tuple(m for place, _, m, _ in found if place.rpartition(".")[2] in OURS)
