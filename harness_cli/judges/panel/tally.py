"""Votes into one verdict: majority, what follows a split, the quorum. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness_cli.judges.outcome import Outcome
from harness_cli.judges.panel.submission import GRADES
from harness_cli.records.verdict import Finding, Vote


@dataclass(frozen=True, slots=True)
class Rule:
    """How a panel decides; from `judges.<name>` of harness.yaml."""

    rule: Literal["majority", "unanimous"] = "majority"
    split: Literal["median", "lower", "unscored"] = "median"
    quorum: int | None = None

    def needed(self, members: int) -> int:
        """Scored votes that a panel of so many members needs."""
        return self.quorum if self.quorum is not None else members // 2 + 1


@dataclass(frozen=True, slots=True)
class Decision:
    """A grade, or None and why."""

    grade: float | None
    why: str = ""


def decide(metric: str, votes: Sequence[Vote], rule: Rule) -> Decision:
    """The panel's grade of one metric. Unscored votes count for nothing but the quorum."""
    grades = [g for v in votes if v.unscored is None and (g := v.scores.get(metric)) is not None]
    needed = rule.needed(len(votes))
    if len(grades) < needed or not grades:
        return Decision(None, f"{metric}: {len(grades)} of {len(votes)} votes, {needed} are needed")
    grade, count = Counter(grades).most_common(1)[0]
    if count == len(grades) or (rule.rule == "majority" and 2 * count > len(grades)):
        return Decision(grade)
    return _split(metric, grades, rule)


def _split(metric: str, grades: list[float], rule: Rule) -> Decision:
    shown = " : ".join(f"{g:g}" for g in sorted(grades))
    ordered = sorted(grades)
    if rule.split == "lower":
        return Decision(ordered[(len(ordered) - 1) // 2], f"{metric} split {shown}, lower middle")
    middle = median(ordered)
    if rule.split == "median" and middle in GRADES[metric]:
        return Decision(middle, f"{metric} split {shown}, median")
    between = f", the median {middle:g} is no grade" if rule.split == "median" else ""
    return Decision(None, f"{metric}: the votes split {shown}{between}")


def tally_rubrics(ids: Iterable[str], votes: Sequence[Vote], rule: Rule) -> dict[str, Outcome]:
    """Each rubric of the item by more than half of the votes on it, above the quorum."""
    found: dict[str, Outcome] = {}
    for rubric in ids:
        given = [r for v in votes if v.unscored is None for r in v.rubrics if r.id == rubric]
        yes = sum(r.passed for r in given)
        needed = rule.needed(len(votes))
        if len(given) < needed:
            why = f"{len(given)} of {len(votes)} votes, {needed} are needed"
            found[rubric] = Outcome(None, why)
        elif 2 * yes == len(given) or (rule.rule == "unanimous" and 0 < yes < len(given)):
            found[rubric] = Outcome(None, f"the votes split {yes} : {len(given) - yes}")
        else:
            passed = 2 * yes > len(given)
            reasons = [r.reason for r in given if r.passed is passed and r.reason]
            counts = f"{yes} of {len(given)} votes for it"
            found[rubric] = Outcome(passed, "; ".join([counts, *reasons[:1]]))
    return found


def shared_findings(votes: Sequence[Vote], scores: dict[str, float | None]) -> tuple[Finding, ...]:
    """Findings of the votes that graded as the panel did, each kind and quote once.

    A panel that found the reply faultless has none, whatever a member that was outvoted saw.
    """
    agreeing = [v for v in votes if v.unscored is None and _agrees(v, scores)]
    found: dict[tuple[str, str], Finding] = {}
    for vote in agreeing:
        for finding in vote.findings:
            found.setdefault((finding.kind, finding.quote), finding)
    return tuple(found.values())


def _agrees(vote: Vote, scores: dict[str, float | None]) -> bool:
    decided = [m for m in GRADES if scores.get(m) is not None]
    return bool(decided) and all(vote.scores.get(m) == scores[m] for m in decided)
