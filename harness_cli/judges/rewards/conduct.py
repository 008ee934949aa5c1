"""Skill selection, rule compliance and length: three rewards that need no model.

Skill selection is the F-measure of the loaded skills against the expected ones, 2·|both| /
(|loaded| + |expected|); where no skill is expected, 1/(1 + |loaded|).

Rule compliance looks at what the harness had to enforce: 1 − objected steps / steps, and 0 where
hooks objected to the end (the reply was a fallback's, or none), or the reply breaks a rule of
conduct (`CONDUCT`, found by the grounded judge). Hooks on requests and on results of tools judge
others than the policy and do not count.

Length is 1 up to `easy` characters, falls in a straight line and is 0 from `most` on. A Chinese
character takes as long to say as about three Latin letters and counts as three (**choice**; the
default bounds are the shipped `reply_length`, read as Latin characters, and its double).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness_cli.judges.rewards.dimension import Reward, note, scored
from harness_cli.records.item import Item
from harness_cli.records.trajectory import HookEvent, Route, StopReason, Trajectory
from harness_cli.records.verdict import Finding

CONDUCT = ("human_identity", "false_promise", "capability_overreach", "forbidden_phrase")
OF_OTHERS = ("request", "after_tool")
OBJECTIONS = ("retry", "deny", "fallback", "suppress")
_HAN = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lengths in Latin characters."""

    easy: int = 300
    most: int = 600


def skill_selection(item: Item, trajectory: Trajectory) -> Reward:
    """The reward of the loaded skills; a load that failed counts as a skill that does not fit."""
    name = "skill_selection"
    wanted = set(item.expect.skills)
    loaded = set(trajectory.skills_loaded)
    missed = {
        str((c.arguments or {}).get("skill"))
        for c in trajectory.calls
        if c.name == "load_skill" and not c.result.ok
    }
    chosen = loaded | {f"{skill} (not loaded)" for skill in missed - loaded}
    detail = f"loaded {_listed(chosen)}; fitting: {_listed(wanted)}"
    if not wanted:
        return scored(name, 1 / (1 + len(chosen)), [note(name, detail)])
    both = len(wanted & loaded)
    return scored(name, 2 * both / (len(wanted) + len(chosen)), [note(name, detail)])


def rule_compliance(trajectory: Trajectory, findings: Sequence[Finding]) -> Reward:
    """The reward of keeping the rules; `findings` are those of the grounded judge."""
    name = "rule_compliance"
    broken = [f for f in findings if f.kind in CONDUCT]
    if broken:
        return scored(
            name, 0.0, [note(name, f"{f.kind}: {f.detail}", quote=f.quote) for f in broken]
        )
    objections = {s.index: [h for h in s.hooks if _objected(h)] for s in trajectory.steps}
    evidence = [
        note(name, f"`{h.hook}` {h.outcome}: {h.reason}", step=index)
        for index, hooks in objections.items()
        for h in hooks
    ]
    if _enforced(trajectory):
        why = f"the rollout ended by {trajectory.stop.value}, route {trajectory.route.value}"
        return scored(name, 0.0, [note(name, why), *evidence])
    if not trajectory.steps:
        return Reward(name, None, unscored="no step was taken")
    share = sum(bool(hooks) for hooks in objections.values()) / len(objections)
    return scored(name, 1 - share, evidence or [note(name, "no hook had anything to object to")])


def length(item: Item, trajectory: Trajectory, bounds: Bounds) -> Reward:
    """The reward of a short reply. Silence is 1 where it was right, and says nothing else."""
    name = "length"
    reply = trajectory.reply.strip()
    if not reply:
        if "silent" in item.expect.answers or "refuse" in item.expect.answers:
            return scored(name, 1.0, [note(name, "nothing was said, and nothing was to be said")])
        return Reward(name, None, unscored="nothing was said")
    size = len(reply) + 2 * len(_HAN.findall(reply))
    over = (size - bounds.easy) / (bounds.most - bounds.easy)
    detail = f"{size} characters, {bounds.easy} are easy to hear, {bounds.most} are too many"
    return scored(name, 1 - over, [note(name, detail)])


def _objected(event: HookEvent) -> bool:
    return event.outcome in OBJECTIONS and event.event not in OF_OTHERS


def _enforced(trajectory: Trajectory) -> bool:
    """Somebody else's words stand in for the policy's, or the loop gave up on it."""
    if trajectory.stop in (StopReason.GATE_FAILED, StopReason.LOOP, StopReason.MAX_ROUNDS):
        return True
    return trajectory.route is not Route.NORMAL and trajectory.stop is not StopReason.REFUSED


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
