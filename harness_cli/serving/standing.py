"""What is desired of each serving job against what runs, and what the servers say themselves."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec

from harness_cli.records.serve_job import Desired, Live
from harness_cli.serving.health import model_info
from harness_cli.serving.job_folder import JobFolder, job_names, orphans, runs

State = Literal["starting", "ready", "degraded", "failed", "stopping", "ended", "gone", "orphaned"]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One job."""

    name: str
    state: Literal[
        "starting", "ready", "degraded", "failed", "stopping", "ended", "gone", "orphaned"
    ]
    """The supervisor's word; `gone` without it, `orphaned` where its replicas live on."""
    desired: Desired
    live: Live | None = None
    differs: tuple[str, ...] = ()
    """What is not as desired, in words."""
    says: dict[str, dict[str, Any]] = {}
    """Replica number → what its server says of the weights it serves."""
    orphans: tuple[int, ...] = ()


def standings(root: Path, *, ask: bool = True) -> list[Standing]:
    """Every job that was asked for. With `ask` the replicas are asked which weights they serve."""
    found = (_standing(JobFolder.of(root, name), ask=ask) for name in job_names(root))
    return [one for one in found if one is not None]


def _standing(folder: JobFolder, *, ask: bool) -> Standing | None:
    """One job; None where it was taken down at this moment."""
    desired, live = folder.desired(), folder.live()
    if desired is None:
        return None
    left = orphans(live) if live is not None else []
    there = live is not None and runs(live.supervisor)
    says = asyncio.run(_ask(live)) if ask and live is not None and there else {}
    return Standing(
        name=folder.name,
        state=live.phase if live is not None and there else _without(live, bool(left)),
        desired=desired,
        live=live,
        differs=tuple(_differences(desired, live, says)) if there and live else (),
        says=says,
        orphans=tuple(process.pid for process in left),
    )


def _without(live: Live | None, left: bool) -> Literal["failed", "gone", "orphaned"]:
    if left:
        return "orphaned"
    return "failed" if live is not None and live.phase == "failed" else "gone"


def _differences(desired: Desired, live: Live, says: dict[str, dict[str, Any]]) -> list[str]:
    found = []
    if live.digest != desired.digest:
        found.append("settings of another job file")
    if live.model != desired.model:
        found.append(f"weights {live.model}, desired {desired.model}")
    ready = sum(replica.state == "ready" for replica in live.replicas)
    if ready != desired.replicas:
        found.append(f"{ready} of {desired.replicas} replicas ready")
    for replica in live.replicas:
        path = says.get(str(replica.number), {}).get("model_path")
        if path and desired.model and replica.state == "ready" and path != desired.model:
            found.append(f"replica {replica.number} says it serves {path}")
    return found


async def _ask(live: Live) -> dict[str, dict[str, Any]]:
    ready = [replica for replica in live.replicas if replica.state == "ready"]
    async with aiohttp.ClientSession() as session:
        told = await asyncio.gather(*(model_info(session, replica.url) for replica in ready))
    return {str(r.number): answer for r, answer in zip(ready, told, strict=True) if answer}
