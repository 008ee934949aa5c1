"""What each hunk of an applied proposal did: helped, hurt, or nobody can tell.

Two kinds of evidence. *Outcomes*: of the items a hunk promised to fix, how many were fixed; of the
items that passed and that go through what the hunk touches, how many broke; each count against
what an A/A run flips by itself (one-sided binomial tail at Wilson's upper bound of the flip rate)
or, where there is none, against a sign test. An item that several edits promise or touch is no
evidence for one of them. *Leaving out*: the harness without this one hunk, on the items that moved.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from harness_cli.evaluation.by_item import PASS, collected
from harness_cli.evolution.proposal_file import hunks
from harness_cli.records.diagnosis import Edit, Op, Proposal
from harness_cli.records.noise import Noise
from harness_cli.records.verdict import ItemResult
from harness_cli.stats.distributions import binomial_pmf
from harness_cli.stats.intervals import wilson

Mark = Literal["helped", "hurt", "cannot tell"]
ALPHA = 0.05


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One item of one run, all its repeats together."""

    passed: bool
    """More than half of the repeats."""
    through: frozenset[str] = frozenset()
    """Skills loaded, tools called and hooks fired, by name."""


class Flips(msgspec.Struct, frozen=True, kw_only=True):
    """What flips between two runs of one policy in one harness: the A/A noise floor of passes."""

    runs: tuple[str, ...]
    gained: int
    """Failing → passing, counted in both directions."""
    failing: int
    lost: int
    passing: int


