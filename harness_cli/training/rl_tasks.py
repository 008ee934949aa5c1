"""RL tasks: items as interaction tasks, with the difficulty that k rollouts of a policy show."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from harness_cli.errors import HarnessError, Stale, UsageError
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.records.item import Item
from harness_cli.records.run import EvalsetRef, RunConfig
from harness_cli.records.training import Bucket, DataCard, LeftOut, RlTask
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder
from harness_cli.training.data_set import counted_reasons, write_data_set
from harness_cli.training.readings import RL_TASKS
from harness_cli.training.recorded_runs import refuse_other_items, usable
from harness_cli.training.rl_items import TASKS
from harness_cli.training.run_states import run_states

LEAST = 2
"""Rollouts of an item below which there is no difficulty to speak of."""


def bucket_of(passed: int, scored: int) -> Bucket:
    """Difficulty by the share that passed: none, up to 1/3, up to 2/3, less than all, all."""
    if passed == 0:
        return "unsolved"
    if passed == scored:
        return "solved"
    return "hard" if 3 * passed <= scored else "medium" if 3 * passed <= 2 * scored else "easy"


def write_rl_tasks(project: Project, runs: Sequence[RunFolder], folder: Path) -> DataCard:
    """The items of runs of one policy in one harness as tasks, with pass counts over all of them.

    Raises `UsageError` for runs that are no training data or of several policies, `Stale` where the
    evalset is no longer the one that was run, `HarnessError` where no task is left.
    """
    configs = [usable(project, run) for run in runs]
    _refuse_mixture(configs)
    first = configs[0]
    under = run_states(project, first)
    evalset = load_evalset(project, under.evalset, split=first.evalset.split)
    if evalset.digest != under.digest:
        raise Stale(
            f"`{first.evalset.name}` is not what run `{first.id}` was made of any more",
            hint="run it again with this version of the items",
        )
    states: dict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        for result in run.results():
            states[result.item_id][result.state] += 1
    rows: list[RlTask] = []
    left_out: list[LeftOut] = []
    for item in evalset.items.among(first.only).first(first.limit):
        counts = states.get(item.id, Counter())
        scored = counts["passed"] + counts["failed"]
        if scored < LEAST:
            reason = "not run" if not counts else f"fewer than {LEAST} scored rollouts"
            left_out.append(LeftOut(item=item.id, reason=reason, detail=f"{scored} scored"))
        else:
            rows.append(_task(item, first, evalset.ref, counts))
    if not rows:
        raise HarnessError(
            f"no item has {LEAST} scored rollouts",
            hint=f"harness eval {first.evalset.name} --repeat 4",
        )
    card = DataCard(
        kind="rl-tasks",
        evalset=evalset.ref.name,
        split=str(evalset.ref.split),
        evalset_digest=evalset.digest,
        catalogue_digest=first.evalset.catalogue_digest,
        harness=first.harness_id,
        policy=first.policy_id,
        judge=first.judge_id,
        runs=tuple(run.id for run in runs),
        job={"buckets": dict(sorted(Counter(row.bucket for row in rows).items()))},
        candidates=len(rows) + len(left_out),
        left_out=counted_reasons(left_out),
        notes=_notes(first) if under.changed else (),
    )
    return write_data_set(folder, card, {TASKS: rows}, left_out, reading=RL_TASKS)


def _refuse_mixture(configs: Sequence[RunConfig]) -> None:
    refuse_other_items(configs, [config.evalset.digest for config in configs])
    for what, of in (("policy", "policy_id"), ("harness", "harness_id"), ("judge", "judge_id")):
        if len({getattr(config, of) for config in configs}) > 1:
            raise UsageError(
                f"the runs differ in their {what}: difficulty is that of one",
                hint="name runs of one policy in one harness under one judge",
            )


def _notes(config: RunConfig) -> tuple[str, ...]:
    where = f"state `{config.augmentation.state}`" if config.augmentation else "states"
    of = config.evalset.name
    return (
        f"Difficulty was measured under the augmented {where} of `{of}`; tasks name skills and "
        "tools as the base does.",
    )


def _task(item: Item, config: RunConfig, ref: EvalsetRef, counts: Counter[str]) -> RlTask:
    scored = counts["passed"] + counts["failed"]
    return RlTask(
        id=item.id,
        evalset=ref.name,
        split=item.split,
        evalset_digest=ref.digest,
        category=item.category,
        tags=item.tags,
        request=item.request,
        facts=item.expect.facts,
        skills=item.expect.skills,
        tools=tuple(tool.name for tool in item.expect.tools),
        policy=config.policy_id,
        harness=config.harness_id,
        rollouts=scored,
        passed=counts["passed"],
        unscored=counts["unscored"] + counts["errored"],
        bucket=bucket_of(counts["passed"], scored),
    )
