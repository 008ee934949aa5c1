"""The agent loop, whole on one screen: context, prompt, rounds, gate, reply (TR §2.4, Fig. 3).

Two scopes of recovery stay apart: one model or tool call is retried or answered by a fallback
inside `ask` and `toolbox`; a rollout that cannot go on is given its end by `recovery`.
"""

import traceback
from pathlib import Path

from harness_cli.errors import HarnessError
from harness_cli.records.request import Request
from harness_cli.records.trajectory import Route, StopReason, Trajectory
from harness_cli.runtime.agent import Agent, CallLog, Direct
from harness_cli.runtime.clock import Meter
from harness_cli.runtime.recovery import recover
from harness_cli.runtime.session import Ended, Observe, Session
from harness_cli.runtime.stages import (
    assemble_prompt,
    dispatch_reply,
    load_context,
    one_round,
)


async def rollout(
    request: Request,
    agent: Agent,
    *,
    request_id: str,
    item_id: str | None = None,
    repeat: int = 0,
    log: CallLog | None = None,
    observe: Observe | None = None,
) -> Trajectory:
    """Answer one request. A bad rollout is data: what broke stands on the trajectory.

    Given the same answers of models and tools it does the same again. Raises only what ends a run
    (`BudgetReached`, `Interrupted`, a broken harness file) and cancellation.
    """
    session = Session(
        agent=agent,
        prepared=agent.prepared,
        request=request,
        request_id=request_id,
        log=log or Direct(),
        meter=Meter(agent.limits),
        observe=observe,
        max_tokens=agent.generation.max_tokens,
    )
    try:
        await converse(session)
    except Ended as end:
        await recover(session, end)
    except HarnessError:
        raise
    except Exception as exc:  # noqa: BLE001  one request that breaks the loop ends no run
        await recover(session, broken(exc))
    await dispatch_reply(session)
    trajectory = session.trajectory(item_id=item_id, repeat=repeat)
    session.see("reply", trajectory)
    return trajectory


def broken(exc: Exception) -> Ended:
    """The end of a rollout that broke in a way nobody foresaw: said, and never scored."""
    frame = traceback.extract_tb(exc.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    error = f"runtime: {type(exc).__name__}: {exc} at {where}"
    return Ended(StopReason.ERROR, error, route=Route.CONSERVATIVE)


def rounds_of(session: Session) -> int:
    """The round limit: the profile's, or the pipeline's `max_rounds` where that is lower."""
    if session.agent.kind == "bare":
        return 1
    own = session.prepared.constraints.get("max_rounds")
    most = session.agent.limits.rounds
    return min(most, own.value) if own is not None else most


async def converse(session: Session) -> None:
    """The stages in order; returns once a reply passed, raises `Ended` when none can."""
    await load_context(session)
    assemble_prompt(session)
    for _ in range(rounds_of(session)):
        if session.meter.spent():
            raise Ended(StopReason.TIMEOUT, "the whole-trajectory limit ran out")
        if await one_round(session):
            return
    stop = StopReason.GATE_FAILED if session.gate_failed else StopReason.MAX_ROUNDS
    raise Ended(stop, "no reply passed within the round limit")
