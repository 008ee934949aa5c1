"""A live room as a `verifiers` environment: the policy is verifiers' model, the room is a sandbox.

Runs in the virtual environment of `verifiers` (0.4, whose pins clash with this project's), needs
nothing of this project installed there, and talks HTTP to its server:

    python -m harness_cli.simulator.server -C PROJECT          # prints url and token
    HARNESS_SANDBOX_TOKEN=… PYTHONPATH=docs/examples/verifiers_room \
        vf-eval live_room --env.taskset.url URL --model …

One task is one seed of a room. The loop of the harness runs in the sandbox, with every tool, hook
and retry; each answer it asks for goes through verifiers' interception, so that traces hold the
policy's own tokens. The rewards of the requests are recorded on the trace, by dimension; one that
is unscored is left out, which is not 0.
"""

import os
from collections.abc import Iterator
from typing import Any

import httpx
import verifiers.v1 as vf
from pydantic import Field

__all__ = ["RoomHarness", "RoomTaskset"]


class RoomData(vf.TaskData):
    """One room."""

    url: str
    seed: int
    settings: dict[str, Any] = Field(default_factory=dict)


class RoomConfig(vf.TasksetConfig):
    """Which rooms, of which sandbox."""

    url: str = "http://127.0.0.1:8765"
    first: int = 0
    """Seed of the first room."""
    seeds: int = 8
    settings: dict[str, Any] = Field(default_factory=dict)
    """What differs from the sandbox's own settings: requests, faults, augmented, …"""


class RoomTask(vf.Task[RoomData]):
    """The sandbox scores; nothing is left to do here."""


class RoomTaskset(vf.Taskset[RoomTask, RoomConfig]):
    """Rooms by seed."""

    def load(self) -> Iterator[RoomTask]:
        """One task a seed."""
        config = self.config
        for seed in range(config.first, config.first + config.seeds):
            yield RoomTask(
                RoomData(
                    id=f"room-{seed}",
                    name=f"room {seed}",
                    # Required, and never sent: the sandbox has the prompt.
                    prompt=f"Host the live room of seed {seed}.",
                    url=config.url,
                    seed=seed,
                    settings=config.settings,
                ),
                config.task,
            )


class RoomHarnessConfig(vf.HarnessConfig):
    """How the sandbox is reached."""

    token_var: str = "HARNESS_SANDBOX_TOKEN"
    """Environment variable with its bearer token."""
    seconds: float = 600.0


class RoomHarness(vf.Harness[RoomHarnessConfig]):
    """Asks verifiers' model for every answer that the sandbox's loop wants."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,  # noqa: ARG002  nothing runs there
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002  the sandbox has the tools
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """One episode, from its first question to its last."""
        token = os.environ.get(self.config.token_var, "")
        room = data.model_dump()
        rollout = int.from_bytes(trace.id.encode()[-4:], "big")
        async with (
            httpx.AsyncClient(
                base_url=room["url"],
                headers={"Authorization": f"Bearer {token}"},
                timeout=self.config.seconds,
            ) as sandbox,
            httpx.AsyncClient(
                base_url=endpoint,
                headers={"Authorization": f"Bearer {secret}"},
                timeout=self.config.seconds,
            ) as model,
        ):
            start = {
                "seed": room["seed"],
                "group": f"seed-{room['seed']}",
                "rollout": rollout,
                "settings": room["settings"],
            }
            opened = await said(sandbox.post("/v1/sessions", json=start))
            path = f"/v1/sessions/{opened['session']}"
            outcomes: list[dict[str, Any]] = []
            try:
                seen = opened["observation"]
                while seen is not None:
                    message = await answer(model, ctx.model, seen)
                    stepped = await said(sandbox.post(f"{path}/step", json={"message": message}))
                    outcomes += stepped["finished"]
                    seen = stepped["observation"]
            finally:
                await sandbox.delete(path)
        record(trace, outcomes)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


async def said(request: Any) -> Any:
    """The JSON of an answer; the sandbox's own words where it refused."""
    response = await request
    if response.status_code >= 400:
        raise RuntimeError(f"{response.request.url.path}: {response.text[:500]}")
    return response.json()


async def answer(model: httpx.AsyncClient, name: str, seen: dict[str, Any]) -> dict[str, Any]:
    """The policy's next message, as the sandbox takes it."""
    body: dict[str, Any] = {"model": name, "messages": seen["messages"]}
    if seen["tools"]:
        body["tools"] = seen["tools"]
    choice = (await said(model.post("chat/completions", json=body)))["choices"][0]
    message = choice["message"]
    kept = {k: message.get(k) for k in ("content", "reasoning_content", "tool_calls")}
    return {"role": "assistant", "finish_reason": choice.get("finish_reason"), **kept}


def record(trace: vf.Trace, outcomes: list[dict[str, Any]]) -> None:
    """Rewards by dimension, each the mean over the requests in which it was scored."""
    names = sorted({name for o in outcomes for name in o["scores"]})
    for name in names:
        scores = [o["scores"][name] for o in outcomes if o["scores"].get(name) is not None]
        if scores:
            trace.record_reward(name, sum(scores) / len(scores))
    trace.info["outcomes"] = outcomes
