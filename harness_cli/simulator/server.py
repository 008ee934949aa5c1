"""The simulator as a remote sandbox over HTTP: rollout workers there, rooms and tools here.

    harness serve sandbox [-C DIR] [--port N] [--sessions N] …
    python -m harness_cli.simulator.server [-C DIR] [--port N] [--sessions N] …

The second prints one line of JSON with its address and bearer token. Both serve until they are
ended, on loopback alone, and answer only requests that carry the token and name this machine.

    POST   /v1/sessions                     {seed, group?, rollout?, settings?} → observation
    POST   /v1/sessions/{id}/step           {message} → observation | null, finished, done
    GET    /v1/sessions/{id}                what is asked of the policy now
    GET    /v1/sessions/{id}/record         the episode so far, to be replayed
    GET    /v1/sessions/{id}/tools          definitions of the room's tools
    POST   /v1/sessions/{id}/tools/{name}   {arguments} → the tool's result, for loops elsewhere
    DELETE /v1/sessions/{id}
    GET    /v1/health                       needs no token, tells no secret
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from harness_cli.errors import HarnessError, UsageError
from harness_cli.harness.tools import offered
from harness_cli.simulator.rooms import Rooms, open_rooms
from harness_cli.simulator.sessions import (
    Bounds,
    Refused,
    Session,
    Sessions,
    Start,
    bounds_of,
)
from harness_cli.store.redact import Redactor

BODY_LIMIT: Final = 4 * 1024 * 1024
SWEEP_S: Final = 5.0
TOKEN: Final = "HARNESS_SANDBOX_TOKEN"
"""Environment variable with the bearer token; a fresh one is made where it is not set."""
LOOPBACK: Final = ("127.0.0.1", "localhost")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: dict[str, Any]


class _Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    arguments: dict[str, Any] = {}


class Sandbox:
    """The handlers over one process's sessions."""

    def __init__(self, rooms: Rooms, token: str, bounds: Bounds | None = None) -> None:
        self.sessions = Sessions(rooms, bounds)
        self._token = token
        self._rooms = rooms
        self._redactor = Redactor.from_environment()
        self._sweeper: asyncio.Task[None] | None = None
        self.closed = 0
        """Sessions that were open when serving ended."""

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[self._guard()])
        app.router.add_get("/v1/health", self.health)
        app.router.add_post("/v1/sessions", self.open)
        app.router.add_get("/v1/sessions/{id}", self.show)
        app.router.add_delete("/v1/sessions/{id}", self.close)
        app.router.add_post("/v1/sessions/{id}/step", self.step)
        app.router.add_get("/v1/sessions/{id}/record", self.record)
        app.router.add_get("/v1/sessions/{id}/tools", self.tools)
        app.router.add_post("/v1/sessions/{id}/tools/{name}", self.call)
        app.on_startup.append(self._start)
        app.on_cleanup.append(self._end)
        return app

    async def health(self, _: web.Request) -> web.Response:
        """What is served."""
        return _json(
            {
                "ok": True,
                "sessions": len(self.sessions),
                "most": self.sessions.bounds.sessions,
                "crashed": self.sessions.crashed,
                "expired": self.sessions.expired,
                "harness": self._rooms.draws.base.state.id,
                "catalogue": self._rooms.shop.world.digest,
            }
        )

    async def open(self, request: web.Request) -> web.Response:
        """A new session and its first question."""
        start = await _body(request, Start)
        session = await self.sessions.open(start)
        return _json({"session": session.id, "observation": session.seen}, status=201)

    async def show(self, request: web.Request) -> web.Response:
        """What a session waits for."""
        session = self._session(request)
        return _json(
            {
                "session": session.id,
                "done": session.environment.done,
                "observation": session.seen,
                "requests": len(session.environment.finished),
            }
        )

    async def step(self, request: web.Request) -> web.Response:
        """One action."""
        body = await _body(request, _Step)
        return _json(await self.sessions.step(request.match_info["id"], body.message))

    async def record(self, request: web.Request) -> web.Response:
        """The episode so far."""
        return _json(self._session(request).environment.record())

    async def tools(self, request: web.Request) -> web.Response:
        """The tools that can be called here; the loop's own ones cannot."""
        episode = self._session(request).environment.episode
        assert episode is not None
        state = episode.drawn.state
        own = {t.name for t in state.all_tools() if t.executor == "builtin"}
        found = [t for t in offered(state) if t["function"]["name"] not in own]
        return _json({"tools": found})

    async def call(self, request: web.Request) -> web.Response:
        """One tool."""
        body = await _body(request, _Call)
        info = request.match_info
        return _json(await self.sessions.call(info["id"], info["name"], body.arguments))

    async def close(self, request: web.Request) -> web.Response:
        """The end of a session."""
        if not await self.sessions.close(request.match_info["id"]):
            raise Refused(404, "no_session", "there is no such session, or it has ended")
        return web.Response(status=204)

    def _session(self, request: web.Request) -> Session:
        return self.sessions.get(request.match_info["id"])

    def _guard(self) -> Any:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                self._admit(request)
                return await handler(request)
            except web.HTTPException as exc:
                return self._error(exc.status, "http", exc.reason)
            except Refused as exc:
                return self._error(exc.status, exc.kind, str(exc), exc.hint)
            except UsageError as exc:
                return self._error(400, "bad_request", str(exc), exc.hint)
            except HarnessError as exc:
                return self._error(500, "failed", str(exc), exc.hint)

        return guarded

    def _admit(self, request: web.Request) -> None:
        """Refuse other hosts (DNS rebinding) and whoever has not the token."""
        host = request.host.rsplit(":", 1)[0]
        if host not in LOOPBACK:
            raise Refused(403, "forbidden", f"this sandbox is not `{host}`")
        if request.path == "/v1/health":
            return
        given = request.headers.get("Authorization", "")
        if not secrets.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            raise Refused(401, "unauthorized", "a bearer token is needed", hint=f"see {TOKEN}")

    def _error(self, status: int, kind: str, message: str, hint: str | None = None) -> web.Response:
        text = self._redactor.text(message)
        error = {"type": kind, "message": text, **({"hint": hint} if hint else {})}
        return _json({"error": error}, status=status)

    async def _start(self, _: web.Application) -> None:
        self._sweeper = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            await self.sessions.sweep()

    async def _end(self, _: web.Application) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self.closed = await self.sessions.close_all()


