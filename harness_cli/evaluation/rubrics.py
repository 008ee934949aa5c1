"""Scores that follow from an item's assertions: rubrics (TR App. E.3) and IFEval's instructions.

An assertion with a `metric` is a rubric of that metric. What a rubric could not decide stays
undecided in its metric and in AVG: it is neither passed nor left out.
"""

from collections.abc import Sequence

from harness_cli.records.item import Assertion
from harness_cli.records.verdict import AssertionResult, ItemResult

IFEVAL = "ifeval"
NATURAL = "naturalness"
"""An assertion that is a metric of METHODS §2 by itself."""
POOLED = ("instruction_strict", "instruction_loose")
"""Metrics whose mean is over the instructions of all items, not over items."""

Scores = dict[str, float | None]


def assertion_scores(assertions: Sequence[Assertion], results: Sequence[AssertionResult]) -> Scores:
    """Every score that the results of an item's assertions give; empty where they give none."""
    if not assertions:
        return {}
    given = [(a, r) for a, r in zip(assertions, results, strict=False)]
    rubrics = [(a.metric, r.passed) for a, r in given if a.metric]
    instructions = [r for a, r in given if a.type == IFEVAL]
    spoken = [r.passed for a, r in given if a.type == NATURAL and not a.metric]
    natural = {NATURAL: _share(spoken)} if spoken else {}
    return {**rubric_scores(rubrics), **instruction_scores(instructions), **natural}


def rubric_scores(rubrics: Sequence[tuple[str, bool | None]]) -> Scores:
    """Per metric the share of its rubrics that passed, and AVG over all rubrics of the item."""
    if not rubrics:
        return {}
    names = dict.fromkeys(name for name, _ in rubrics)
    scores = {name: _share([p for n, p in rubrics if n == name]) for name in names}
    return {**scores, "avg": _share([passed for _, passed in rubrics])}


def instruction_scores(results: Sequence[AssertionResult]) -> Scores:
    """IFEval's four numbers for one prompt: all instructions, share of instructions; strict, loose.

    `score` of an `ifeval` assertion is its loose result (`judges.ifeval.assertion`).
    """
    if not results:
        return {}
    loosely = [None if r.score is None else r.score == 1.0 for r in results]
    found: Scores = {}
    for name, passed in (("strict", [r.passed for r in results]), ("loose", loosely)):
        share = _share(passed)
        found[f"prompt_{name}"] = None if share is None else float(share == 1.0)
        found[f"instruction_{name}"] = share
    return found


def weight_of(metric: str, result: ItemResult) -> float:
    """What one item counts for in the mean of a metric: its instructions where they are pooled."""
    if metric not in POOLED:
        return 1.0
    return float(sum(a.type == IFEVAL for a in result.assertions))


def _share(passed: Sequence[bool | None]) -> float | None:
    if any(p is None for p in passed):
        return None
    return sum(map(bool, passed)) / len(passed)
