"""τ²-bench result files: `{info, tasks, simulations}`, simulations streamed one at a time."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.elements import Span, elements, kind_of, members, whole
from harness_cli.evaluation.imports.imported import RECORDED, Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.source import Source, decoded, name_of
from harness_cli.evaluation.imports.tasks import Tasks, known_ids
from harness_cli.evaluation.imports.tau2_dialogue import Message, trajectory_of, turns_of
from harness_cli.evaluation.imports.tau2_reward import RewardInfo, findings_of, parts_of, recheck
from harness_cli.evaluation.imports.tau_facts import category_of, expected_writes, placed
from harness_cli.evaluation.imports.tau_facts import findings_of as dialogue_findings
from harness_cli.records.canonical import digest
from harness_cli.records.item import EvalsetHeader, Expect, Item
from harness_cli.records.request import Request

KIND = "tau2"
_ISSUE = re.compile(r"^\[([A-Za-z_]+)\]")


class Llm(msgspec.Struct, frozen=True):
    """The agent or the user simulator of a run."""

    llm: str | None = None
    implementation: str = ""
    llm_args: dict[str, Any] | None = None


class Environment(msgspec.Struct, frozen=True):
    """Which domain was simulated."""

    domain_name: str
    policy: str = ""


class Info(msgspec.Struct, frozen=True):
    """What the run was asked."""

    environment_info: Environment
    agent_info: Llm = Llm()
    user_info: Llm = Llm()
    num_trials: int = 1
    git_commit: str | None = None


class Action(msgspec.Struct, frozen=True):
    """A call that the task's own solution makes."""

    name: str
    arguments: dict[str, Any] | None = None
    requestor: str = "assistant"
    compare_args: tuple[str, ...] | None = None


class Criteria(msgspec.Struct, frozen=True):
    """What the outcome of a task is measured by, as far as it is read here."""

    actions: tuple[Action, ...] | None = None


class Simulation(msgspec.Struct, frozen=True):
    """One dialogue with its reward."""

    id: str
    task_id: str | int
    trial: int = 0
    reward_info: RewardInfo | None = None
    termination_reason: str = ""
    duration: float = 0.0
    messages: tuple[Message, ...] = ()


class Head(msgspec.Struct, frozen=True):
    """A simulation without its dialogue."""

    task_id: str | int
    trial: int = 0
    reward_info: RewardInfo | None = None


def read(source: Source, options: ImportOptions) -> Imported:
    """The tasks and simulations of a result file. Raises `BadFile` for wrong or doubled ids."""
    parts = _parts(source)
    info = decoded(source.at(*parts["info"], "`info`"), Info, where=f"{source.name}: info")
    own = _own_tasks(source, parts["tasks"])
    spans, tasks, contradictions = _survey(source, parts["simulations"], own)
    notes = tasks.notes(known_ids(options.tasks, name="the task list"), name=source.name)
    if contradictions:
        notes += (f"{len(contradictions)} rewards contradict their own checks: {contradictions}",)
    unrun = [t for t in own if t not in tasks.contents]
    if unrun:
        notes += (f"{len(unrun)} tasks of the file have no simulation: {', '.join(unrun[:5])}",)
    domain = info.environment_info.domain_name
    items = {
        task_id: _item(task_id, task, domain, f"{source.name}: task `{task_id[:60]}`")
        for task_id, task in own.items()
    }
    policy = options.policy or info.agent_info.llm or source.path.stem
    policy_id = f"{policy}@{digest(info.agent_info)[:12]}"

    def rollouts() -> Iterator[Recorded]:
        for number, span in enumerate(spans, 1):
            where = f"{source.name}: simulation {number}"
            data = source.at(*span, f"simulation {number}")
            one = decoded(data, Simulation, where=where)
            yield _recorded(one, items[str(one.task_id)], policy_id, where=where)

    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=options.name or f"{KIND}-{domain}",
            provenance=f"τ²-bench tasks of the domain {domain}, as its result files record them",
            licence="of the benchmark",
            agent="bare",
            splits={"dev": len(items)},
            metrics=("reward",),
            judge=RECORDED,
            catalogue=None,
        ),
        items=tuple(items.values()),
        rollouts=rollouts,
        repeats=max(tasks.repeats, info.num_trials if info.num_trials <= 1000 else 1),
        policy=policy,
        policy_id=policy_id,
        simulator=options.simulator or info.user_info.llm or "unnamed",
        judge_id=f"{RECORDED}@{KIND}",
        notes=notes,
    )


