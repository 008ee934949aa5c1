"""One replica of a fleet: its process, its place at the router, what became of it."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness_cli.records.serve_job import ReplicaLive
from harness_cli.serving.child import Child
from harness_cli.serving.launch import Launch


def clock() -> str:
    """Now, for people."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


@dataclass(slots=True, eq=False)
class Replica:
    """One replica and what became of it."""

    number: int
    launch: Launch
    model: str
    sha256: str | None
    log: Path
    first: "asyncio.Future[None]"
    """Done when it was ready once, or never will be."""
    state: str = "starting"
    child: Child | None = None
    worker_id: str | None = None
    restarts: int = 0
    error: str | None = None
    since: str = field(default_factory=clock)
    ready_at: float = 0.0
    reads_weights: bool = False
    """It takes other weights now, for minutes where they are large: `/health` may stand still."""
    task: "asyncio.Task[None] | None" = None

    def tell(self, failure: Exception | None) -> None:
        """Whoever waits for its first readiness learns how it ended."""
        if self.first.done():
            return
        if failure is None:
            self.first.set_result(None)
        else:
            self.first.set_exception(failure)

    def live(self) -> ReplicaLive:
        """As `live.json` has it."""
        return ReplicaLive(
            number=self.number,
            state=self.state,  # type: ignore[arg-type]
            url=self.launch.url,
            model=self.model,
            process=self.child.ref if self.child else None,
            restarts=self.restarts,
            since=self.since,
            worker_id=self.worker_id,
            log=self.log.name,
            error=self.error,
        )
