"""What a τ-bench dialogue shows beside its reward: too much done, transfers, a faulty simulator.

Skipped calls and wrong arguments are seen by the diagnosis itself, from the item's expectations.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from harness_cli.evaluation.imports.conversation import Turn
from harness_cli.records.item import ExpectedTool
from harness_cli.records.trajectory import Step, ToolCall
from harness_cli.records.verdict import Finding

TRANSFER = "transfer_to_human_agents"
STOP, HANDED, LEFT = "###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"
_READING = re.compile(
    r"^(?:get|find|search|list|check|calculate|think|look_?up|can|show|read|view|query)(?:_|$)"
)
_ASKS = re.compile(r"\b(?:confirm|proceed|go ahead|yes\b|shall i|would you like me)", re.IGNORECASE)
_OFFERS = re.compile(r"transfer|human agent|representative|specialist", re.IGNORECASE)
_AGREES = re.compile(
    r"\b(?:yes|yeah|confirm(?:ed)?|please (?:proceed|go ahead)|go ahead|proceed|that'?s correct)\b",
    re.IGNORECASE,
)


def changes_something(tool: str) -> bool:
    """The tool writes: by its name, since neither file format says so. A transfer counts."""
    return _READING.match(tool) is None


def expected_writes(actions: Sequence[tuple[str, dict[str, Any]]]) -> tuple[ExpectedTool, ...]:
    """The calls that a task needs for its outcome; how a fact was looked up is left free."""
    return tuple(
        ExpectedTool(name=name, arguments=arguments)
        for name, arguments in actions
        if changes_something(name)
    )


def category_of(wanted: Sequence[ExpectedTool]) -> str:
    """Tasks are told apart by what they change first."""
    return wanted[0].name if wanted else "nothing-to-change"


def findings_of(
    steps: Sequence[Step], turns: Sequence[Turn], wanted: Sequence[ExpectedTool]
) -> Iterator[Finding]:
    """Every structural fact of one dialogue, each with the step where it shows."""
    yield from _over_actions(steps, wanted)
    yield from _simulator(steps, turns, wanted)


def placed(findings: Iterable[Finding], steps: Sequence[Step]) -> tuple[Finding, ...]:
    """What is about the outcome shows in the last step."""
    last = steps[-1].index if steps else None
    return tuple(msgspec.structs.replace(f, step=last) if f.step is None else f for f in findings)


def _over_actions(steps: Sequence[Step], wanted: Sequence[ExpectedTool]) -> Iterator[Finding]:
    names = {tool.name for tool in wanted}
    for step in steps:
        for call in step.calls:
            if not changes_something(call.name) or call.name in names or not call.result.ok:
                continue
            transfer = call.name == TRANSFER
            yield Finding(
                kind="needless_transfer" if transfer else "over_action",
                detail=(
                    "the user was handed to a person and the task does not ask for it"
                    if transfer
                    else f"`{call.name}` changed something that the task does not ask for"
                ),
                quote=call.arguments_raw[:200],
                evidence=f"the task changes: {', '.join(sorted(names)) or 'nothing'}",
                step=step.index,
            )


def _simulator(
    steps: Sequence[Step], turns: Sequence[Turn], wanted: Sequence[ExpectedTool]
) -> Iterator[Finding]:
    """Ends of a dialogue that the user simulator brought about against its own instructions."""
    users = [t for t in turns if t.role == "user" and t.content]
    said = users[-1].content or "" if users else ""
    last = steps[-1].index if steps else None
    if LEFT in said:
        yield Finding(
            kind="simulator_out_of_scope",
            detail="the user simulator had no instruction for what it was asked",
            quote=said[-200:],
            step=last,
        )
    asked = (steps[-1].reply.content or "") if steps else ""
    if HANDED in said and not any(c.name == TRANSFER for s in steps for c in s.calls):
        yield _handed(said, asked, last)
    left = [tool.name for tool in wanted if not any(_did(tool, s.calls) for s in steps)]
    by_user = STOP in said and bool(turns) and turns[-1].role == "user"
    if by_user and left and _ASKS.search(asked) and _AGREES.search(said):
        yield Finding(
            kind="simulator_stopped_early",
            detail=f"the user agreed and hung up before `{left[0]}` could be called",
            quote=said[-200:],
            step=last,
        )


def _handed(said: str, asked: str, step: int | None) -> Finding:
    """A transfer that no tool made: offered in words, or the simulator's own idea."""
    if _OFFERS.search(asked):
        return Finding(
            kind="needless_transfer",
            detail="a transfer was offered in words, which ended the dialogue",
            quote=asked[-200:],
            step=step,
        )
    return Finding(
        kind="simulator_transfer",
        detail="the user simulator called itself transferred; nobody offered it",
        quote=said[-200:],
        step=step,
    )


def _did(tool: ExpectedTool, calls: Sequence[ToolCall]) -> bool:
    return any(
        call.name == tool.name
        and call.result.ok
        and call.arguments is not None
        and all(call.arguments.get(k) == v for k, v in tool.arguments.items())
        for call in calls
    )
