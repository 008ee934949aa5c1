"""τ-bench result files: a list of `{task_id, trial, reward, info, traj}` in OpenAI messages."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.conversation import last_words, steps_of, tail_of
from harness_cli.evaluation.imports.elements import Span, elements, kind_of, whole
from harness_cli.evaluation.imports.imported import RECORDED, Imported, ImportOptions, Recorded
from harness_cli.evaluation.imports.openai_messages import turns_of
from harness_cli.evaluation.imports.source import Source, decoded, name_of
from harness_cli.evaluation.imports.tasks import Tasks, known_ids
from harness_cli.evaluation.imports.tau_facts import (
    category_of,
    expected_writes,
    findings_of,
    placed,
)
from harness_cli.records.item import EvalsetHeader, Expect, Item
from harness_cli.records.request import Request
from harness_cli.records.trajectory import StopReason, Trajectory
from harness_cli.records.verdict import Finding

KIND = "tau-bench"
_DOMAIN = re.compile(r"#\s*([A-Za-z]+) agent policy", re.IGNORECASE)


class Action(msgspec.Struct, frozen=True):
    """A call the task's own solution makes."""

    name: str
    kwargs: dict[str, Any] = {}


class Task(msgspec.Struct, frozen=True):
    """The task as every trial of it carries it."""

    instruction: str
    user_id: str = ""
    actions: tuple[Action, ...] = ()
    outputs: tuple[str, ...] = ()


class RewardInfo(msgspec.Struct, frozen=True):
    """How the reward came about; absent where the dialogue never ended."""

    reward: float
    info: dict[str, Any] = {}


class Info(msgspec.Struct, frozen=True):
    """`info` of a record."""

    task: Task | None = None
    """Absent where the trial broke: then `error` says why."""
    error: str | None = None
    source: str | None = None
    reward_info: RewardInfo | None = None
    user_cost: float | None = None


class Head(msgspec.Struct, frozen=True):
    """A record without its dialogue."""

    task_id: str | int
    reward: float
    info: Info
    trial: int = 0


class Record(Head, frozen=True):
    """A whole record."""

    traj: tuple[dict[str, Any], ...] = ()


def read(source: Source, options: ImportOptions) -> Imported:
    """The tasks and trials of a result file. Raises `BadFile` for wrong, doubled, alien task ids.

    The model is not in the file: its name is the option's, else the file's.
    """
    spans, tasks, domain = _survey(source)
    notes = tasks.notes(known_ids(options.tasks, name="the task list"), name=source.name)
    policy = options.policy or source.path.stem
    if not options.policy:
        notes += (f"the file names no model: its policy is called `{policy}` after the file",)
    simulator = options.simulator or "unnamed"
    name = options.name or f"{KIND}-{domain}"
    policy_id = f"{policy}@{RECORDED}"
    items = {item_id: _item(item_id, task, domain) for item_id, task in tasks.contents.items()}

    def rollouts() -> Iterator[Recorded]:
        for number, span in enumerate(spans, 1):
            where = f"{source.name}: record {number}"
            record = decoded(source.at(*span, f"record {number}"), Record, where=where)
            yield _recorded(record, items[str(record.task_id)], policy_id, where=where)

    return Imported(
        kind=KIND,
        header=EvalsetHeader(
            name=name,
            provenance=f"τ-bench tasks of the domain {domain}, as its result files record them",
            licence="of the benchmark",
            agent="bare",
            splits={"dev": len(items)},
            metrics=("reward",),
            judge=RECORDED,
            catalogue=None,
        ),
        items=tuple(items.values()),
        rollouts=rollouts,
        repeats=tasks.repeats,
        policy=policy,
        policy_id=policy_id,
        simulator=simulator,
        judge_id=f"{RECORDED}@{KIND}",
        notes=notes,
    )


