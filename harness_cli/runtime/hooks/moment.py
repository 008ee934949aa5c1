"""What a hook is shown, what a check answers, and what all hooks of an event came to."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from harness_cli.records.chat import ChatReply
from harness_cli.records.harness import Constraint, Hook, HookEventName, Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import HookEvent, ToolCall, ToolResult


class Asked(msgspec.Struct, kw_only=True):
    """A tool call before it has a result. Hooks of `before_tool` may rewrite `arguments`."""

    id: str = ""
    name: str
    arguments_raw: str = ""
    arguments: dict[str, Any] | None = None
    problem: str = ""
    """Why the text was no JSON object."""
    tool: Tool | None = None
    """None: nothing of that name is offered."""
    errors: list[str] | None = None
    """What the tool's schema objects to; None until somebody asked."""


class Moment(msgspec.Struct, kw_only=True):
    """One lifecycle event of one rollout. A JSON file of it is what `harness hooks test` reads."""

    event: HookEventName
    request: Request = Request()
    session_id: str = ""
    harness_id: str = ""
    step: int | None = None
    reply: str = ""
    """The text proposed to be said; at `after_model` that of the answer."""
    answer: ChatReply | None = None
    """The model's answer (`after_model`)."""
    asked: list[Asked] = []
    """The tool calls of that answer."""
    call: Asked | None = None
    """The one call of `before_tool` and `after_tool`."""
    result: ToolResult | None = None
    """What it gave back (`after_tool`)."""
    calls: list[ToolCall] = []
    """Finished calls of the rollout, in order."""
    said: list[str] = []
    """Texts the model proposed before and hooks refused, in order."""
    skills: list[str] = []
    """Loaded reply skills and strategy skills, in order."""
    reply_skills: list[str] = []
    """Those of them that are reply skills."""
    refused: bool = False
    compact: bool = False
    """The text comes from the compact fallback, which has no tools and no skills."""
    constraints: dict[str, Constraint] = {}
    """Numeric constraints of the prompt pipeline in use."""

    def asked_calls(self) -> list[Asked]:
        """The calls the event is about: the one of a tool event, or all of the answer."""
        return self.asked if self.call is None else [self.call]


class Objection(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found wrong, and its repair where it knows one: a text, comments, arguments."""

    reason: str
    reply: str | None = None
    request: Request | None = None
    arguments: dict[str, Any] | None = None
    calls: tuple[int, ...] | None = None
    """Which calls of the answer it is about (`after_model`); None is the whole answer."""


Action = Literal["allow", "retry", "deny", "fallback", "suppress"]
STRENGTH: dict[str, int] = {"allow": 0, "retry": 1, "deny": 2, "fallback": 3, "suppress": 4}


@dataclass(slots=True)
class Ruling:
    """What follows from all hooks of one event."""

    action: Action = "allow"
    check: str | None = None
    messages: list[str] = field(default_factory=list)
    """For the policy or the observation, one per hook that objected."""
    calls: dict[int, str] = field(default_factory=dict)
    """Refused calls of an answer (`after_model`), each with its reason."""
    events: list[HookEvent] = field(default_factory=list)

    @property
    def message(self) -> str:
        """All messages as one text."""
        return "\n".join(self.messages)


@dataclass(slots=True)
class Ledger:
    """How often each hook has asked for another try in this rollout."""

    used: dict[str, int] = field(default_factory=dict)

    def retry(self, hook: Hook) -> bool:
        """Count one retry of this hook; False when its retries are spent."""
        count = self.used.get(hook.name, 0)
        self.used[hook.name] = count + 1
        return count < hook.max_retries
