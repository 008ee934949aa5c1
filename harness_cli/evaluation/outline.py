"""A trajectory without its texts: what states, metrics and assertions rest on, decoded in a tenth
of the time."""

from typing import Any, cast

import msgspec

from harness_cli.records.trajectory import Route, StopReason, ToolErrorKind, Trajectory
from harness_cli.store.runs import Key

_TRAJECTORY = b',"trajectory":{'


class _Usage(msgspec.Struct, frozen=True, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Reply(msgspec.Struct, frozen=True, gc=False):
    usage: _Usage = _Usage()
    cost: float | None = None
    cached: bool = False
    ttft_s: float | None = None
    finish_reason: str = "stop"


class _ToolResult(msgspec.Struct, frozen=True, gc=False):
    error: ToolErrorKind | None = None


class _Call(msgspec.Struct, frozen=True, gc=False):
    name: str
    result: _ToolResult
    arguments_raw: str
    arguments: dict[str, Any] | None = None
    executor: str = ""
    cached: bool = False


class _Hook(msgspec.Struct, frozen=True, gc=False):
    hook: str
    outcome: str


class _Step(msgspec.Struct, frozen=True, gc=False):
    reply: _Reply
    calls: tuple[_Call, ...] = ()
    hooks: tuple[_Hook, ...] = ()
    fallback: bool = False


class Outline(msgspec.Struct, frozen=True, gc=False):
    """What the scores of an item rest on; the fields are `Trajectory`'s. Whatever an assertion
    looks at must stand here: a test goes through all of them."""

    repeat: int = 0
    agent: str = "harness"
    steps: tuple[_Step, ...] = ()
    hooks: tuple[_Hook, ...] = ()
    skills_loaded: tuple[str, ...] = ()
    reply: str = ""
    stop: StopReason = StopReason.COMPLETED
    route: Route = Route.NORMAL
    error: str | None = None
    wall_s: float = 0.0
    calls: tuple[_Call, ...] = ()
    """`Trajectory.calls`, which half a dozen metrics ask for: put together once."""

    def __post_init__(self) -> None:
        made = tuple([call for step in self.steps for call in step.calls])
        msgspec.structs.force_setattr(self, "calls", made)

    fell_back = Trajectory.fell_back
    errored = Trajectory.errored


class _Outlined(msgspec.Struct, frozen=True, gc=False):
    trajectory: Outline


_key = msgspec.json.Decoder(Key).decode
_outline = msgspec.json.Decoder(_Outlined).decode


def outline_of(data: bytes) -> Trajectory:
    """The rollout of a trajectory record's JSON as far as scores need it."""
    return cast("Trajectory", _outline(data).trajectory)


def named(data: bytes) -> tuple[str, int]:
    """Item and repeat of a trajectory record, which come before the trajectory itself."""
    start = data[: data.index(_TRAJECTORY)] + b"}"
    key = _key(start)
    return key.item, key.repeat
