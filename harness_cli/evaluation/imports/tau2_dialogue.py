"""τ²-bench messages: the agent's and the simulated user's calls told apart."""

from collections.abc import Sequence
from typing import Any

import msgspec

from harness_cli.errors import BadFile
from harness_cli.evaluation.imports.conversation import (
    Turn,
    raw_call,
)
from harness_cli.evaluation.imports.openai_messages import trajectory_of as recorded_trajectory
from harness_cli.records.chat import Usage
from harness_cli.records.trajectory import StopReason, Trajectory

STOPS = {
    "user_stop": StopReason.COMPLETED,
    "agent_stop": StopReason.COMPLETED,
    "max_steps": StopReason.MAX_ROUNDS,
    "too_many_errors": StopReason.LOOP,
    "timeout": StopReason.TIMEOUT,
}
"""Termination reason → stop; any other one ended the dialogue from outside."""


class Call(msgspec.Struct, frozen=True):
    """A tool call of either side."""

    name: str
    id: str | None = None
    arguments: Any = None
    requestor: str = "assistant"


class Tokens(msgspec.Struct, frozen=True):
    """Usage as litellm gives it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Message(msgspec.Struct, frozen=True):
    """One message, whatever its role."""

    role: str
    content: str | None = None
    tool_calls: tuple[Call, ...] | None = None
    tool_messages: tuple["Message", ...] | None = None
    """Several results in one, as newer versions write them."""
    id: str | None = None
    requestor: str | None = None
    error: bool | None = None
    reasoning: Any = None
    usage: Tokens | None = None
    cost: float | None = None
    raw_data: dict[str, Any] | None = None


def turns_of(messages: Sequence[Message], *, where: str) -> list[Turn]:
    """The dialogue in order. Raises `BadFile` for a role that there is not."""
    turns: list[Turn] = []
    for number, message in enumerate(messages, 1):
        parts = message.tool_messages or (message,)
        for part in parts:
            if part.role not in ("system", "user", "assistant", "tool"):
                raise BadFile(f"{where}: message {number}: the role `{part.role}` is not known")
            turns.append(_turn(part))
    return turns


def _turn(message: Message) -> Turn:
    usage = message.usage or Tokens()
    raw = message.raw_data or {}
    finish = raw.get("finish_reason")
    model = message.role == "assistant"
    return Turn(
        role=message.role,
        content=message.content,
        calls=tuple(raw_call(c.id or "", c.name, c.arguments) for c in message.tool_calls or ()),
        call_id=(message.id or "") if message.role == "tool" else "",
        name="user" if message.role == "tool" and message.requestor == "user" else "",
        error=message.error,
        reasoning=message.reasoning if isinstance(message.reasoning, str) else None,
        usage=Usage(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens),
        # A price that litellm does not know is written as 0; unknown is never 0 here.
        cost=message.cost if message.cost else None,
        finish=str(finish or ""),
        scripted=model and message.usage is None and not raw and not message.tool_calls,
    )


def trajectory_of(
    turns: Sequence[Turn],
    *,
    item_id: str,
    repeat: int,
    policy_id: str,
    termination: str,
    wall_s: float,
) -> Trajectory:
    """The record of one simulation; calls of the simulated user stay messages."""
    stop = STOPS.get(termination, StopReason.COMPLETED)
    ended = stop is StopReason.COMPLETED and termination in STOPS
    return recorded_trajectory(
        turns,
        item_id=item_id,
        repeat=repeat,
        policy_id=policy_id,
        stop=stop,
        error=None if ended else f"ended by {termination or 'an unnamed reason'}",
        wall_s=wall_s,
    )
