"""What a job of HSA-RL resolves to, everything checked before a weight is loaded. No torch here."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from harness_cli.augmentation.recipes import recipe_of
from harness_cli.errors import UsageError
from harness_cli.evaluation.evalsets import tool_names
from harness_cli.harness.load import load_state
from harness_cli.harness.roles import role_problems
from harness_cli.judges.rewards.judge import RuleRewards
from harness_cli.judges.rewards.open import reward_judge
from harness_cli.records.canonical import digest
from harness_cli.records.request import Request
from harness_cli.records.rl_job import RlTraining
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.live.shop import open_shop
from harness_cli.simulator.live.states import Draws, augmented_by
from harness_cli.store.project import Project
from harness_cli.training.leaks import refuse_leaking_texts, words_of
from harness_cli.training.opening import (
    Base,
    check_job,
    open_base,
    open_tools,
    refuse_toolless,
    require_extra,
)
from harness_cli.training.playing import Ground, ItemsGround, Playground, RoomsGround
from harness_cli.training.rl_items import open_items, with_tasks

if TYPE_CHECKING:
    from harness_cli.judges.base import Judge
    from harness_cli.models.chat_template import ChatTemplate

ONCE: Final = (
    "every rollout is used once, before an update: all ratios are 1 and the clip never acts; "
    "`updates` or `passes` above 1 make them move"
)
OF_DEV: Final = (
    "take other rooms (`rooms.first`), or measure by a sealed split: rooms speak in dev's words"
)
LEFT: Final = (
    "{tasks} tasks are no multiple of {groups} groups: the last {left} of a round begin the next, "
    "none is left out"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How an iteration is cut up."""

    batch: int
    """Rollouts that go through the model at a time, a process."""
    accumulate: int
    """Forward passes of one optimiser step."""
    every: int
    """Optimiser steps of one iteration."""
    steps: int
    """Optimiser steps of the job."""

    @property
    def iterations(self) -> int:
        """Times that rollouts are made."""
        return math.ceil(self.steps / self.every)


@dataclass(frozen=True, slots=True)
class RlPlan:
    """A job that was checked."""

    job: RlTraining
    base: Base
    template: "ChatTemplate"
    ground: Playground
    judge: "Judge"
    shape: Shape
    data: dict[str, str]
    """What the tasks are made of, with digests."""
    notes: tuple[str, ...]

    @property
    def by_rule(self) -> bool:
        """Rewards that ask no model."""
        return isinstance(self.judge, RuleRewards)

    def told(self) -> dict[str, Any]:
        """What it would do, for `--dry-run`."""
        job, shape = self.job, self.shape
        return {
            "job": job.name,
            "base": f"{self.base.named.name} ({self.base.named.digest[:16]})",
            "trains": "all weights" if job.lora is None else f"adapters of rank {job.lora.r}",
            "tasks": len(self.ground.tasks),
            "from": job.evalset or "live rooms",
            **({"of the tasks": _tasks_told(job)} if job.tasks else {}),
            "under augmented states": f"{job.augmented:.0%} of groups",
            "rewards": self.judge.id,
            "iterations": shape.iterations,
            "rollouts an iteration": f"{job.groups} groups of {job.rollouts}",
            "steps": shape.steps,
            "rollouts a forward pass": shape.batch,
            "forward passes a step": shape.accumulate,
            **({"notes": "; ".join(self.notes)} if self.notes else {}),
        }


def plan_rl(project: Project, job: RlTraining, world: int | None = None) -> RlPlan:
    """Check a job and what it names; nothing is written and no weight is loaded. `world` is the
    number of processes, where it is not that of this one's surroundings.

    Raises `UsageError` for sampling that ratios cannot be made of, for a reward judge that sits in
    the final panel, for items that measure.
    """
    require_extra("`harness train rl`")
    check_job(job)
    job = with_tasks(project, job)
    _check_numbers(job)
    notes = [*_role_notes(project, job)]
    base = open_base(project, job.base)
    template, _ = open_tools(project, job, base)
    refuse_toolless(job, template)
    ground, data = ground_of(project, job)
    shape = shape_of(job, len(ground.tasks), world)
    if shape.every == 1:
        notes.append(ONCE)
    if left := len(ground.tasks) % job.groups:
        notes.append(LEFT.format(tasks=len(ground.tasks), groups=job.groups, left=left))
    judge = reward_judge(project, job.reward_judge)
    return RlPlan(job, base, template, ground, judge, shape, data, tuple(notes))


def _tasks_told(job: RlTraining) -> str:
    return f"{job.tasks} ({', '.join(job.buckets) or 'all of them'})"


