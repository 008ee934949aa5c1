"""Looking at a server from outside: is it healthy, which weights answer, take others."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import aiohttp

from harness_cli.errors import HarnessError

LOOK_S: Final = 20.0
"""One look at `/health`: SGLang generates a token for it, behind what it is working on."""
UPDATE_S: Final = 1800.0
"""Reading 70 GB of weights from a slow disk."""


async def healthy(session: aiohttp.ClientSession, url: str, seconds: float = LOOK_S) -> bool:
    """The server answers `/health` with 200."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with session.get(f"{url}/health", timeout=timeout) as answer:
            await answer.read()
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


async def until_ready(
    session: aiohttp.ClientSession, url: str, *, seconds: float, running: Callable[[], bool]
) -> None:
    """Return once it is healthy. Raises `HarnessError` when it ends before, or takes too long."""
    end = time.monotonic() + seconds
    pause = 0.05
    while True:
        if not running():
            raise HarnessError("it ended before it was ready")
        left = end - time.monotonic()
        if left <= 0:
            raise HarnessError(f"it was not ready within {seconds:g} s")
        if await healthy(session, url, min(left, LOOK_S)) and running():
            return
        await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
        pause = min(1.0, pause * 1.5)


async def model_info(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    """What a server says it serves; empty where it does not say (0.5.5 knows only the old path)."""
    timeout = aiohttp.ClientTimeout(total=5.0)
    for path in ("/model_info", "/get_model_info"):
        try:
            async with session.get(url + path, timeout=timeout) as answer:
                if answer.status == 200:
                    found = await answer.json(content_type=None)
                    return found if isinstance(found, dict) else {}
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return {}
    return {}


async def update_weights(
    session: aiohttp.ClientSession, url: str, *, model: str, version: str | None
) -> None:
    """Have a running SGLang read other weights, target and draft, between two of its steps.

    Requests in flight go on and end on the new weights; the prefix cache is flushed. Raises
    `HarnessError` with what the server said.
    """
    body: dict[str, Any] = {"model_path": model, "flush_cache": True}
    if version is not None:
        body["weight_version"] = version
    timeout = aiohttp.ClientTimeout(total=UPDATE_S)
    try:
        async with session.post(
            f"{url}/update_weights_from_disk", json=body, timeout=timeout
        ) as answer:
            text = await answer.text()
            if answer.status != 200 or not _succeeded(text):
                raise HarnessError(
                    f"{url} did not take the weights ({answer.status}): {text[:200]}"
                )
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        raise HarnessError(f"{url} did not take the weights: {exc or type(exc).__name__}") from exc


def _succeeded(text: str) -> bool:
    """SGLang answers `{"success": …, "message": …}`, also with status 200 where it failed."""
    return '"success":true' in text.replace(" ", "").lower()
