"""The journal of `harness evolve`: what was done, what a person allowed and chose.

`.harness/evolve.jsonl`, append-only and synced: where the loop stands is a fold over it, so a
killed process goes on at the step it was in.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from harness_cli.records.reader import parse_json
from harness_cli.store.appending import append_durably

FILE = Path(".harness") / "evolve.jsonl"
Kind = Literal[
    "begun", "authorised", "evaluated", "proposed", "nothing", "applied", "rejected", "chosen"
]
Choice = Literal["another", "back", "promote", "stop"]
Step = Literal["evaluate", "propose", "review", "choose", "ended"]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line. Which fields matter depends on `kind`."""

    kind: Kind
    at: str
    by: str = ""
    reason: str = ""
    evalset: str = ""
    split: str = ""
    policy: str = ""
    limit: int | None = None
    trials: int = 0
    """Rollouts that each proposal may be tried with, out of what is authorised."""
    commit: str = ""
    branch: str = ""
    run: str = ""
    items: int = 0
    """Rollouts that were authorised, or spent."""
    proposal: str = ""
    file: str = ""
    choice: Choice | None = None


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A harness of the loop and, once it is measured, its run."""

    number: int
    commit: str
    branch: str = ""
    run: str = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where the loop is."""

    begun: Event
    step: Step
    now: Stage
    selected: Stage
    """What a person went on from, or goes back to."""
    stages: int = 0
    allowance: int = 0
    """Rollouts that may still be spent."""
    file: str = ""
    choice: Choice | None = None


def append(root: Path, event: Event) -> None:
    """One event, durable when this returns. A line cut short by a kill is taken away first."""
    append_durably(root / FILE, msgspec.json.encode(event) + b"\n", mend=True)


def read(root: Path) -> list[Event]:
    """Every whole line. Raises `BadFile` with its number for one that is no event."""
    path = root / FILE
    if not path.exists():
        return []
    data = path.read_bytes()
    lines = data[: data.rfind(b"\n") + 1].splitlines()
    return [parse_json(line, Event, name=f"{FILE}:{n}") for n, line in enumerate(lines, 1)]


def fold(events: Iterable[Event]) -> Standing | None:
    """Where the events lead; None before the first."""
    standing: Standing | None = None
    for event in events:
        if event.kind == "begun":
            first = Stage(number=0, commit=event.commit)
            standing = Standing(begun=event, step="evaluate", now=first, selected=first)
        elif standing is not None:
            standing = _after(standing, event)
    return standing


def _after(old: Standing, event: Event) -> Standing:
    change = msgspec.structs.replace
    match event.kind:
        case "authorised":
            return change(old, allowance=old.allowance + event.items)
        case "evaluated":
            now = change(old.now, run=event.run)
            left = max(0, old.allowance - event.items)
            if now.number == 0:
                return change(old, step="propose", now=now, selected=now, allowance=left)
            return change(old, step="choose", now=now, allowance=left)
        case "proposed":
            left = max(0, old.allowance - event.items)
            return change(old, step="review", file=event.file, allowance=left)
        case "applied":
            number = old.stages + 1
            now = Stage(number=number, commit=event.commit, branch=event.branch)
            return change(old, step="evaluate", now=now, stages=number)
        case "chosen":
            return _chosen(old, event)
        case _:  # nothing to propose, or every hunk rejected
            left = max(0, old.allowance - event.items)
            return change(old, step="choose", allowance=left)


def _chosen(old: Standing, event: Event) -> Standing:
    change = msgspec.structs.replace
    if event.choice == "another":
        return change(old, step="propose", selected=old.now, choice=None)
    if event.choice == "back":
        return change(old, step="propose", now=old.selected, choice=None)
    return change(old, step="ended", choice=event.choice)
