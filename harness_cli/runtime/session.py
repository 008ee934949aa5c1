"""The state of one rollout: what grows while it runs, and the trajectory it ends as."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from harness_cli.records.chat import ChatReply, Message
from harness_cli.records.harness import HookEventName
from harness_cli.records.request import Request
from harness_cli.records.trajectory import (
    HookEvent,
    Route,
    Step,
    StopReason,
    ToolCall,
    Trajectory,
)
from harness_cli.runtime.agent import Agent, CallLog
from harness_cli.runtime.clock import Meter
from harness_cli.runtime.hooks.moment import Ledger, Moment, Ruling
from harness_cli.runtime.hooks.run import run_hooks
from harness_cli.runtime.prepared import Prepared


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that happened, for whoever watches a rollout as it runs."""

    kind: Literal["prompt", "model", "tool", "hook", "reply"]
    step: int | None
    value: Any
    """Messages, a `ChatReply`, a `ToolCall`, a `HookEvent`, the `Trajectory`."""


Observe = Callable[[Seen], None]


class Ended(Exception):
    """The loop is over without a reply that passed: recovery takes over."""

    def __init__(
        self,
        stop: StopReason,
        error: str | None = None,
        *,
        route: Route = Route.COMPACT,
    ) -> None:
        super().__init__(error or stop.value)
        self.stop, self.error, self.route = stop, error, route


@dataclass(slots=True)
class Turn:
    """One model call that is still being worked on."""

    reply: ChatReply
    messages: tuple[Message, ...]
    fallback: bool = False
    error: str | None = None
    calls: list[ToolCall] = field(default_factory=list)


@dataclass(slots=True)
class Session:
    """One rollout. Only the modules of this room change it."""

    agent: Agent
    prepared: Prepared
    request: Request
    request_id: str
    log: CallLog
    meter: Meter
    observe: Observe | None = None
    messages: list[Message] = field(default_factory=list)
    recorded: int = 0
    """How many of `messages` stand in a step already."""
    steps: list[Step] = field(default_factory=list)
    turn: Turn | None = None
    turn_hooks: list[HookEvent] = field(default_factory=list)
    hooks: list[HookEvent] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Texts that the stop gate or `after_model` refused."""
    gate_failed: bool = False
    """The last round ended in a refused text."""
    skills: list[str] = field(default_factory=list)
    reply_skills: list[str] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    model_calls: int = 0
    tool_calls: int = 0
    max_tokens: int = 0
    refused: bool = False
    answer: dict[str, Any] | None = None
    """Arguments of the first call of a tool that answers (`_meta.harness.operation: answer`)."""
    compact: bool = False
    reply: str = ""
    stop: StopReason = StopReason.COMPLETED
    route: Route = Route.NORMAL
    error: str | None = None

    def see(self, kind: Literal["prompt", "model", "tool", "hook", "reply"], value: Any) -> None:
        """Tell the watcher."""
        if self.observe is not None:
            step = None if kind in ("prompt", "reply") else len(self.steps)
            self.observe(Seen(kind, step, value))

    def moment(self, event: HookEventName, **of_event: Any) -> Moment:
        """What hooks of an event are shown; lists are the session's own and only read."""
        return Moment(
            event=event,
            request=self.request,
            session_id=self.request_id,
            harness_id=self.agent.state.id,
            step=None if event in ("request", "after_reply") else len(self.steps),
            calls=self.calls,
            said=self.said,
            skills=self.skills,
            reply_skills=self.reply_skills,
            refused=self.refused,
            compact=self.compact,
            constraints=self.prepared.constraints,
            **of_event,
        )

    async def ask_hooks(self, event: HookEventName, **of_event: Any) -> tuple[Ruling, Moment]:
        """Run the hooks of an event; `suppress` and `fallback` end the loop here."""
        hooks = self.prepared.hooks[event]
        if not hooks:
            return _NOTHING, Moment(event=event, request=self.request, **of_event)
        moment = self.moment(event, **of_event)
        ruling = await run_hooks(
            hooks,
            moment,
            self.ledger,
            seconds=self.hook_seconds(event),
            workshop=self.prepared.workshop,
        )
        return ruling, moment

    def hook_seconds(self, event: HookEventName) -> float:
        """The bound of one hook. A reply that is ready is checked even when time is up."""
        seconds = self.agent.limits.hook_s
        if event in ("before_reply", "after_reply") or self.compact:
            return seconds
        return self.meter.within_whole(seconds)

    def keep_hooks(self, ruling: Ruling, *, of_step: bool) -> None:
        """Record what hooks said, with the step or with the trajectory."""
        (self.turn_hooks if of_step else self.hooks).extend(ruling.events)
        for event in ruling.events:
            self.see("hook", event)

    def close_turn(self) -> None:
        """Make a step of the model call that was worked on."""
        turn = self.turn
        if turn is None:
            return
        self.steps.append(
            Step(
                index=len(self.steps),
                messages=turn.messages,
                tools_digest="" if self.compact else self.prepared.tools_digest,
                reply=turn.reply,
                calls=tuple(turn.calls),
                hooks=tuple(self.turn_hooks),
                fallback=turn.fallback,
                error=turn.error,
            )
        )
        self.turn = None
        self.turn_hooks = []

    def trajectory(self, *, item_id: str | None, repeat: int) -> Trajectory:
        """The record of the rollout."""
        self.close_turn()
        self.hooks.extend(self.turn_hooks)
        return Trajectory(
            request_id=self.request_id,
            item_id=item_id,
            repeat=repeat,
            agent=self.agent.kind,
            harness_id=self.agent.state.id,
            policy_id=self.agent.policy.id,
            steps=tuple(self.steps),
            hooks=tuple(self.hooks),
            tools_offered=tuple(d["function"]["name"] for d in self.prepared.definitions),
            skills_loaded=tuple(self.skills),
            reply=self.reply,
            channel=self.request.channel,
            actions=actions_of(self.calls, self.prepared),
            stop=self.stop,
            route=self.route,
            error=self.error,
            wall_s=self.meter.wall_s(),
            profile=self.agent.profile,
            versions=VERSIONS,
        )


def actions_of(calls: list[ToolCall], prepared: Prepared) -> tuple[dict[str, Any], ...]:
    """What is done beside the reply, from the calls that succeeded.

    A tool says so with `_meta.harness.action`; the two of a live room are known by operation.
    """
    found: list[dict[str, Any]] = []
    for call in calls:
        tool = prepared.tools.get(call.name)
        if tool is None or not call.result.ok:
            continue
        kind = tool.meta.get("harness.action") or ACTIONS.get(tool.operation)
        if kind:
            result = call.result.structured if isinstance(call.result.structured, dict) else {}
            found.append({**result, "type": kind, "tool": call.name, "arguments": call.arguments})
    return tuple(found)


ACTIONS = {"change_presentation_order": "move_product", "select_product_image": "show_image"}
"""Operation of a tool → the action that its success is."""


def _version() -> str:
    try:
        return version("harness-evolution")
    except PackageNotFoundError:
        return "unknown"


VERSIONS = {"harness": _version(), "python": platform.python_version()}
_NOTHING = Ruling()
