"""A serving log: one line a request that was answered, and by which policy in which harness."""

from datetime import UTC, datetime

import msgspec

from harness_cli.records.trajectory import Trajectory


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `.harness/served/<name>.jsonl`.

    Which version answered stands in the trajectory: `harness_id` and `policy_id`.
    """

    schema: int = 1
    at: str
    """When the reply went out: ISO 8601 with its offset from UTC."""
    trajectory: Trajectory

    def moment(self) -> datetime:
        """`at` as an instant in UTC. Raises `ValueError` where it is none, or names no offset."""
        found = datetime.fromisoformat(self.at)
        if found.tzinfo is None:
            raise ValueError(f"`at` is `{self.at}`, without an offset from UTC")
        return found.astimezone(UTC)
