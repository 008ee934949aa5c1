"""Tool rationality: is the chain of calls sound and economical (TR §3.3: "logically sound and
efficiently structured (no redundant calls, correct parameter usage)").

    score = needed · (1 − wasted / calls) · order

`needed` is the mean over the tools an item needs: 1 when it was called with the arguments that must
match (whatever the service then answered: its failure is not the policy's), ½ with others, 1 as
well when another call's result holds the facts it was needed for. `wasted` counts calls that were
made again after they had succeeded, had invalid arguments or an unknown name, or changed the room
twice in one answer, each as 1, and calls that nothing asked for as ½. `order` is ½ where tools that
must follow each other did not.
"""

from collections.abc import Iterator, Sequence

from harness_cli.judges.rewards.dimension import Reward, note, scored
from harness_cli.judges.trajectory_checks import in_order, included
from harness_cli.records.canonical import canonical_json
from harness_cli.records.item import Expect, ExpectedTool, Fact, Item
from harness_cli.records.trajectory import ToolCall, ToolErrorKind, Trajectory
from harness_cli.records.verdict import Finding

NAME = "tool_rationality"
BUILT_IN = ("load_skill", "refuse")
CHANGING = ("change_presentation_order",)
"""Tools that change the room: one of them in one answer is enough."""
UNASKED = 0.5
OUT_OF_ORDER = 0.5
REFUSED = (ToolErrorKind.INVALID_ARGUMENTS, ToolErrorKind.NOT_FOUND)


def tool_rationality(item: Item, trajectory: Trajectory) -> Reward:
    """The reward of one trajectory, in the names of the state the item is written in."""
    calls = [c for c in trajectory.calls if c.name not in BUILT_IN]
    needed, lacking = _needed(item.expect, calls)
    wasted, waste = _wasted(item.expect, trajectory, calls)
    score = needed * (1 - wasted / len(calls) if calls else 1.0)
    evidence = [*lacking, *waste]
    order = item.expect.order
    if order and not in_order([{"name": n} for n in order], [c.name for c in calls]):
        score *= OUT_OF_ORDER
        evidence.append(note(NAME, f"not in this order: {' → '.join(order)}"))
    if not evidence:
        made = ", ".join(c.name for c in calls) or "no call"
        evidence = [note(NAME, f"{made}: as needed")]
    return scored(NAME, score, evidence)


def _needed(expect: Expect, calls: Sequence[ToolCall]) -> tuple[float, list[Finding]]:
    tools = [t for t in expect.tools if t.name not in BUILT_IN]
    if not tools:
        return 1.0, []
    total, found = 0.0, []
    for tool in tools:
        share, why = _met(tool, expect.facts, calls)
        total += share
        if share < 1:
            found.append(note(NAME, why))
    return total / len(tools), found


def _met(tool: ExpectedTool, facts: Sequence[Fact], calls: Sequence[ToolCall]) -> tuple[float, str]:
    named = [c for c in calls if c.name == tool.name and c.arguments is not None]
    if any(included(tool.arguments, c.arguments) for c in named):
        return 1.0, ""
    if facts and all(_told(fact, calls) for fact in facts):
        return 1.0, ""
    if named:
        wanted = canonical_json(tool.arguments).decode()
        return 0.5, f"`{tool.name}` was called, but not with {wanted}: {named[-1].arguments_raw}"
    return 0.0, f"`{tool.name}` was needed and not called"


def _told(fact: Fact, calls: Sequence[ToolCall]) -> bool:
    """A successful result speaks of the fact's product and holds its value."""
    value = f"{fact.value}"
    return any(
        value in c.result.content and (fact.product is None or fact.product in c.result.content)
        for c in calls
        if c.result.ok
    )


def _wasted(
    expect: Expect, trajectory: Trajectory, calls: Sequence[ToolCall]
) -> tuple[float, list[Finding]]:
    found: list[Finding] = []
    weight = 0.0
    counted: set[str] = set()
    for call, why, share in _waste(expect, trajectory, calls):
        if call.id not in counted:
            counted.add(call.id)
            weight += share
            found.append(note(NAME, f"`{call.name}` {why}", quote="", evidence=call.arguments_raw))
    return weight, found


def _waste(
    expect: Expect, trajectory: Trajectory, calls: Sequence[ToolCall]
) -> Iterator[tuple[ToolCall, str, float]]:
    done: set[str] = set()
    offered = set(trajectory.tools_offered)
    wanted = {t.name for t in expect.tools}
    for call in calls:
        key = f"{call.name}:{canonical_json(call.arguments).decode()}"
        if offered and call.name not in offered:
            yield call, "is no tool that was offered", 1.0
        elif call.arguments is None or call.result.error is ToolErrorKind.INVALID_ARGUMENTS:
            yield call, "had arguments that could not be used", 1.0
        elif key in done:
            yield call, "was made again though its answer was there", 1.0
        elif call.name not in wanted and not _useful(call, expect.facts):
            yield call, "looked up what nobody asked for", UNASKED
        if call.result.ok:
            done.add(key)
    for step in trajectory.steps:
        yield from ((c, "changed the room twice in one answer", 1.0) for c in _changes(step.calls))


def _useful(call: ToolCall, facts: Sequence[Fact]) -> bool:
    return any(_told(fact, [call]) for fact in facts)


def _changes(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    return [c for c in calls if c.name in CHANGING][1:]
