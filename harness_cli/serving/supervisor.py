"""The process that keeps a serving job: it outlives the command that asked for it.

    python -m harness_cli.serving.supervisor PROJECT JOB

It reads `desired.json`, brings the fleet and the router there, and writes `live.json`. SIGTERM
drains and ends everything; so does the end of the last replica.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Final, Literal

import aiohttp

from harness_cli.errors import HarnessError
from harness_cli.records.serve_job import Desired, Live, ProcessRef
from harness_cli.serving.admission import Doorkeeper
from harness_cli.serving.child import Child, rotate
from harness_cli.serving.door import Door
from harness_cli.serving.fleet import Fleet
from harness_cli.serving.fleet_member import clock
from harness_cli.serving.health import until_ready
from harness_cli.serving.hosting import LOOPBACK
from harness_cli.serving.job_folder import JobFolder
from harness_cli.serving.jobs import last_words
from harness_cli.serving.launch import reachable
from harness_cli.serving.ports import free_port
from harness_cli.serving.router import RouterControl, router_words
from harness_cli.store.locks import boot_id
from harness_cli.store.processes import begun_of
from harness_cli.store.project import Project

LOOK_S: Final = 0.2
"""How often the desired state is read."""
ROUTER_S: Final = 30.0
_MIB: Final = 1024 * 1024
Phase = Literal["starting", "ready", "degraded", "failed", "stopping", "ended"]


class Supervisor:
    """One job, from the first process to the last."""

    def __init__(self, root: Path, folder: JobFolder, session: aiohttp.ClientSession) -> None:
        desired = folder.desired()
        if desired is None:
            raise HarnessError(f"nothing is desired of `{folder.name}`")
        self.folder, self.session, self.desired = folder, session, desired
        self.root = root
        self.fleet = Fleet(root, folder, desired, session, self.tell)
        admission = desired.job.admission
        self.keeper = Doorkeeper(0, admission.queue, admission.queue_s)
        self.port = desired.job.port
        self.router: Child | None = None
        self.reached = self.refused = 0
        self.error: str | None = None
        self.ended = asyncio.Event()
        self._stopping = False
        self._keeping: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until SIGTERM, or until nothing is left to keep."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.ended.set)
        self.tell()
        try:
            if self.desired.job.router.use:
                await self._behind_a_door()
            else:
                await self._follow()
        except HarnessError as exc:
            self.error, self.refused = str(exc), self.desired.generation
        finally:
            await self._close()

    async def _behind_a_door(self) -> None:
        """Router and door around everything else; who is inside is drained before they go."""
        job, inner = self.desired.job, free_port()
        await self._start_router(inner)
        self._keeping = asyncio.create_task(self._keep_router(inner))
        door = Door(f"http://{LOOPBACK}:{inner}", self.keeper, self.session, self._addresses)
        try:
            async with door.open(job.host, job.port, job.process.drain_s) as port:
                self.port = port
                self.tell()
                await self._follow()
        except OSError as exc:
            raise HarnessError(f"cannot listen on port {job.port}: {exc.strerror}") from exc

    async def _follow(self) -> None:
        """Come to each desired state in turn."""
        done = 0
        while not self.ended.is_set():
            desired = self.folder.desired()
            if desired is None:
                return
            if desired.generation > done:
                done = desired.generation
                await self._reach(desired)
            if not any(r.state != "failed" for r in self.fleet.replicas):
                self.error = self.error or "no replica is left"
                return
            await asyncio.to_thread(self._rotate)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), LOOK_S)

    async def _reach(self, desired: Desired) -> None:
        self.desired = desired
        reaching = asyncio.create_task(self.fleet.reach(desired))
        stopping = asyncio.create_task(self.ended.wait())
        await asyncio.wait({reaching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not reaching.done():
            reaching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reaching
            return
        try:
            reaching.result()
            self.reached, self.error = desired.generation, None
        except HarnessError as exc:
            self.refused, self.error = desired.generation, str(exc)
            self.fleet.happened(f"refused: {exc}")
        self.tell()

    def _addresses(self) -> list[tuple[int, str]]:
        return [(replica.number, replica.launch.url) for replica in self.fleet.ready()]

    async def _start_router(self, port: int) -> None:
        job = self.desired.job
        words = router_words(job, port=port, metrics_port=free_port())
        log = self.folder.log("router")
        child = await Child.start(words, env=os.environ, cwd=self.root, log=log)
        self.router = child
        url = f"http://{LOOPBACK}:{port}"
        try:
            await until_ready(self.session, url, seconds=ROUTER_S, running=lambda: child.running)
        except HarnessError as exc:
            await child.stop(0.0)
            raise HarnessError(f"the router: {exc}: {last_words(log)}") from exc
        await self.fleet.reconnect(RouterControl(url, self.session))

    async def _keep_router(self, port: int) -> None:
        """A router that ends is started again, and told of every replica."""
        while True:
            assert self.router is not None
            code = await self.router.process.wait()
            self.fleet.router = None
            self.fleet.happened(f"the router ended with code {code}")
            await asyncio.sleep(self.desired.job.process.restart_pause_s)
            try:
                await self._start_router(port)
            except HarnessError as exc:
                self.error = str(exc)
                self.fleet.happened(str(exc))
                await asyncio.sleep(1.0)

    async def _close(self) -> None:
        self._stopping = True
        self.tell()
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeping
        await self.fleet.close()
        if self.router is not None:
            await self.router.stop(self.desired.job.process.drain_s)
        self.tell(last=True)

    def _rotate(self) -> None:
        rules = self.desired.job.process
        for log in self.folder.path.glob("*.log"):
            rotate(log, limit=int(rules.log_mib * _MIB), keep=rules.log_files)

    def tell(self, *, last: bool = False) -> None:
        """Write `live.json`."""
        desired = self.desired
        self.keeper.limit = desired.job.admission.per_replica * len(self.fleet.ready())
        pid = os.getpid()
        running = [replica.live() for replica in self.fleet.replicas]
        # Without a router clients go to the one replica.
        url = f"http://{reachable(desired.job.host)}:{self.port}"
        if not desired.job.router.use and running:
            url = running[0].url
        self.folder.tell(
            Live(
                name=self.folder.name,
                generation=self.reached,
                refused=self.refused,
                phase=self._phase(last=last),
                url=f"{url}/v1",
                digest=desired.digest,
                model=self.fleet.model,
                checkpoint_sha256=self.fleet.sha256,
                supervisor=ProcessRef(pid=pid, begun=begun_of(pid), boot_id=boot_id()),
                router=self.router.ref if self.router and self.router.running else None,
                router_log="router.log" if desired.job.router.use else None,
                replicas=tuple(running),
                error=self.error,
                at=clock(),
                events=tuple(self.fleet.events),
            )
        )

    def _phase(self, *, last: bool) -> Phase:
        if self._stopping:
            ended: Phase = "failed" if self.error else "ended"
            return ended if last else "stopping"
        ready = len(self.fleet.ready())
        if not self.reached:
            return "failed" if self.refused and not ready else "starting"
        wanted = self.desired.replicas
        well = ready >= wanted and (
            self.fleet.router is not None or not self.desired.job.router.use
        )
        return "ready" if well else "degraded"


async def supervise(root: Path, name: str) -> None:
    """Keep job `name` of the project in `root`."""
    async with aiohttp.ClientSession() as session:
        await Supervisor(root, JobFolder.of(root, name), session).run()


def main() -> None:
    """Errors are the last lines of the supervisor's log."""
    folder, name = sys.argv[1:3]
    try:
        asyncio.run(supervise(Project.find(Path(folder)).root, name))
    except HarnessError as exc:
        sys.stderr.write(f"error: {exc}\n")
        sys.exit(exc.exit_code)


if __name__ == "__main__":
    main()