def _parts(source: Source) -> dict[str, Span]:
    document = whole(source)
    if kind_of(source, document) != "object":
        raise BadFile(
            f"{source.name}: a τ²-bench result file is an object",
            hint="a list of records is `tau-bench`",
        )
    found = members(source, document)
    for key, kind in (("info", "object"), ("tasks", "list"), ("simulations", "list")):
        if key not in found or kind_of(source, found[key]) != kind:
            raise BadFile(
                f"{source.name}: there is no {kind} `{key}`",
                hint="a τ²-bench result file holds `info`, `tasks` and `simulations`",
            )
    return found


def _own_tasks(source: Source, span: Span) -> dict[str, dict[str, Any]]:
    """The tasks that the file itself lists."""
    found: dict[str, dict[str, Any]] = {}
    for number, at in enumerate(elements(source, span), 1):
        where = f"{source.name}: task {number}"
        task = decoded(source.at(*at, f"task {number}"), dict[str, Any], where=where)
        task_id = name_of(task.get("id"), what="`id`", where=where)
        if task_id in found:
            raise BadFile(f"{where}: the task id `{task_id}` stands twice")
        found[task_id] = task
    return found


def _survey(
    source: Source, span: Span, own: dict[str, dict[str, Any]]
) -> tuple[list[Span], Tasks[dict[str, Any]], list[str]]:
    """Where every simulation lies, which tasks were run, and whose reward its checks contradict."""
    spans: list[Span] = []
    tasks = Tasks[dict[str, Any]]()
    contradictions: list[str] = []
    for number, at in enumerate(elements(source, span), 1):
        where = f"{source.name}: simulation {number}"
        head = decoded(source.at(*at, f"simulation {number}"), Head, where=where)
        task_id = name_of(head.task_id, what="`task_id`", where=where)
        if task_id not in own:
            tasks.findings.append(f"{where}: the task id `{task_id}` is none of the file's tasks")
            continue
        if head.reward_info is not None:
            if not 0.0 <= head.reward_info.reward <= 1.0:
                tasks.findings.append(f"{where}: the reward is not between 0 and 1")
            if recheck(head.reward_info) not in (None, head.reward_info.reward):
                contradictions.append(f"{task_id} #{head.trial}")
        tasks.add(task_id, head.trial, own[task_id], where=where)
        spans.append(at)
    tasks.settle()
    if not spans:
        raise BadFile(f"{source.name}: there is no simulation")
    return spans, tasks, contradictions


def _item(task_id: str, task: dict[str, Any], domain: str, where: str) -> Item:
    wanted = expected_writes(_actions(task, where))
    issue = _ISSUE.match(task_id)
    return Item(
        id=task_id,
        category=issue[1] if issue else category_of(wanted),
        request=Request(channel="private", prompt=_scenario(task)),
        expect=Expect(tools=wanted),
        tags=(domain,),
        origin=task,
    )


def _actions(task: dict[str, Any], where: str) -> list[tuple[str, dict[str, Any]]]:
    """The agent's own actions, each with the arguments that the benchmark compares."""
    try:
        criteria = msgspec.convert(task.get("evaluation_criteria") or {}, Criteria)
    except msgspec.ValidationError as exc:
        raise BadFile(f"{where}: evaluation_criteria: {exc}") from exc
    found = []
    for action in criteria.actions or ():
        arguments = action.arguments or {}
        if action.compare_args is not None:
            arguments = {k: v for k, v in arguments.items() if k in action.compare_args}
        if action.requestor == "assistant":
            found.append((action.name, arguments))
    return found


def _scenario(task: dict[str, Any]) -> str:
    """What the simulated user was told, as one text."""
    scenario = task.get("user_scenario")
    told = scenario.get("instructions") if isinstance(scenario, dict) else scenario
    if isinstance(told, dict):
        keys = ("reason_for_call", "known_info", "unknown_info", "task_instructions")
        told = "\n".join(str(told[k]) for k in keys if told.get(k))
    return str(told or task.get("ticket") or task.get("id"))


def _recorded(one: Simulation, item: Item, policy_id: str, *, where: str) -> Recorded:
    turns = turns_of(one.messages, where=where)
    trajectory = trajectory_of(
        turns,
        item_id=item.id,
        repeat=one.trial,
        policy_id=policy_id,
        termination=one.termination_reason,
        wall_s=one.duration,
    )
    told = one.reward_info
    facts = dialogue_findings(trajectory.steps, turns, item.expect.tools)
    return Recorded(
        item_id=item.id,
        trajectory=trajectory,
        scores={"reward": told.reward} if told else {},
        parts=parts_of(told) if told else {},
        findings=placed((*(findings_of(told) if told else ()), *facts), trajectory.steps),
        unscored=None if told else "the file holds no reward of this simulation",
    )
