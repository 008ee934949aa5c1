"""The replicas of one job: started, watched, restarted, exchanged, drained.

A replica goes starting → ready → (waiting → ready)* → draining or failed. Only a ready one is known
to the router. One that never became ready is not tried again: what is wrong with its command line
or its weights will be wrong the second time too.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import aiohttp

from harness_cli.errors import HarnessError
from harness_cli.records.serve_job import Desired, ServeJob
from harness_cli.serving.child import Child
from harness_cli.serving.fleet_member import Replica, clock
from harness_cli.serving.health import healthy, until_ready, update_weights
from harness_cli.serving.job_folder import JobFolder
from harness_cli.serving.jobs import last_words, tail
from harness_cli.serving.launch import environment, replica_launch
from harness_cli.serving.ports import free_port
from harness_cli.serving.preflight import OURS
from harness_cli.serving.router import RouterControl
from harness_cli.serving.sglang.command import WEIGHTS

EVENTS: Final = 40


class Fleet:
    """All replicas of one job. `changed` is called whenever something happened."""

    def __init__(
        self,
        root: Path,
        folder: JobFolder,
        desired: Desired,
        session: aiohttp.ClientSession,
        changed: Callable[[], None],
    ) -> None:
        self.root, self.folder, self.session, self.changed = root, folder, session, changed
        self.job: ServeJob = desired.job
        self.model, self.sha256 = desired.model, desired.checkpoint_sha256
        self.router: RouterControl | None = None
        """The router that runs, once there is one."""
        self.replicas: list[Replica] = []
        self.events: deque[str] = deque(maxlen=EVENTS)
        self._numbers = 0

    def happened(self, text: str) -> None:
        """Note an event."""
        self.events.append(f"{clock()} {text}")
        self.changed()

    def ready(self) -> list[Replica]:
        """Replicas that answer."""
        return [r for r in self.replicas if r.state == "ready"]

    async def reach(self, desired: Desired) -> None:
        """Come to what is desired. Raises `HarnessError` where it cannot: what ran runs on."""
        self.job = desired.job
        wanted = (desired.model, desired.checkpoint_sha256)
        if self.replicas and wanted != (self.model, self.sha256):
            if desired.how == "weights":
                await self._exchange_weights(*wanted)
            else:
                await self._exchange_replicas(desired)
        self.model, self.sha256 = wanted
        standing = [r for r in self.replicas if r.state not in ("failed", "draining")]
        if len(standing) > desired.replicas:
            await self.retire(standing[desired.replicas :])
        elif len(standing) < desired.replicas:
            await self._begin(desired.replicas - len(standing), *wanted)

    async def close(self) -> None:
        """Drain and end everything."""
        await self.retire(list(self.replicas))

    async def reconnect(self, router: RouterControl) -> None:
        """Tell a router that was just started which replicas there are."""
        self.router = router
        for replica in self.ready():
            replica.worker_id = await router.add(replica.launch.url)
        self.changed()

    async def retire(self, replicas: Iterable[Replica]) -> None:
        """Out of the router first, then drained, then ended."""
        await asyncio.gather(*(self._retire(replica) for replica in replicas))

    async def _retire(self, replica: Replica) -> None:
        if replica.task is not None:
            replica.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await replica.task
        failed = replica.state == "failed"
        replica.state = "failed" if failed else "draining"
        self.changed()
        await self._take_out(replica, self.job.process.drain_s)
        self.replicas.remove(replica)
        self.happened(f"replica {replica.number} ended")

    async def _begin(self, count: int, model: str, sha256: str | None) -> list[Replica]:
        """Start replicas and wait until they are ready; those that are not are named."""
        new = [self._start(model, sha256) for _ in range(count)]
        results = await asyncio.gather(*(r.first for r in new), return_exceptions=True)
        failed = [str(r) for r in results if isinstance(r, BaseException)]
        if failed:
            await self.retire([r for r in new if r.state == "failed"])
            raise HarnessError(failed[0])
        return new

    def _start(self, model: str, sha256: str | None) -> Replica:
        self._numbers += 1
        number = self._numbers - 1
        port = free_port() if self.job.router.use or not self.job.port else self.job.port
        launch = replica_launch(
            self.job, self.root, number=number, model=model, sha256=sha256, port=port
        )
        replica = Replica(
            number=number,
            launch=launch,
            model=model,
            sha256=sha256,
            log=self.folder.log(f"replica-{number}"),
            first=asyncio.get_running_loop().create_future(),
        )
        self.replicas.append(replica)
        replica.task = asyncio.create_task(self._keep(replica))
        return replica

    async def _keep(self, replica: Replica) -> None:
        try:
            await self._bring_up(replica)
        except HarnessError as exc:
            self._failed(replica, str(exc))
            replica.tell(exc)
            return
        replica.tell(None)
        while True:
            why = await self._watch(replica)
            self._failed(replica, why)
            await self._take_out(replica, 0.0)
            if not await self._again(replica):
                return

    async def _again(self, replica: Replica) -> bool:
        """Start it anew, within the bounds of the job; False when it stays down."""
        rules = self.job.process
        if time.monotonic() - replica.ready_at > rules.steady_s:
            replica.restarts = 0
        while rules.restart == "on-failure" and replica.restarts < rules.max_restarts:
            replica.state = "waiting"
            replica.restarts += 1
            self.changed()
            await asyncio.sleep(rules.restart_pause_s * 2 ** (replica.restarts - 1))
            try:
                await self._bring_up(replica)
            except HarnessError as exc:
                self._failed(replica, str(exc))
            else:
                return True
        replica.state = "failed"
        self.happened(f"replica {replica.number} stays down")
        return False

    async def _bring_up(self, replica: Replica) -> None:
        replica.state, replica.since = "starting", clock()
        launch, log = replica.launch, replica.log
        child = await Child.start(launch.words, env=environment(launch), cwd=self.root, log=log)
        replica.child = child
        self.happened(f"replica {replica.number} started, process {child.ref.pid}")
        try:
            await until_ready(
                self.session,
                launch.url,
                seconds=self.job.process.ready_s,
                running=lambda: child.running,
            )
            if self.router is not None:
                replica.worker_id = await self.router.add(launch.url)
        except (HarnessError, asyncio.CancelledError) as exc:
            code = child.process.returncode
            await child.stop(0.0 if isinstance(exc, HarnessError) else self.job.process.drain_s)
            if isinstance(exc, HarnessError):
                raise self._with_log(replica, exc, code) from exc
            raise
        replica.state, replica.error = "ready", None
        replica.ready_at, replica.since = time.monotonic(), clock()
        self.happened(f"replica {replica.number} is ready")

    def _with_log(self, replica: Replica, exc: HarnessError, code: int | None) -> HarnessError:
        told = last_words(replica.log)
        end = f"; its last words: {told[:300]}" if told else "; it wrote nothing"
        ended = f" (exit code {code})" if code is not None else ""
        return HarnessError(
            f"replica {replica.number}: {exc}{ended}{end}", hint=f"its log is {replica.log}"
        )

    async def _watch(self, replica: Replica) -> str:
        """Why it is dead, once it is."""
        child, rules = replica.child, self.job.process
        assert child is not None
        misses = 0
        while True:
            with contextlib.suppress(TimeoutError):
                code = await asyncio.wait_for(child.process.wait(), rules.health_s)
                told = tail(replica.log, 1)
                return f"it ended with code {code}" + (f": {told[-1][:200]}" if told else "")
            well = await healthy(self.session, replica.launch.url) or replica.reads_weights
            misses = 0 if well else misses + 1
            if misses >= rules.unhealthy:
                return f"it was not healthy {misses} times in a row"

    async def _take_out(self, replica: Replica, drain_s: float) -> None:
        if self.router is not None and replica.worker_id is not None:
            try:
                await self.router.remove(replica.worker_id)
            except HarnessError as exc:
                self.happened(f"replica {replica.number}: {exc}")
            replica.worker_id = None
        child = replica.child
        if child is not None and not await child.stop(drain_s) and drain_s > 0:
            self.happened(f"replica {replica.number} did not drain in {drain_s:g} s: killed")

    def _failed(self, replica: Replica, why: str) -> None:
        replica.state, replica.error = "failed", why
        self.happened(f"replica {replica.number} failed: {why}")

    async def _exchange_weights(self, model: str, sha256: str | None) -> None:
        """One replica after the other reads the new weights; all go back where one refuses."""
        if self.job.engine in OURS:
            raise HarnessError(
                f"the engine `{self.job.engine}` cannot change its weights while it runs",
                hint="--how replicas",
            )
        if away := [r.number for r in self.replicas if r.state in ("starting", "waiting")]:
            # It would come back with the old ones.
            raise HarnessError(f"replica {away[0]} is starting again: switch once it is ready")
        done: list[Replica] = []
        for replica in self.ready():
            try:
                await self._weights(replica, model, sha256)
            except HarnessError as exc:
                raise HarnessError(f"{exc}; {await self._back(done)}") from exc
            done.append(replica)

    async def _back(self, changed: list[Replica]) -> str:
        """Have replicas read the old weights again; what serves then, in words."""
        stuck = []
        for replica in changed:
            try:
                await self._weights(replica, self.model, self.sha256)
            except HarnessError as exc:
                stuck.append(str(replica.number))
                self.happened(f"replica {replica.number} did not go back: {exc}")
        if stuck:
            return f"replica {', '.join(stuck)} did not go back and serves the new weights"
        return "all others serve the old weights"

    async def _weights(self, replica: Replica, model: str, sha256: str | None) -> None:
        version = sha256[:WEIGHTS] if sha256 else None
        replica.reads_weights = True
        try:
            await update_weights(self.session, replica.launch.url, model=model, version=version)
        finally:
            replica.reads_weights = False
        port = int(replica.launch.url.rpartition(":")[2])
        replica.model, replica.sha256 = model, sha256
        replica.launch = replica_launch(
            self.job, self.root, number=replica.number, model=model, sha256=sha256, port=port
        )
        self.happened(f"replica {replica.number} serves {model}")

    async def _exchange_replicas(self, desired: Desired) -> None:
        """New replicas beside the old ones; these go only once those answer."""
        if self.router is None:
            raise HarnessError(
                "without a router no replica can be exchanged", hint="router: {use: true}"
            )
        old = list(self.replicas)
        try:
            await self._begin(desired.replicas, desired.model, desired.checkpoint_sha256)
        except HarnessError:
            await self.retire([r for r in self.replicas if r not in old])
            raise
        await self.retire(old)
