"""The client side of a remote sandbox: an environment, and tools, that run in another process.

async with RemoteSandbox(url, token) as sandbox:
    env = RemoteEnvironment(sandbox)                 # reset and step as `Environment` has them
    tools = RemoteExecutor(sandbox, session)         # for a loop that runs here
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout

from harness_cli.errors import ToolError, UsageError
from harness_cli.records.episode import EpisodeRecord
from harness_cli.records.harness import Tool
from harness_cli.records.request import Request
from harness_cli.records.trajectory import ToolResult
from harness_cli.simulator.environment import Observation, Stepped

T = TypeVar("T")
CALL_S = 120.0


class RemoteSandbox:
    """A connection to one sandbox. Raises `UsageError` for what it refuses or does not answer."""

    def __init__(self, url: str, token: str, *, seconds: float = CALL_S) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._seconds = seconds
        self._http: ClientSession | None = None

    async def __aenter__(self) -> "RemoteSandbox":
        self._http = ClientSession(
            headers=self._headers, timeout=ClientTimeout(total=self._seconds)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._http is not None:
            await self._http.close()

    async def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """One request; the bytes of its answer."""
        if self._http is None:
            raise UsageError("the connection is not open", hint="`async with RemoteSandbox(…)`")
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._http.request(method, f"{self._url}{path}", data=data) as answer:
                found = await answer.read()
                if answer.status >= 400:
                    raise UsageError(f"the sandbox refused: {_message(found)}")
                return found
        except (ClientError, TimeoutError) as exc:
            raise UsageError(f"the sandbox does not answer: {type(exc).__name__}") from exc


class _Opened(msgspec.Struct):
    session: str
    observation: Observation


class RemoteEnvironment:
    """A room in another process, with the interface of `Environment`."""

    def __init__(self, sandbox: RemoteSandbox, settings: Mapping[str, Any] | None = None) -> None:
        self._sandbox = sandbox
        self._settings = dict(settings or {})
        self.session: str | None = None
        self.done = True

    async def reset(self, seed: int, *, group: str | None = None, rollout: int = 0) -> Observation:
        """Begin an episode in a session of its own; the one before is closed."""
        await self.close()
        body = {"seed": seed, "group": group, "rollout": rollout, "settings": self._settings}
        opened = msgspec.json.decode(
            await self._sandbox.ask("POST", "/v1/sessions", body), type=_Opened
        )
        self.session, self.done = opened.session, False
        return opened.observation

    async def step(self, action: Mapping[str, Any]) -> Stepped:
        """Give the policy's next answer, an assistant message."""
        answer = await self._sandbox.ask("POST", f"{self._path()}/step", {"message": action})
        stepped = msgspec.json.decode(answer, type=Stepped)
        self.done = stepped.done
        return stepped

    async def record(self) -> EpisodeRecord:
        """The episode so far."""
        answer = await self._sandbox.ask("GET", f"{self._path()}/record")
        return msgspec.json.decode(answer, type=EpisodeRecord)

    async def close(self) -> None:
        """End the session."""
        if self.session is not None:
            path, self.session, self.done = self._path(), None, True
            try:
                await self._sandbox.ask("DELETE", path)
            except UsageError:  # it ended by itself: its time was up
                return

    def _path(self) -> str:
        if self.session is None:
            raise UsageError("there is no session", hint="`reset` opens one")
        return f"/v1/sessions/{self.session}"


class RemoteExecutor:
    """Runs the tools of one session: stateful tools there, the loop here (AR)."""

    def __init__(self, sandbox: RemoteSandbox, session: str) -> None:
        self._sandbox, self._session = sandbox, session

    async def call(self, tool: Tool, arguments: dict[str, Any], request: Request) -> ToolResult:  # noqa: ARG002  the session has its own
        """One call; raises a typed `ToolError` for what goes wrong."""
        back = {theirs: ours for ours, theirs in tool.argument_names.items()}
        given = {back.get(k, k): v for k, v in arguments.items()}
        path = f"/v1/sessions/{self._session}/tools/{tool.name}"
        try:
            answer = await self._sandbox.ask("POST", path, {"arguments": given})
        except UsageError as exc:
            raise ToolError.of("unavailable", str(exc)) from exc
        result = msgspec.json.decode(answer, type=ToolResult)
        if result.error is not None:
            raise ToolError.of(result.error.value, result.content)
        return result

    async def close(self) -> None:
        """The session is the client's to close."""


def _message(body: bytes) -> str:
    try:
        error = msgspec.json.decode(body)["error"]
        return f"{error['type']}: {error['message']}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return body[:200].decode("utf-8", "replace")
