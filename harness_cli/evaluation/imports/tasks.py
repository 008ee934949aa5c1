"""Task ids of result files: each names one task, each trial of it stands once."""

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from harness_cli.errors import BadFile
from harness_cli.records.reader import parse_json

T = TypeVar("T")
SHOWN = 10
MOST_TRIALS = 1_000


@dataclass(slots=True)
class Tasks(Generic[T]):
    """The tasks of one file by id, and which trials of each there are."""

    contents: dict[str, T] = field(default_factory=dict)
    trials: dict[str, dict[int, str]] = field(default_factory=dict)
    """Task id → trial → where it stands."""
    findings: list[str] = field(default_factory=list)

    def add(self, task_id: str, trial: int, content: T, *, where: str) -> None:
        """One trial. What is wrong with it is kept for `settle`."""
        if not 0 <= trial < MOST_TRIALS:
            self.findings.append(f"{where}: trial {trial} is not between 0 and {MOST_TRIALS - 1}")
            return
        if self.contents.setdefault(task_id, content) != content:
            other = next(iter(self.trials[task_id].values()))
            self.findings.append(
                f"{where}: the task id `{task_id}` is wrong: its task is another than in {other}"
            )
        met = self.trials.setdefault(task_id, {})
        if trial in met:
            self.findings.append(
                f"{where}: trial {trial} of task `{task_id}` stands in {met[trial]} already"
            )
        met[trial] = where

    def settle(self) -> None:
        """Raise `BadFile` with everything that `add` found."""
        if self.findings:
            more = len(self.findings) - SHOWN
            tail = [f"… and {more} more"] if more > 0 else []
            raise BadFile(
                "\n".join([*self.findings[:SHOWN], *tail]),
                hint="correct the ids, or take the file as the benchmark wrote it",
            )

    @property
    def repeats(self) -> int:
        """Trials of the task that has most."""
        return max((max(met) + 1 for met in self.trials.values()), default=1)

    def notes(self, known: frozenset[str] | None, *, name: str) -> tuple[str, ...]:
        """What is missing of the trials and of the task list. Raises `BadFile` for alien ids."""
        notes = []
        if known is not None:
            alien = [t for t in self.contents if t not in known]
            if alien:
                raise BadFile(
                    f"{name}: {len(alien)} task ids are not in the task list: {_some(alien)}",
                    hint="is it the list of this domain and version?",
                )
            left = sorted(known - self.contents.keys())
            if left:
                notes.append(f"{len(left)} tasks of the list were not run: {_some(left)}")
        short = [t for t, met in self.trials.items() if len(met) < self.repeats]
        if short:
            notes.append(f"{len(short)} tasks lack trials (of {self.repeats}): {_some(short)}")
        same: dict[str, str] = {}
        for task_id, content in self.contents.items():
            first = same.setdefault(repr(content), task_id)
            if first != task_id:
                notes.append(f"tasks `{first}` and `{task_id}` are one task: is an id wrong?")
        return tuple(notes)


def known_ids(text: str | None, *, name: str) -> frozenset[str] | None:
    """The ids of a task list: JSON of tasks with `id`, of ids, or a split file's lists of ids."""
    if text is None:
        return None
    value: Any = parse_json(text, Any, name=name)
    if isinstance(value, dict):
        splits = [i for ids in value.values() if isinstance(ids, list) for i in ids]
        value = value.get("tasks", splits)
    if not isinstance(value, list):
        raise BadFile(f"{name}: a list of tasks, or of task ids, is needed")
    ids = [t.get("id", t.get("task_id")) if isinstance(t, dict) else t for t in value]
    if not ids or any(isinstance(i, bool) or not isinstance(i, str | int) for i in ids):
        raise BadFile(f"{name}: every task needs an `id`")
    names = [str(i) for i in ids]
    if not isinstance(value[0], dict):
        return frozenset(names)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise BadFile(f"{name}: the task id `{twice[0]}` stands twice")
    return frozenset(names)


def _some(names: list[str]) -> str:
    shown = ", ".join(f"`{n}`" for n in names[:SHOWN])
    return shown + (f" … ({len(names)} in all)" if len(names) > SHOWN else "")
