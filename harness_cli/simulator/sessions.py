"""Sessions of a sandbox: rooms by id, bounded in number and time, each its own when one breaks."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from harness_cli.errors import HarnessError, UsageError
from harness_cli.harness.tools import argument_errors
from harness_cli.records.bounds import AtLeastOne, Positive
from harness_cli.records.trajectory import ToolErrorKind, ToolResult
from harness_cli.runtime.hooks.run import refused
from harness_cli.runtime.toolbox import run_tool
from harness_cli.simulator.environment import Environment, Observation, changed
from harness_cli.simulator.live.settings import Settings
from harness_cli.simulator.rooms import Rooms

T = TypeVar("T")
log = logging.getLogger("harness.simulator")


class Bounds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What keeps a sandbox alive under clients that forget, hang or flood."""

    sessions: AtLeastOne = 1000
    idle_s: Positive = 600.0
    """A session nobody asked anything for so long is closed."""
    whole_s: Positive = 3600.0
    """The longest a session lives."""
    step_s: Positive = 60.0
    """One action with everything that follows from it; beyond it the session is closed."""


def bounds_of(**given: float) -> Bounds:
    """Bounds as someone names them. Raises `UsageError` for one that bounds nothing."""
    try:
        return msgspec.convert(given, Bounds)
    except msgspec.ValidationError as exc:
        raise UsageError(f"bounds of a sandbox: {exc}", hint="each is above 0") from exc


class Refused(HarnessError):
    """A request that the sandbox does not serve; `status` says why, as HTTP has it."""

    def __init__(self, status: int, kind: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status, self.kind = status, kind


class Start(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client asks a session for."""

    seed: int
    group: str | None = None
    rollout: int = 0
    settings: dict[str, Any] = {}
    """What differs from the sandbox's own settings."""


@dataclass
class Session:
    """One room of one client."""

    id: str
    environment: Environment
    begun: float
    used: float
    seen: Observation | None = None
    busy: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Sessions:
    """The open rooms of one process."""

    def __init__(
        self,
        rooms: Rooms,
        bounds: Bounds | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rooms, self.bounds = rooms, bounds or Bounds()
        self._clock = clock
        self._open: dict[str, Session] = {}
        self.crashed = 0
        self.expired = 0

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, start: Start) -> Session:
        """A new session, reset. Raises `Refused` when there are too many, `UsageError`."""
        await self.sweep()
        if len(self._open) >= self.bounds.sessions:
            raise Refused(
                429, "full", f"{len(self._open)} sessions are open, which is the most",
                hint="close sessions that are done, or raise the bound",
            )  # fmt: skip
        rooms = self.rooms
        settings = merged(rooms.settings, start.settings)
        environment = Environment(
            rooms.shop,
            rooms.draws,
            settings,
            rewards=rooms.rewards,
            viewer=rooms.viewer(settings),
        )
        now = self._clock()
        session = Session(secrets.token_urlsafe(12), environment, now, now)
        self._open[session.id] = session
        session.seen = await self._guarded(
            session, environment.reset(start.seed, group=start.group, rollout=start.rollout)
        )
        return session

    def get(self, name: str) -> Session:
        """The session of that id. Raises `Refused` where there is none, or its time is up."""
        session = self._open.get(name)
        if session is None or self._over(session):
            raise Refused(404, "no_session", f"there is no session `{name[:40]}`, or it has ended")
        return session

    async def step(self, name: str, message: Mapping[str, Any]) -> Any:
        """One action in a session."""
        session = self.get(name)
        stepped = await self._guarded(session, session.environment.step(message))
        session.seen = stepped.observation
        return stepped

    async def call(self, name: str, tool_name: str, arguments: dict[str, Any]) -> ToolResult:
        """One tool of the room at its present request, without the loop: for clients whose own
        loop runs elsewhere. Whatever goes wrong is a typed result."""
        session = self.get(name)
        return await self._guarded(session, self._call(session, tool_name, arguments))

    async def _call(
        self, session: Session, tool_name: str, arguments: dict[str, Any]
    ) -> ToolResult:
        episode = session.environment.episode
        if episode is None or episode.asked is None or session.environment.done:
            return refused(ToolErrorKind.UNAVAILABLE, "the episode is over")
        tool = next((t for t in episode.drawn.state.all_tools() if t.name == tool_name), None)
        if tool is None or tool.executor == "builtin":
            return refused(ToolErrorKind.NOT_FOUND, f"no tool of the room is named `{tool_name}`")
        wrong = argument_errors(tool, arguments)
        if wrong:
            return refused(ToolErrorKind.INVALID_ARGUMENTS, "; ".join(wrong[:3]))
        names = tool.argument_names
        served = any(tool_name in listed for listed in episode.drawn.state.lock.servers.values())
        return await run_tool(
            episode.executors,
            tool,
            {names.get(k, k): v for k, v in arguments.items()},
            episode.asked.item.request,
            self.bounds.step_s,
            kind="mcp" if served and tool.executor == "sandbox" else None,
        )

    async def close(self, name: str) -> bool:
        """End a session; False where there was none."""
        session = self._open.pop(name, None)
        if session is None:
            return False
        await session.environment.close()
        return True

    async def sweep(self) -> int:
        """Close what is idle or old; how many that were."""
        over = [s.id for s in self._open.values() if self._over(s)]
        for name in over:
            await self.close(name)
        self.expired += len(over)
        return len(over)

    async def close_all(self) -> int:
        """End every session; how many there were."""
        names = list(self._open)
        for name in names:
            await self.close(name)
        await self.rooms.close()
        return len(names)

    def _over(self, session: Session) -> bool:
        now = self._clock()
        idle = not session.busy and now - session.used > self.bounds.idle_s
        return idle or now - session.begun > self.bounds.whole_s

    async def _guarded(self, session: Session, work: Awaitable[T]) -> T:
        """Work in one session: alone, in its time; what breaks it closes it and no other one."""
        if session.busy:
            if asyncio.iscoroutine(work):
                work.close()
            raise Refused(409, "busy", f"session `{session.id}` is still at its last action")
        session.busy = True
        try:
            async with asyncio.timeout(self.bounds.step_s):
                return await work
        except TimeoutError:
            await self.close(session.id)
            raise Refused(
                504, "timeout", f"the action took longer than {self.bounds.step_s:g} s"
            ) from None
        except UsageError:
            if session.environment.episode is None or session.seen is None:
                await self.close(session.id)
            raise
        except HarnessError:
            raise
        except Exception as exc:  # one session's crash is never another's
            self.crashed += 1
            log.exception("session %s crashed", session.id)
            await self.close(session.id)
            raise Refused(500, "crashed", f"the session broke: {type(exc).__name__}") from exc
        finally:
            session.busy = False
            session.used = self._clock()


def merged(own: Settings, asked: Mapping[str, Any]) -> Settings:
    """The sandbox's settings with what a client wants otherwise. Raises `UsageError`."""
    try:
        return msgspec.convert({**changed(own), **asked}, Settings)
    except msgspec.ValidationError as exc:
        raise UsageError(f"`settings`: {exc}") from exc
