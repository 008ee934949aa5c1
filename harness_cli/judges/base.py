"""What every judge is: an item and a trajectory in, a verdict out."""

from typing import Protocol

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Verdict


class Judge(Protocol):
    """Reads a finished trajectory. Raises `JudgeError` rather than guess a score."""

    name: str
    id: str
    """name@digest: what runs and manifests record; any change to the judge changes it."""

    async def judge(self, item: Item, trajectory: Trajectory, world: Catalogue) -> Verdict:
        """The verdict on one trajectory."""
        ...
