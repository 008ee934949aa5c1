"""The rejection judge's filter: which candidates of a teacher are good enough to learn from.

TR §3.4: Accuracy 1 and Effectiveness 1. Beside the scores a candidate has to be the teacher's own:
what a fallback, a hook or the round limit made of it teaches something else.
"""

import hashlib

from harness_cli.records.training import AcceptedScores
from harness_cli.records.trajectory import StopReason, Trajectory
from harness_cli.records.verdict import ItemResult

Reason = tuple[str, str]
"""The kind, as the card counts it, and its detail."""


def rejected(result: ItemResult, trajectory: Trajectory, accept: AcceptedScores) -> Reason | None:
    """Why a candidate is not taken; None for one that is."""
    return not_its_own(trajectory) or _not_good(result, accept)


def not_its_own(trajectory: Trajectory) -> Reason | None:
    """Why a rollout is not what its policy did by itself."""
    if trajectory.errored or not trajectory.steps:
        return "errored", trajectory.error or "the policy was never asked"
    if trajectory.stop not in (StopReason.COMPLETED, StopReason.REFUSED):
        return "not finished", str(trajectory.stop)
    if trajectory.fell_back:
        return "not the teacher's own", f"the reply came by the route {trajectory.route}"
    last = trajectory.steps[-1]
    if last.reply.finish_reason == "length":
        return "cut off", "the last answer reached its token limit"
    said = (last.reply.content or "").strip()
    if not last.calls and trajectory.reply.strip() != said:
        return "rewritten", "a hook changed the reply: it is not what the teacher said"
    return None


def _not_good(result: ItemResult, accept: AcceptedScores) -> Reason | None:
    for metric in ("accuracy", "effectiveness"):
        wanted, score = getattr(accept, metric), result.scores.get(metric)
        if score is None:
            # An item that assertions decide alone has no grades: they have to hold.
            if result.state == "passed":
                continue
            return "unscored", result.error or f"the judge gave no {metric}"
        if score < wanted:
            return f"{metric} below {wanted:g}", f"{metric} {score:g}"
    failed = [a for a in result.assertions if a.passed is False]
    if failed:
        return "an assertion does not hold", f"{failed[0].type}: {failed[0].reason}"
    return None


def kept_whole(item: str, share: float, seed: int) -> bool:
    """Whether the hook retries of an item are kept: `share` of the items, by a seeded hash."""
    place = hashlib.sha256(f"{seed}:{item}".encode()).digest()[:8]
    return int.from_bytes(place, "big") < share * 2**64
