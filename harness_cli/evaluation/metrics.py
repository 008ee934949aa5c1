"""Metrics of METHODS §2 that need no judge: from an item's expectations and a trajectory.

A metric that an item does not ask for is absent, never 0 or 1. Builtin tools (`load_skill`,
`refuse`) are no tool calls in the sense of these metrics.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from harness_cli.evaluation.rubrics import assertion_scores
from harness_cli.records.item import ExpectedTool, Fact, Item
from harness_cli.records.trajectory import ToolCall, ToolErrorKind, Trajectory
from harness_cli.records.verdict import AssertionResult

BUILTIN = frozenset({"load_skill", "refuse"})
UNSOUND = (ToolErrorKind.INVALID_ARGUMENTS, ToolErrorKind.MALFORMED, ToolErrorKind.DENIED)
"""Tool errors that are the caller's own: a time-out or an outage is not irrational."""
ATTAINMENT_S = 15.0
"""The end-to-end bound of attainment (TR §4.3)."""


def item_scores(
    item: Item,
    trajectory: Trajectory,
    judged: Mapping[str, float | None],
    assertions: Sequence[AssertionResult] = (),
) -> dict[str, float | None]:
    """Every score of one rollout: of rubrics, the judge's, AVG of them, and those computed here.

    Where an item has rubrics, their metrics and their AVG are what counts (METHODS §2).
    """
    scores: dict[str, float | None] = {**judged, **assertion_scores(item.assert_, assertions)}
    if "accuracy" in scores or "effectiveness" in scores:
        scores.setdefault("avg", average(scores.get("accuracy"), scores.get("effectiveness")))
    for name, value in (
        ("tc", tools_called(item, trajectory)),
        ("tco", tools_in_order(item, trajectory)),
        ("rc", response_contains(item, trajectory)),
        ("adr", addresses(scores.get("effectiveness"))),
        ("skill_selection", skill_selection(item, trajectory)),
        ("tool_rationality", tool_rationality(item, trajectory)),
    ):
        if value is not None:
            scores.setdefault(name, value)
    return scores


def average(accuracy: float | None, effectiveness: float | None) -> float | None:
    """AVG: mean of the two, per item, before rounding; None when either is unscored."""
    if accuracy is None or effectiveness is None:
        return None
    return (accuracy + effectiveness) / 2


def tools_called(item: Item, trajectory: Trajectory) -> float | None:
    """TC: 1 when every expected tool was called, whatever came back."""
    if not item.expect.tools:
        return None
    called = {call.name for call in trajectory.calls}
    return float(all(tool.name in called for tool in item.expect.tools))


def tools_in_order(item: Item, trajectory: Trajectory) -> float | None:
    """TCO: 1 when the calls contain the required order as a subsequence."""
    if not item.expect.order:
        return None
    names = iter(call.name for call in trajectory.calls)
    return float(all(wanted in names for wanted in item.expect.order))


def response_contains(item: Item, trajectory: Trajectory) -> float | None:
    """RC: 1 when the reply carries every required fact, in any of its accepted wordings."""
    if not item.expect.facts:
        return None
    reply = trajectory.reply.casefold()
    return float(all(_states(reply, fact) for fact in item.expect.facts))


def addresses(effectiveness: float | None) -> float | None:
    """ADR as far as it follows from Effectiveness: 1 when any of what is asked is covered."""
    return None if effectiveness is None else float(effectiveness > 0)


def skill_selection(item: Item, trajectory: Trajectory) -> float | None:
    """F1 of the loaded Skills against the expected ones."""
    if not item.expect.skills:
        return None
    expected, loaded = set(item.expect.skills), set(trajectory.skills_loaded)
    both = len(expected & loaded)
    return 2 * both / (len(expected) + len(loaded))


def tool_rationality(item: Item, trajectory: Trajectory) -> float | None:
    """Sound calls over all calls and missing ones, in [0, 1]; 1 for rightly calling nothing.

    A call is unsound when it repeats an earlier one, when its arguments were refused, or when it
    calls an expected tool with other arguments than the expected ones.
    """
    if trajectory.agent == "bare":
        return None
    calls = [c for c in trajectory.calls if c.executor != "builtin" and c.name not in BUILTIN]
    if not calls and not item.expect.tools:
        return 1.0
    seen: list[tuple[str, Any]] = []
    sound = 0
    for call in calls:
        key = (call.name, call.arguments)
        sound += key not in seen and _sound(call, item.expect.tools)
        seen.append(key)
    called = {call.name for call in calls}
    missing = sum(tool.name not in called for tool in item.expect.tools)
    return sound / (len(calls) + missing)


def attainment(walls_s: Sequence[float | None], *, bound_s: float = ATTAINMENT_S) -> float | None:
    """Share of all measured requests within the bound; None in `walls_s` is a miss (TR App. F)."""
    if not walls_s:
        return None
    return sum(wall is not None and wall <= bound_s for wall in walls_s) / len(walls_s)


def decode_tps(output_tokens: int | None, latency_s: float, ttft_s: float | None) -> float | None:
    """Tokens per second of one call: completion tokens / (call latency - TTFT) (TR App. F)."""
    if output_tokens is None or ttft_s is None or latency_s <= ttft_s:
        return None
    return output_tokens / (latency_s - ttft_s)


def mean_and_median(values: Sequence[float]) -> dict[str, float | int | None]:
    """Both, since the mean of decode TPS alone misleads; None over nothing."""
    if not values:
        return {"mean": None, "median": None, "n": 0}
    return {"mean": fmean(values), "median": median(values), "n": len(values)}


def _states(reply: str, fact: Fact) -> bool:
    value = fact.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return any(_stands(form.casefold(), reply) for form in (*fact.forms, str(value)) if form)


def _stands(words: str, reply: str) -> bool:
    """The words are in the reply, and not as a piece of a longer number."""
    at = reply.find(words)
    while at >= 0:
        end = at + len(words)
        if not (
            (words[0].isdigit() and _ends_in_digit(reply[max(at - 2, 0) : at]))
            or (words[-1].isdigit() and _ends_in_digit(reply[end : end + 2][::-1]))
        ):
            return True
        at = reply.find(words, at + 1)
    return False


def _ends_in_digit(two: str) -> bool:
    """Of the two characters beside a number: the nearer is a digit, or one behind a point."""
    return two[-1:].isdecimal() or (two[-1:] in (".", ",") and two[:-1].isdecimal())


def _sound(call: ToolCall, expected: Sequence[ExpectedTool]) -> bool:
    if call.arguments is None or call.result.error in UNSOUND:
        return False
    wanted = [tool.arguments for tool in expected if tool.name == call.name]
    given = call.arguments
    return not wanted or any(all(given.get(k) == v for k, v in w.items()) for w in wanted)