class Credit(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted hunk and what it did."""

    hunk: str
    path: str
    mark: Mark
    why: str
    predicted: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    """Of the predicted ones."""
    broken: tuple[str, ...] = ()
    """Passed before, go through this module, fail now."""
    shared_with: tuple[str, ...] = ()
    """Other edits that promised or touched the same items."""
    left_out: dict[str, int] | None = None
    """From a run without this hunk: items asked, earned by it, cost by it."""


def outcomes(results: Iterable[ItemResult]) -> dict[str, Outcome]:
    """Item id → its outcome over the repeats, as comparisons count it."""
    rows = list(results)
    through: dict[str, set[str]] = {}
    for result in rows:
        met = through.setdefault(result.item_id, set())
        met.update((*result.skills_loaded, *result.tools_called))
        met.update(h.partition(":")[0] for h in result.hooks_fired)
    return {
        item: Outcome(passed=paired.passed(), through=frozenset(through[item]))
        for item, paired in collected(rows)[0].items()
    }


def flips_of(noise: Noise) -> Flips | None:
    """The flips that a measured noise floor stands for, in both directions; None without passes."""
    found = next((m for m in noise.metrics if m.metric == PASS), None)
    if found is None:
        return None
    flips = round((1 - found.tie_rate) * found.items)
    failing = round(2 * found.items * (1 - found.mean))
    return Flips(
        runs=noise.runs,
        gained=flips,
        failing=failing,
        lost=flips,
        passing=2 * found.items - failing,
    )


def credit(
    proposal: Proposal,
    before: Mapping[str, Outcome],
    after: Mapping[str, Outcome],
    noise: Flips | None,
) -> tuple[Credit, ...]:
    """Every accepted hunk with its mark, in the order of the proposal."""
    taken = [x for x in hunks(proposal) if x[2].decision.state in ("accept", "modify")]
    edits = {edit.id: edit for _, edit, _ in taken}
    ops = {e: [op for _, edit, op in taken if edit.id == e] for e in edits}
    promised = {e: _promised(edit, before, after) for e, edit in edits.items()}
    touched = {e: _broken(ops[e], before, after) for e in edits}
    found = []
    for name, edit, op in taken:
        others = [e for e in edits if e != edit.id]
        fixed = frozenset(i for i in promised[edit.id] if after[i].passed)
        broken = _broken([op], before, after)
        counts = _Counts(
            len(fixed.difference(*(promised[e] for e in others))),
            len(promised[edit.id]),
            len(broken.difference(*(touched[e] for e in others))),
            len(_passing(op, before, after)),
        )
        mark, why = _mark(counts, noise)
        shared = sorted(e for e in others if promised[e] & fixed or touched[e] & broken)
        if len(ops[edit.id]) > 1:
            why += f"; together with the other hunks of `{edit.id}`"
        if shared:
            why += f"; items shared with {', '.join(shared)} are not counted"
        found.append(
            Credit(
                hunk=name,
                path=op.path,
                mark=mark,
                why=why,
                predicted=edit.predicted_fixes,
                fixed=tuple(sorted(fixed)),
                broken=tuple(sorted(broken)),
                shared_with=tuple(shared),
            )
        )
    return tuple(found)


def left_out(
    found: Credit,
    with_it: Mapping[str, Outcome],
    without: Mapping[str, Outcome],
    noise: Flips | None,
) -> Credit:
    """The mark by leaving a hunk out: what passes with it only, and what passes without it only."""
    both = with_it.keys() & without.keys()
    earned = sum(with_it[i].passed and not without[i].passed for i in both)
    cost = sum(not with_it[i].passed and without[i].passed for i in both)
    counts = _Counts(earned, sum(not without[i].passed for i in both), cost, 0)
    counts.at_risk = len(both) - counts.could
    mark, why = _mark(counts, noise)
    return msgspec.structs.replace(
        found,
        mark=mark,
        why=f"left out on {len(both)} items: {why}",
        left_out={"items": len(both), "earned": earned, "cost": cost},
    )


class _Counts(msgspec.Struct):
    """`fixed` of `could` failing items; `broken` of `at_risk` passing ones."""

    fixed: int
    could: int
    broken: int
    at_risk: int


def _mark(seen: _Counts, noise: Flips | None) -> tuple[Mark, str]:
    told = f"fixed {seen.fixed} of {seen.could}, broke {seen.broken} of {seen.at_risk}"
    if noise is None:
        n = seen.fixed + seen.broken
        helps, hurts = _tail(seen.fixed, n, 0.5), _tail(seen.broken, n, 0.5)
        against = "by chance in a sign test (no A/A run is there)"
    else:
        helps = _tail(seen.fixed, seen.could, _ceiling(noise.gained, noise.failing))
        hurts = _tail(seen.broken, seen.at_risk, _ceiling(noise.lost, noise.passing))
        against = f"in an A/A run ({noise.gained} flips)"
    if helps < ALPHA <= hurts or (helps < ALPHA and seen.fixed > 2 * seen.broken):
        return "helped", f"{told}; so many fixes come {against} with p {helps:.3f}"
    if hurts < ALPHA <= helps or (hurts < ALPHA and seen.broken > 2 * seen.fixed):
        return "hurt", f"{told}; so many breaks come {against} with p {hurts:.3f}"
    if helps < ALPHA:
        return "cannot tell", f"{told}: both beyond noise"
    return "cannot tell", f"{told}: not told from what comes {against}"


def _tail(k: int, n: int, rate: float) -> float:
    """P(X ≥ k) for X ~ Binomial(n, rate); 1 where nothing was seen."""
    return 1.0 if k == 0 else min(1.0, sum(binomial_pmf(i, n, rate) for i in range(k, n + 1)))


def _ceiling(k: int, n: int) -> float:
    """The largest flip rate that the A/A counts leave plausible; 1 where they say nothing."""
    return wilson(k, n, level=1 - 2 * ALPHA).high if n else 1.0


def _promised(
    edit: Edit, before: Mapping[str, Outcome], after: Mapping[str, Outcome]
) -> frozenset[str]:
    """Promised items that were measured twice and failed before."""
    return frozenset(
        i for i in edit.predicted_fixes if i in before and i in after and not before[i].passed
    )


def _passing(op: Op, before: Mapping[str, Outcome], after: Mapping[str, Outcome]) -> set[str]:
    """Items that passed and go, before or after, through what an operation touches."""
    name = _module_name(op.path)
    return {
        i
        for i in before.keys() & after.keys()
        if before[i].passed
        and (name is None or name in before[i].through or name in after[i].through)
    }


def _broken(
    ops: Sequence[Op], before: Mapping[str, Outcome], after: Mapping[str, Outcome]
) -> frozenset[str]:
    return frozenset(i for op in ops for i in _passing(op, before, after) if not after[i].passed)


def _module_name(path: str) -> str | None:
    """The skill, tool or hook of a path; None for what every item goes through (prompts)."""
    parts = path.split("/")
    if parts[0] == "skills" and len(parts) > 1:
        return parts[1]
    if parts[0] in ("tools", "hooks") and len(parts) > 1:
        return parts[-1].removesuffix(".yaml")
    return None
