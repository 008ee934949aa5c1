"""`sglang-router` in front of the replicas: how it is started, and its control side."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import aiohttp

from harness_cli.errors import HarnessError
from harness_cli.records.serve_job import ServeJob
from harness_cli.serving.hosting import LOOPBACK

T = TypeVar("T")
PROMPT_S: Final = 30.0
"""How long it may take to take a healthy replica in, or to let one go."""
_LOOK_S: Final = 0.1


def router_words(job: ServeJob, *, port: int, metrics_port: int) -> tuple[str, ...]:
    """The router's command line; it listens for `serving.door` alone, which admits requests.

    Replicas are added through `RouterControl` once they are healthy.
    """
    settings = job.router
    pairs: list[tuple[str, object]] = [
        ("host", LOOPBACK),
        ("port", port),
        ("policy", settings.policy),
        # A prefix that all requests share must not draw them all to one replica.
        ("balance-abs-threshold", job.admission.per_replica - 1),
        ("balance-rel-threshold", 1.0),
        ("retry-max-retries", settings.retries),
        ("health-check-interval-secs", max(1, round(settings.health_s))),
        ("health-failure-threshold", 2),
        ("health-success-threshold", 1),
        ("worker-startup-check-interval", 1),
        ("shutdown-grace-period-secs", max(1, round(job.process.drain_s))),
        ("prometheus-host", LOOPBACK),
        ("prometheus-port", metrics_port),
        ("log-level", "warn"),
    ]
    words = [word for name, value in pairs for word in (f"--{name}", str(value))]
    if settings.retries == 0:
        words.append("--disable-retries")
    return (sys.executable, "-m", "sglang_router.launch_router", *words)


class RouterControl:
    """The control side of a running router. Raises `HarnessError` where it does not obey."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url, self._session = url, session

    async def add(self, url: str) -> str:
        """Take a replica in; its id once it gets requests."""
        await self._ask("POST", "/workers", {"url": url})

        async def look() -> str | None:
            found = [w for w in await self.workers() if w.get("url") == url]
            return next((str(w["id"]) for w in found if w.get("is_healthy")), None)

        return await _until(f"the router did not take {url} in", look)

    async def remove(self, worker_id: str) -> None:
        """Give a replica no more requests; done when the router no longer lists it."""

        async def look() -> bool | None:
            return None if worker_id in await self._ids() else True

        if worker_id in await self._ids():
            await self._ask("DELETE", f"/workers/{worker_id}")
            await _until("the router did not let a replica go", look)

    async def _ids(self) -> set[str]:
        return {str(worker.get("id")) for worker in await self.workers()}

    async def workers(self) -> list[dict[str, Any]]:
        """Every replica it knows: id, url, load, health."""
        found = await self._ask("GET", "/workers")
        return list(found.get("workers", ()))

    async def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=PROMPT_S)
        try:
            async with self._session.request(
                method, self._url + path, json=body, timeout=timeout
            ) as answer:
                if answer.status >= 400:
                    told = (await answer.text())[:200]
                    raise HarnessError(f"the router answered {answer.status}: {told}")
                found = await answer.json(content_type=None)
                return found if isinstance(found, dict) else {}
        except (aiohttp.ClientError, TimeoutError, ValueError) as exc:
            raise HarnessError(f"the router does not answer: {exc or type(exc).__name__}") from exc


async def _until(what: str, look: Callable[[], Awaitable[T | None]]) -> T:
    """What `look` finds at last. Raises `HarnessError` when it took too long."""
    end = time.monotonic() + PROMPT_S
    while (found := await look()) is None:
        if time.monotonic() > end:
            raise HarnessError(f"{what} within {PROMPT_S:g} s")
        await asyncio.sleep(_LOOK_S)
    return found
