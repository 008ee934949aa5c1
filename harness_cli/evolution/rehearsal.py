"""Hooks that a proposal adds or changes, tried on recorded rollouts before anything is committed.

A hook that *fails* there (no decision, out of time, a check that breaks) is refused. How often one
steps in on rollouts that passed is told: that is what it may cost.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from harness_cli.errors import BadFile, HarnessError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.records.harness import HarnessState
from harness_cli.records.request import Request
from harness_cli.runtime.hooks.moment import Moment
from harness_cli.runtime.hooks.replay import Outcome, moments_of, try_hooks
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder, RunStore

PASSED, FAILED = 40, 40
"""Rollouts of each kind that hooks are tried on (choice): seconds, not minutes."""

Groups = tuple[list[list[Moment]], list[list[Moment]]]
"""Events of passing and of failing rollouts."""


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """One hook on recorded rollouts."""

    hook: str
    stepped_in_passing: int
    passing: int
    stepped_in_failing: int
    failing: int

    def __str__(self) -> str:
        return (
            f"hook `{self.hook}` steps in on {self.stepped_in_passing} of {self.passing} recorded "
            f"rollouts that passed, {self.stepped_in_failing} of {self.failing} that failed"
        )


def changed_hooks(before: HarnessState | None, after: HarnessState) -> list[str]:
    """Names of hooks that are new or differ, their files included."""
    old = {hook.name: hook for hook in before.hooks} if before else {}
    files = before.files if before else {}
    code = {p for p in after.files if p.startswith("hooks/") and after.files[p] != files.get(p)}
    return [
        hook.name
        for hook in after.hooks
        if old.get(hook.name) != hook or any(word in code for word in hook.command)
    ]


def rehearse(
    project: Project, run: str, before: HarnessState | None, after: HarnessState
) -> tuple[Rehearsal, ...]:
    """Every changed hook on rollouts of `run`. Raises `BadFile` for a hook that fails there.

    Without that run, or its items, there is nothing to try them on: the result is empty.
    """
    names = changed_hooks(before, after)
    if not names:
        return ()
    try:
        folder = RunStore(project.runs).get(run)
        groups = _recorded(project, folder, after)
    except HarnessError:
        return ()
    seconds = project.limits("offline").hook_s
    return tuple(_one(name, groups, after, seconds) for name in names)


def _recorded(project: Project, run: RunFolder, state: HarnessState) -> Groups:
    """Events of passing and of failing rollouts, some of each."""
    ref = run.config().evalset
    evalset = load_evalset(project, ref.name, split=ref.split, reason=f"hook dry run on {run.id}")
    requests: dict[str, Request] = {item.id: item.request for item in evalset.items}
    passed, failed = list[str](), list[str]()
    for result in run.results():
        if result.item_id in requests and result.repeat == 0:
            (passed if result.state == "passed" else failed).append(result.item_id)
    chosen = {*passed[:PASSED], *failed[:FAILED]}
    good, bad = list[list[Moment]](), list[list[Moment]]()
    for trajectory in run.trajectories(lambda key: key.item in chosen and key.repeat == 0):
        item = trajectory.item_id or ""
        events = list(moments_of(trajectory, state, requests[item]))
        (good if item in passed else bad).append(events)
    return good, bad


def _one(name: str, groups: Groups, state: HarnessState, seconds: float) -> Rehearsal:
    counts = [
        sum(_steps_in(name, outcomes) for outcomes in _tried(group, state, name, seconds))
        for group in groups
    ]
    return Rehearsal(
        hook=name,
        stepped_in_passing=counts[0],
        passing=len(groups[0]),
        stepped_in_failing=counts[1],
        failing=len(groups[1]),
    )


def _steps_in(name: str, outcomes: Sequence[Outcome]) -> bool:
    """The hook does something to a rollout. Raises `BadFile` where it fails."""
    said = [told for outcome in outcomes for told in outcome.hooks if told["hook"] == name]
    broken = next((told for told in said if told["outcome"] == "failed"), None)
    if broken is not None:
        raise BadFile(
            f"hook `{name}` fails on a recorded event: {broken['reason']}; nothing was written",
            hint="`harness hooks test` shows it on every event; change or reject the hunk",
        )
    return any(told["outcome"] != "allow" for told in said)


def _tried(
    group: Sequence[list[Moment]], state: HarnessState, name: str, seconds: float
) -> list[list[Outcome]]:
    """One hook on every rollout of a group, in an event loop of its own thread.

    The applier is called from commands without a loop and from loops that run already.
    """

    async def all_of_them() -> list[list[Outcome]]:
        return [await try_hooks(events, state, seconds=seconds, only=name) for events in group]

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(lambda: asyncio.run(all_of_them())).result()
