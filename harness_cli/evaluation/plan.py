"""What one `harness eval` asks for, and what that resolves to: everything `run.json` binds."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harness_cli import __version__
from harness_cli.errors import Stale, UnknownName, UsageError
from harness_cli.evaluation.agents import AgentKind
from harness_cli.evaluation.evalsets import Evalset, load_evalset, tool_names
from harness_cli.evaluation.gate import Budget
from harness_cli.evaluation.imports.imported import RECORDED
from harness_cli.evaluation.repeats import check_need
from harness_cli.evaluation.resume import refuse_other_source
from harness_cli.evaluation.under_map import map_beside, under
from harness_cli.harness.load import harness_files, is_harness, load_state, state_from_files
from harness_cli.harness.roles import role_rows
from harness_cli.judges.base import Judge
from harness_cli.models.identity import policy_id
from harness_cli.records.augmentation import AugmentationMap
from harness_cli.records.config import JudgeConfig, PolicyConfig
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import EvalsetHeader
from harness_cli.records.run import RESPONSES, RunConfig
from harness_cli.store.locks import IfLocked
from harness_cli.store.project import Project
from harness_cli.store.repo import Repo
from harness_cli.store.runs import RunFolder

RUN_REFS = "refs/harness/runs/"
NO_JUDGE = "none"
CONCURRENCY = {"openai": 8, "builtin": 2, "local": 1}
"""Rollouts side by side where nothing says otherwise, by kind of policy; 8 for the others."""


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What the caller said. None: the project's, the evalset's or a resumed run's own."""

    evalset: str | None = None
    split: str | None = None
    policy: str | None = None
    harness: str | None = None
    """A revision; None is the working files."""
    judge: str | None = None
    agent: AgentKind | None = None
    profile: str | None = None
    limit: int | None = None
    only: tuple[str, ...] = ()
    """Item ids to restrict the run to; empty is all of them."""
    repeat: int | None = None
    need: int | None = None
    """Passes that an item needs of its repeats; None: more than half."""
    seed: int | None = None
    concurrency: int | None = None
    warm_up: int | None = None
    """A number makes it a measurement: so many first rollouts are finished before any other begins,
    a failed rollout is a sample, and a resume makes those anew that were under way."""
    budget: Budget = field(default_factory=Budget)
    resume: RunFolder | None = None
    rescore: RunFolder | None = None
    """Score the rollouts of this run again, in place of new ones."""
    record: Path | None = None
    replay: Path | None = None
    fresh_verdicts: bool = False
    """Take no vote of a panel from the cache."""
    responses: Path | None = None
    """Given answers to score in place of rollouts."""
    reason: str | None = None
    """Why a sealed split is opened."""
    if_locked: IfLocked = "fail"
    begun: Callable[[RunFolder], None] = lambda _: None
    """Called with the run's folder before the first rollout."""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Resolved options: the values a run works with."""

    options: EvalOptions
    evalset: Evalset
    state: HarnessState
    agent: AgentKind
    profile: str
    policy: str
    policy_config: PolicyConfig
    judge: str
    judge_config: JudgeConfig | None
    concurrency: int
    repeat: int
    need: int | None
    seed: int
    augmentation: AugmentationMap | None = None
    """Names of the augmented harness that the run is made in."""

    @property
    def planned(self) -> int:
        """N: rollouts of the whole run."""
        return len(self.items) * self.repeat

    @property
    def items(self) -> Any:
        """The items of the run, streamed."""
        return self.evalset.items.among(self.options.only).first(self.options.limit)


def resolve(project: Project, options: EvalOptions) -> Plan:
    """Load what the options name. On a resume they default to what the run was asked."""
    old = options.resume.config() if options.resume else None
    if old is not None:
        if not (options.replay or options.responses):
            refuse_other_source(old)
        options = _of_run(options, old)
    if options.evalset is None:
        raise UsageError("no evalset is named", hint="`harness evalset list` shows them")
    _check(options)
    state = load_state(project, options.harness)
    given = old.augmentation if old else _map_beside(options.harness)
    evalset = load_evalset(
        project,
        options.evalset,
        split=options.split,
        reason=options.reason,
        tools=tool_names(state) | set(given.tools if given else ()),  # items name the base's
        harness=options.harness,
    )
    _refuse_records(evalset.header)
    if given is not None:
        evalset = under(evalset, state, given)
    name, policy = _policy(project, options)
    judge = options.judge or evalset.header.judge
    kind = options.agent or ("bare" if evalset.header.agent == "bare" else "harness")
    return Plan(
        options=options,
        evalset=evalset,
        state=state,
        agent=kind,
        profile=options.profile or "offline",
        policy=name,
        policy_config=policy,
        judge=judge,
        judge_config=_judge(project, judge),
        concurrency=options.concurrency or policy.concurrency or CONCURRENCY.get(policy.kind, 8),
        repeat=options.repeat or 1,
        need=options.need,
        seed=options.seed or 0,
        augmentation=given,
    )


def _map_beside(harness: str | None) -> AugmentationMap | None:
    """The map of an augmented harness that was named by its folder."""
    if harness is None or not is_harness(Path(harness)):
        return None
    return map_beside(Path(harness))


def run_config(
    project: Project, plan: Plan, run_id: str, *, policy: str, judge: Judge | None
) -> RunConfig:
    """`run.json` of a plan; `policy` is the id of what was opened, `judge` the judge itself."""
    settings = plan.policy_config
    return RunConfig(
        id=run_id,
        evalset=plan.evalset.ref,
        limit=plan.options.limit,
        only=plan.options.only,
        repeat=plan.repeat,
        need=plan.need,
        seed=plan.seed,
        agent=plan.agent,
        harness_id=plan.state.id,
        harness_commit=plan.state.commit,
        dirty=plan.state.dirty,
        harness_ref=RUN_REFS + run_id if plan.state.dirty else None,
        policy=plan.policy,
        policy_id=policy,
        policy_settings={k: v for k, v in msgspec.to_builtins(settings).items() if v is not None},
        fallback_id=_fallback_id(project, settings.fallback),
        judge=plan.judge,
        judge_id=judge.id if judge else plan.judge,
        judge_harness=getattr(judge, "harness_id", None),
        judge_dirty=getattr(judge, "dirty", False),
        roles=role_rows(project.config, plan.judge),
        profile=plan.profile,
        limits=project.limits(plan.profile),
        pipeline=settings.pipeline,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        command=plan.options.command,
        excluded=exclusion(plan.evalset.header, plan.policy, policy),
        versions=run_versions(),
        fresh=plan.options.replay is None and plan.options.responses is None,
        augmentation=plan.augmentation,
    )


def run_versions() -> dict[str, str]:
    """What a run's numbers were made with."""
    return {"harness": __version__, "python": platform.python_version()}


