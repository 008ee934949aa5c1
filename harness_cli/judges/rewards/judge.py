"""The deterministic rewards: six dimensions of one trajectory, each with its evidence, no model.

Item and trajectory are in one harness's names: a rollout under an augmented state is mapped back
first (`simulator.live.states.Drawn.in_base`).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from harness_cli.judges.base import JudgeCalls
from harness_cli.judges.grounded.judge import INACCURATE, GroundedJudge
from harness_cli.judges.rewards.conduct import (
    Bounds,
    length,
    rule_compliance,
    skill_selection,
)
from harness_cli.judges.rewards.dimension import DIMENSIONS, Reward, note
from harness_cli.judges.rewards.tool_calls import tool_rationality
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Finding, Verdict


@cache
def source_digest() -> str:
    """SHA-256 over this folder's own files: a changed rule is another judge."""
    folder = Path(__file__).parent
    parts = [f"{p.name}:{sha256(p.read_bytes())}" for p in sorted(folder.glob("*.py"))]
    return sha256("\n".join(parts).encode())


class RuleRewards:
    """Rewards by rule. One instance serves any number of rollouts."""

    name = "rewards"

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._grounded = GroundedJudge()
        shown = [source_digest(), self._grounded.id, self._bounds.easy, self._bounds.most]
        self.id = f"rewards@{digest(shown)[:12]}"

    async def judge(
        self,
        item: Item,
        trajectory: Trajectory,
        world: Catalogue,
        *,
        calls: JudgeCalls | None = None,  # noqa: ARG002  it makes none
    ) -> Verdict:
        """The six rewards as scores, what they rest on as findings."""
        return verdict_of(self.id, self.rewards(item, trajectory, world))

    async def close(self) -> None:
        """Nothing is held."""

    def rewards(self, item: Item, trajectory: Trajectory, world: Catalogue) -> list[Reward]:
        """Every dimension, in the order of `DIMENSIONS`."""
        if trajectory.errored:
            reason = trajectory.error or f"the rollout ended by {trajectory.stop.value}"
            return [Reward(name, None, unscored=reason) for name in DIMENSIONS]
        verdict = self._grounded.verdict(item, trajectory, world)
        found = [
            _of_grounded("accuracy", verdict, INACCURATE, item),
            _of_grounded("effectiveness", verdict, None, item),
        ]
        if _unknown(item):
            why = "the item says neither which tools nor which skills are right"
            found += [Reward(name, None, unscored=why) for name in ("tool_rationality",
                                                                    "skill_selection")]  # fmt: skip
        else:
            found += [tool_rationality(item, trajectory), skill_selection(item, trajectory)]
        found.append(rule_compliance(trajectory, verdict.findings))
        found.append(length(item, trajectory, self._bounds))
        return found


def _unknown(item: Item) -> bool:
    expect = item.expect
    return not (expect.answers or expect.tools or expect.skills)


def _of_grounded(
    name: str, verdict: Verdict, kinds: Sequence[str] | frozenset[str] | None, item: Item
) -> Reward:
    """A grade of the grounded judge as a reward. None of `kinds`: every other finding."""
    score = verdict.scores.get(name)
    if score is None:
        return Reward(name, None, unscored=verdict.unscored_reason or "no score")
    own = [f for f in verdict.findings if (f.kind in INACCURATE) == (kinds is not None)]
    evidence = [
        Finding(
            kind=name,
            detail=f"{f.kind}: {f.detail}",
            quote=f.quote,
            evidence=f.evidence,
            step=f.step,
        )
        for f in own
    ]
    if not evidence:
        said = "no claim is wrong" if kinds else f"covers {', '.join(item.expect.answers)}"
        evidence = [note(name, said)]
    return Reward(name, score, tuple(evidence))


def verdict_of(judge: str, rewards: Sequence[Reward]) -> Verdict:
    """Rewards as a verdict: scores by dimension, evidence as findings, why what is unscored."""
    open_ = [f"{r.dimension}: {r.unscored}" for r in rewards if r.score is None]
    return Verdict(
        judge=judge,
        scores={r.dimension: r.score for r in rewards},
        findings=tuple(f for r in rewards for f in r.evidence),
        unscored_reason="; ".join(open_) or None,
    )


def total(
    scores: Mapping[str, float | None], weights: Mapping[str, float] | None = None
) -> float | None:
    """R = Σ w_d r_d over the dimensions (METHODS §6; w = 1); None where one of them is unscored.

    An unscored dimension is no 0, so a sum without it would be of another scale.
    """
    chosen = dict.fromkeys(DIMENSIONS, 1.0) if weights is None else dict(weights)
    parts = [(w, scores.get(name)) for name, w in chosen.items() if w]
    if any(score is None for _, score in parts):
        return None
    return sum(w * (score or 0.0) for w, score in parts)