def _survey(source: Source) -> tuple[list[Span], Tasks[Task], str]:
    """Where every record lies, the tasks they name, and the domain of the first one."""
    document = whole(source)
    if kind_of(source, document) != "list":
        raise BadFile(
            f"{source.name}: a τ-bench result file is a list of records",
            hint="`harness evalset import --help` names the other kinds",
        )
    spans, tasks, broken = [], Tasks[Task](), []
    for number, span in enumerate(elements(source, document), 1):
        where = f"{source.name}: record {number}"
        head = decoded(source.at(*span, f"record {number}"), Head, where=where)
        task_id = name_of(head.task_id, what="`task_id`", where=where)
        _checked_reward(head, where)
        if head.info.task is None:
            if head.info.error is None:
                raise BadFile(f"{where}: `info` holds no `task`", hint="is the file whole?")
            broken.append((task_id, head.trial, where))
        else:
            tasks.add(task_id, head.trial, head.info.task, where=where)
        spans.append(span)
    if not spans:
        raise BadFile(f"{source.name}: the list holds no record")
    for task_id, trial, where in broken:  # the task is known from its other trials, if any
        known = tasks.contents.get(task_id, Task(instruction=f"task {task_id}: not in the file"))
        tasks.add(task_id, trial, known, where=where)
    tasks.settle()
    first = decoded(source.at(*spans[0], "record 1"), Record, where=f"{source.name}: record 1")
    found = _DOMAIN.search(str(first.traj[0].get("content"))) if first.traj else None
    return spans, tasks, found[1].lower() if found else "unnamed"


def _checked_reward(head: Head, where: str) -> None:
    if not 0.0 <= head.reward <= 1.0:
        raise BadFile(f"{where}: the reward {head.reward:g} is not between 0 and 1")
    told = head.info.reward_info
    if told is not None and told.reward != head.reward:
        raise BadFile(
            f"{where}: the reward is {head.reward:g}, its `reward_info` says {told.reward:g}",
            hint="the record was changed: take the original file",
        )


def _item(item_id: str, task: Task, domain: str) -> Item:
    wanted = expected_writes([(a.name, a.kwargs) for a in task.actions])
    return Item(
        id=item_id,
        category=category_of(wanted),
        request=Request(channel="private", prompt=task.instruction),
        expect=Expect(tools=wanted),
        tags=(domain,),
        origin=msgspec.to_builtins(task),
    )


def _recorded(record: Record, item: Item, policy_id: str, *, where: str) -> Recorded:
    turns = turns_of(record.traj, where=where)
    steps = steps_of(turns, policy=policy_id)
    ended = record.info.reward_info is not None
    cut = record.info.error or "the benchmark cut the dialogue at its most steps"
    findings = (*_outputs(record.info), *findings_of(steps, turns, item.expect.tools))
    return Recorded(
        item_id=item.id,
        trajectory=Trajectory(
            request_id=f"{item.id}#{record.trial}",
            item_id=item.id,
            repeat=record.trial,
            agent="bare",
            policy_id=policy_id,
            steps=steps,
            reply=last_words(turns),
            tail=tail_of(turns),
            channel="private",
            stop=StopReason.COMPLETED if ended else StopReason.MAX_ROUNDS,
            error=None if ended else f"recorded: {cut[:300]}",
        ),
        scores={"reward": record.reward},
        parts=_parts(record.info),
        findings=placed(findings, steps),
    )


def _parts(info: Info) -> dict[str, float | None]:
    """Actions and outputs, as far as the benchmark looked at them: it stops at the first 0."""
    told = info.reward_info.info if info.reward_info else {}
    return {
        name: float(value)
        for name, key in (("db", "r_actions"), ("communicate", "r_outputs"))
        if isinstance(value := told.get(key), int | float)
    }


def _outputs(info: Info) -> Iterator[Finding]:
    told = info.reward_info.info if info.reward_info else {}
    if told.get("r_actions") == 0:
        yield Finding(kind="wrong_end_state", detail="the database is not as the task leaves it")
    outputs = told.get("outputs")
    for text, said in outputs.items() if isinstance(outputs, dict) else ():
        if said is False:
            yield Finding(kind="not_communicated", detail=f"`{text}` was never said to the user")