def exclusion(header: EvalsetHeader, name: str, policy: str) -> str | None:
    """Why a policy has no headline on an evalset: it wrote or filtered the items itself.

    Another checkpoint under the same name counts as the same policy.
    """
    for filtered in header.filtered_by:
        if policy == filtered or filtered.partition("@")[0] == name:
            return f"`{header.name}` was filtered by {filtered}"
    return None


def keep_uncommitted(project: Project, config: RunConfig, harness: str | None = None) -> None:
    """Keep the tree of an uncommitted harness (or of the folder `harness`) under the run's ref."""
    if config.harness_ref is None:
        return
    repo = Repo.open(project.harness)
    files = harness_files(project, harness)
    if state_from_files(files, object_format=repo.object_format).id != config.harness_id:
        raise Stale("the harness changed while the run was being prepared", hint="start it again")
    repo.keep_tree(config.harness_ref, files, f"Harness of run {config.id}")


def _of_run(options: EvalOptions, old: RunConfig) -> EvalOptions:
    """The options with what they leave open taken from the run that is resumed."""
    return changed(
        options,
        evalset=options.evalset or old.evalset.name,
        split=options.split or old.evalset.split,
        policy=options.policy or old.policy,
        harness=options.harness or old.harness_ref or old.harness_commit,
        judge=options.judge or old.judge,
        agent=options.agent or old.agent,  # type: ignore[arg-type]
        profile=options.profile or old.profile,
        limit=old.limit if options.limit is None else options.limit,
        only=options.only or old.only,
        repeat=options.repeat or old.repeat,
        need=options.need or old.need,
        seed=old.seed if options.seed is None else options.seed,
    )


def _check(options: EvalOptions) -> None:
    both = [
        name for name in ("record", "replay", "responses") if getattr(options, name) is not None
    ]
    if len(both) > 1:
        raise UsageError(f"--{both[0]} and --{both[1]} exclude each other")
    check_need(options.need, options.repeat or 1)


def _policy(project: Project, options: EvalOptions) -> tuple[str, PolicyConfig]:
    if options.responses is not None:
        return RESPONSES, PolicyConfig(kind="replay", script=str(options.responses))
    return project.policy(options.policy)


def _refuse_records(header: EvalsetHeader) -> None:
    """Items of a dialogue benchmark need its simulated user and its database."""
    if header.judge == RECORDED:
        raise UsageError(
            f"`{header.name}` is the record of dialogues that another tool simulated and scored: "
            "its items cannot be run here",
            hint="`harness compare` and `harness diagnose` read the runs imported with it",
        )


def _judge(project: Project, name: str) -> JudgeConfig | None:
    if name == NO_JUDGE:
        return None
    found = project.config.judges.get(name)
    if found is None and name == "grounded":
        return JudgeConfig(kind="grounded")
    if found is None:
        raise UnknownName.of("judge", name, {*project.config.judges, "grounded", NO_JUDGE})
    return found


def _fallback_id(project: Project, name: str | None) -> str | None:
    if name is None:
        return None
    return policy_id(name, project.policy(name)[1])
