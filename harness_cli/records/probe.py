"""`reward_probes/probes.jsonl`: trajectories that are good or corrupted BY CONSTRUCTION."""

import msgspec

from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line. Its trajectory is a rollout of the real loop, without the prompts it was shown."""

    schema: int = 1
    id: str
    """`<item>/good` or `<item>/<corruption>`."""
    item: Item | None = None
    """With the good one; its corruptions share it."""
    trajectory: Trajectory
    corruption: str | None = None
    """What was done to the good one; None for that one."""
    lowers: tuple[str, ...] = ()
    """Reward dimensions that must be lower than the good one's."""
    change: str = ""