async def serve(
    sandbox: Sandbox,
    port: int,
    *,
    ready: Callable[[str], None],
    ended: asyncio.Event | None = None,
) -> int:
    """Serve on loopback until a signal, or `ended`; `ready` is told the address.

    Every session is closed then; how many were open. Raises `UsageError` for a port that is taken.
    """
    runner = web.AppRunner(sandbox.app(), shutdown_timeout=2.0, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, LOOPBACK[0], port).start()
        except OSError as exc:
            hint = "--port 0 takes a free one"
            raise UsageError(f"port {port} cannot be had: {exc.strerror}", hint=hint) from exc
        ready(f"http://{LOOPBACK[0]}:{runner.addresses[0][1]}")
        stop = ended or asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(name, stop.set)
        await stop.wait()
    finally:
        await runner.cleanup()
    return sandbox.closed


def token_of(environment: dict[str, str] | None = None) -> str:
    """The token of the environment, or a fresh one of 192 bits."""
    given = (os.environ if environment is None else environment).get(TOKEN, "")
    return given or secrets.token_urlsafe(24)


async def _body(request: web.Request, kind: Any) -> Any:
    """The body as what it must be. Raises `UsageError`."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise UsageError(f"the body cannot be read: {exc}") from exc


def _json(payload: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(payload), status=status, content_type="application/json"
    )


def main(argv: list[str] | None = None) -> int:
    """Parse, open the project, serve."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.simulator.server", description="A sandbox over HTTP."
    )
    parser.add_argument("-C", dest="folder", type=Path, default=Path(), help="the project")
    parser.add_argument("--harness", metavar="REV", help="its harness at this revision")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--no-rewards", action="store_true", help="score nothing")
    usual = Bounds()
    parser.add_argument("--sessions", type=int, default=usual.sessions, help="at most so many")
    parser.add_argument("--idle-s", type=float, default=usual.idle_s, help="closed when unused")
    parser.add_argument("--whole-s", type=float, default=usual.whole_s, help="longest life")
    parser.add_argument("--step-s", type=float, default=usual.step_s, help="longest action")
    chosen = parser.parse_args(argv)
    try:
        bounds = bounds_of(
            sessions=chosen.sessions,
            idle_s=chosen.idle_s,
            whole_s=chosen.whole_s,
            step_s=chosen.step_s,
        )
        rooms = open_rooms(chosen.folder, rev=chosen.harness, rewards=not chosen.no_rewards)
    except HarnessError as exc:
        return _refused(exc)
    token = token_of()

    def ready(url: str) -> None:
        sys.stdout.write(json.dumps({"url": url, "token": token, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()

    try:
        asyncio.run(serve(Sandbox(rooms, token, bounds), chosen.port, ready=ready))
    except UsageError as exc:
        return _refused(exc)
    return 0


def _refused(exc: HarnessError) -> int:
    sys.stderr.write(f"error: {exc}\n" + (f"hint: {exc.hint}\n" if exc.hint else ""))
    return 2


if __name__ == "__main__":
    sys.exit(main())
