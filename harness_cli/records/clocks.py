"""A trajectory without its clocks: what two rollouts that did the same have in common."""

from hashlib import sha256
from typing import Any

import msgspec

from harness_cli.records.trajectory import Trajectory

CLOCKS = (
    "latency_s", "ttft_s", "first_delta_s", "attempt_s", "wall_s", "cached", "attempts",
    "retry_reasons",
)  # fmt: skip
"""What may differ between two runs that did the same: times, retries, where an answer lay."""

_sorted = msgspec.json.Encoder(order="sorted").encode


def trajectory_digest(trajectory: Trajectory) -> str:
    """SHA-256 of a trajectory without clocks: equal for two rollouts that did the same.

    The compact form is digested, in which long prompt texts stand as their digests: hashing the
    same 8 KB for every item would cost more than everything else here.
    """
    return sha256(_sorted(without_clocks(msgspec.to_builtins(trajectory)))).hexdigest()


def without_clocks(plain: dict[str, Any]) -> dict[str, Any]:
    """A trajectory's plain form without the fields of `CLOCKS`, at the places that have them."""
    steps = plain["steps"]
    calls = [call for step in steps for call in step["calls"]]
    hooks = [hook for step in steps for hook in step["hooks"]]
    for part in (plain, *calls, *hooks, *plain["hooks"], *(step["reply"] for step in steps)):
        for clock in CLOCKS:
            part.pop(clock, None)
    if not plain["tail"]:  # only imported dialogues have one
        del plain["tail"]
    return plain
