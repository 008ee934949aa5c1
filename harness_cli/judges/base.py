"""What every judge is: an item and a trajectory in, a verdict out."""

from typing import Protocol

from harness_cli.records.catalogue import Catalogue
from harness_cli.records.item import Item
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import Verdict
from harness_cli.runtime.agent import CallLog, Direct


class JudgeCalls(Protocol):
    """How a judge makes its calls: the engine journals, bounds and resumes them through it."""

    def of(self, member: str) -> CallLog:
        """The log of one member's calls on the trajectory at hand."""
        ...

    def begun(self, member: str) -> bool:
        """A journal holds calls of this member: they are gone on with, whatever a cache has."""
        ...

    def written(self) -> None:
        """See to it that a kill from here on loses none of the calls."""
        ...


class DirectCalls:
    """Calls that nobody records."""

    def of(self, member: str) -> CallLog:  # noqa: ARG002  the protocol's signature
        """A log that passes through."""
        return Direct()

    def begun(self, member: str) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def written(self) -> None:
        """Nothing is."""


class Judge(Protocol):
    """Reads a finished trajectory. Raises `JudgeError` rather than guess a score."""

    name: str
    id: str
    """name@digest: what runs and manifests record; any change to the judge changes it."""

    async def judge(
        self,
        item: Item,
        trajectory: Trajectory,
        world: Catalogue,
        *,
        calls: JudgeCalls | None = None,
    ) -> Verdict:
        """The verdict on one trajectory; a judge that asks models does so through `calls`."""
        ...

    async def close(self) -> None:
        """Give back connections and processes."""
        ...