def shape_of(job: RlTraining, tasks: int, world: int | None = None) -> Shape:
    """How iterations are cut into steps and forward passes.

    Raises `UsageError` where rollouts cannot be divided evenly: a part left over would weigh more.
    """
    processes = world or int(os.environ.get("WORLD_SIZE", "1"))
    sampled = job.groups * job.rollouts
    if sampled % (job.updates * processes):
        raise UsageError(
            f"{sampled} rollouts an iteration cannot be divided over {job.updates} updates and "
            f"{processes} processes",
            hint="groups × rollouts must be a multiple of both",
        )
    if tasks < job.groups:
        raise UsageError(
            f"an iteration takes {job.groups} tasks and there are {tasks}",
            hint=f"groups: {tasks}, or more tasks",
        )
    each = sampled // job.updates // processes
    batch = next(n for n in range(min(job.batch, each), 0, -1) if each % n == 0)
    every = job.updates * job.passes
    steps = job.steps or max(1, math.ceil(job.epochs * tasks / job.groups)) * every
    if steps % every:
        raise UsageError(
            f"{steps} steps are no whole number of iterations of {every} steps",
            hint=f"steps: {math.ceil(steps / every) * every}",
        )
    return Shape(batch=batch, accumulate=each // batch, every=every, steps=steps)


def _check_numbers(job: RlTraining) -> None:
    if job.top_p != 1:
        raise UsageError(
            f"top_p: {job.top_p}: what is cut off the tail of a distribution is missing in every "
            "ratio, since the trainer knows the whole",
            hint="top_p: 1",
        )
    if job.rollouts < 2:
        raise UsageError("a group of one rollout has nothing to be compared with", hint="rollouts")
    if job.accumulate != 1:
        raise UsageError(
            "`accumulate` follows from groups, rollouts, updates and batch here",
            hint="leave it out",
        )
    if job.penalty.low >= job.penalty.high:
        raise UsageError("`penalty` needs low < high")
    if job.epsilon_low >= 1:
        raise UsageError("`epsilon_low` is a share of the ratio: below 1")


def _role_notes(project: Project, job: RlTraining) -> list[str]:
    """What the role check says of who rewards; raises `UsageError` for what must not be."""
    roles = dict(project.config.roles)
    if job.reward_judge is not None:
        roles["reward_judge"] = job.reward_judge
    config = msgspec.structs.replace(project.config, roles=roles)
    notes = []
    for place, level, message, fix in role_problems(config):
        if level == "error":
            raise UsageError(f"harness.yaml {place}: {message}", hint=fix)
        if place.rpartition(".")[2] == "reward_judge":
            notes.append(message)
    return notes


def ground_of(project: Project, job: RlTraining) -> tuple[Playground, dict[str, str]]:
    """Where a job's rollouts are made, and what its tasks are made of, with digests."""
    state = load_state(project)
    recipe = recipe_of(project.root, job.recipe)
    made_of = {"harness": state.id, "recipe": digest(recipe)}
    if not job.evalset:
        settings = _room_settings(job)
        shop = open_shop(project.evalsets)
        draws = Draws(state, augmented_by(state, recipe), pool=job.pool, seed=job.seed)
        seeds = range(job.rooms.first, job.rooms.first + job.rooms.tasks)
        made_of |= {"rooms": digest(job.rooms), "catalogue": shop.world.digest}
        rooms = RoomsGround(shop, draws, settings, seeds, job.augmented)
        refuse_leaking_texts(project, _words(rooms.requests), job.measured_by, hint=OF_DEV)
        return rooms, made_of
    opened = open_items(project, job, tool_names(state))
    evalset = opened.evalset
    items = {item.id: item for item in evalset.items}
    requests = {name: item.request for name, item in items.items()}
    refuse_leaking_texts(project, _words(requests), job.measured_by)
    ground = Ground(
        base=state,
        world=evalset.world,
        recipe=recipe,
        limits=project.limits("offline"),
        catalogue=project.evalsets / (evalset.header.catalogue or "catalogue"),
        pipeline=job.served.pipeline,
        pool=job.pool,
        seed=job.seed,
    )
    made_of |= opened.made_of
    if job.served.pipeline != "default":  # rollouts are rendered by it
        made_of["pipeline"] = job.served.pipeline
    return ItemsGround(ground, items, job.augmented), made_of


def _words(requests: Mapping[str, Request]) -> Iterator[tuple[str, str]]:
    return ((name, "\n".join(words_of(asked))) for name, asked in requests.items())


def _room_settings(job: RlTraining) -> Settings:
    try:
        return msgspec.convert(job.rooms.settings, Settings)
    except msgspec.ValidationError as exc:
        raise UsageError(f"`rooms.settings` of `{job.name}`: {exc}") from exc
