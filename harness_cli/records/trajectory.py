"""The record of one rollout: what was asked, said, called and checked, step by step."""

from enum import StrEnum
from typing import Any, Literal

import msgspec

from harness_cli.records.chat import ChatReply, Message


class StopReason(StrEnum):
    """Why the agent loop ended."""

    COMPLETED = "completed"
    """The stop gate let a reply pass."""
    REFUSED = "refused"
    """The policy called the built-in refusal and a reply (or silence) followed from it."""
    MAX_ROUNDS = "max_rounds"
    TIMEOUT = "timeout"
    """The whole-trajectory limit ran out."""
    GATE_FAILED = "gate_failed"
    """The stop gate objected until its retries were spent."""
    LOOP = "loop"
    """The loop-stop check ended a rollout that repeated itself."""
    PROVIDER_ERROR = "provider_error"
    ERROR = "error"
    """A boundary broke in another way, see `Trajectory.error`."""


class Route(StrEnum):
    """Where the reply came from."""

    NORMAL = "normal"
    COMPACT = "compact_fallback"
    CONSERVATIVE = "conservative"
    SUPPRESSED = "suppressed"


class ToolErrorKind(StrEnum):
    """Typed tool errors of FORMATS."""

    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"
    NOT_FOUND = "not_found"
    INVALID_ARGUMENTS = "invalid_arguments"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool gave back. `content` is what the policy is shown."""

    ok: bool
    content: str
    structured: Any = None
    error: ToolErrorKind | None = None


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call: the model's text, the parsed arguments, the result, the time it took."""

    id: str
    name: str
    arguments_raw: str
    arguments: dict[str, Any] | None = None
    """None when the text was no JSON object."""
    executor: str = ""
    result: ToolResult
    latency_s: float = 0.0
    cached: bool = False


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One hook that had something to say."""

    hook: str
    event: str
    outcome: Literal["allow", "rewrite", "retry", "deny", "fallback", "suppress", "failed"]
    check: str | None = None
    reason: str = ""
    step: int | None = None
    latency_s: float = 0.0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One model call and the tool calls it asked for."""

    index: int
    messages: tuple[Message, ...]
    """The messages that are new since the step before (all of them in step 0)."""
    tools_digest: str = ""
    reply: ChatReply
    calls: tuple[ToolCall, ...] = ()
    hooks: tuple[HookEvent, ...] = ()
    fallback: bool = False
    """The per-call fallback policy answered."""
    error: str | None = None
    """`kind: message` of the provider error that the fallback replaced."""


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one rollout."""

    schema: int = 1
    request_id: str
    item_id: str | None = None
    repeat: int = 0
    agent: Literal["harness", "react", "bare"] = "harness"
    harness_id: str = ""
    policy_id: str = ""
    """name@digest of the policy."""
    steps: tuple[Step, ...] = ()
    hooks: tuple[HookEvent, ...] = ()
    """Hooks of `request` and `after_reply`; all others stand with the step they judged."""
    tools_offered: tuple[str, ...] = ()
    skills_loaded: tuple[str, ...] = ()
    reply: str = ""
    """What is said; empty when suppressed."""
    tail: tuple[Message, ...] = ()
    """Messages behind the last answer of an imported dialogue: how the user ended it."""
    channel: str = "public"
    actions: tuple[dict[str, Any], ...] = ()
    """Beside the reply: show an image, move a product. Judged for grounding."""
    stop: StopReason = StopReason.COMPLETED
    route: Route = Route.NORMAL
    error: str | None = None
    """`boundary: message` of what broke, when the stop reason is an error."""
    wall_s: float = 0.0
    profile: str = "offline"
    versions: dict[str, str] = {}

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every tool call, in order."""
        return tuple(call for step in self.steps for call in step.calls)

    @property
    def fell_back(self) -> bool:
        """Something stood in for the first policy's own answer: a miss in attainment.

        A refusal is the policy's own decision, also where silence follows from it.
        """
        stood_in = self.route is not Route.NORMAL and self.stop is not StopReason.REFUSED
        return stood_in or any(s.fallback for s in self.steps)

    @property
    def errored(self) -> bool:
        """The rollout broke: no reply that a judge could grade came out of it."""
        return self.stop in (StopReason.PROVIDER_ERROR, StopReason.ERROR)
