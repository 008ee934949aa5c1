"""Blind annotation as a page on loopback: forms alone, no script, nothing loaded from anywhere.

`application` is mounted below a path that starts with the token, here or by `harness view`. A
decision is on the disk before the next pair is shown.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from harness_cli.errors import HarnessError, Locked, UsageError
from harness_cli.evaluation.blind.annotations import (
    annotator_name,
    fault_of,
    opened,
    read_annotations,
)
from harness_cli.evaluation.blind.make import read_sheet
from harness_cli.evaluation.blind.markup import CSP, Typed, page_done, page_of, page_problem
from harness_cli.records.blind import Annotation, BlindSheet

BODY_LIMIT = 64 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": CSP,
    "Cache-Control": "no-store",
    # `no-referrer` would make browsers send `Origin: null` with a form of ours.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def application(folder: Path, token: str, annotator: str | None = None) -> web.Application:
    """The annotation page of one blind test, to be mounted below `/<token>/…/`.

    It answers requests of this machine's own browser whose path starts with the token; who
    annotates is the user of this machine unless a name is given.
    """
    page = _Page(folder, token, annotator_name(annotator))
    app = web.Application(client_max_size=BODY_LIMIT, middlewares=[page.guard])
    app.router.add_get("/", page.show)
    app.router.add_post("/", page.decide)
    return app


@dataclass(slots=True)
class _Page:
    folder: Path
    token: str
    annotator: str
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def guard(self) -> Middleware:
        """The check in front of both handlers."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            refused = refusal(request, self.token)
            if refused is not None:
                return refused
            try:
                answer = await handler(request)
            except HarnessError as exc:
                status = 409 if isinstance(exc, Locked) else 500
                answer = _html(page_problem(str(exc), exc.hint), status)
            answer.headers.update(HEADERS)
            return answer

        return guarded

    async def show(self, request: web.Request) -> web.StreamResponse:
        """The next open pair, or the one asked for with `?pair=`."""
        sheet, latest = await asyncio.to_thread(self._read)
        return self._shown(sheet, latest, request.query.get("pair"))

    async def decide(self, request: web.Request) -> web.StreamResponse:
        """Keep one decision, then the next pair; what is wrong is said beside what was typed."""
        form = await request.post()
        said = {name: str(form.get(name, "")) for name in ("pair", "choice", "reason", "tag")}
        sheet, latest = await asyncio.to_thread(self._read)
        fault = fault_of(sheet, **said)
        if fault is not None:
            if said["pair"] not in {pair.id for pair in sheet.pairs}:
                return _html(page_problem(fault, "open the page again"), 422)
            typed = Typed(said["choice"], said["reason"], said["tag"], fault)
            return self._shown(sheet, latest, said["pair"], typed, status=422)
        async with self._writing:
            await asyncio.to_thread(self._keep, sheet, said)
        raise web.HTTPSeeOther(".", headers=HEADERS)

    def _shown(
        self,
        sheet: BlindSheet,
        latest: dict[str, Annotation],
        wanted: str | None,
        typed: Typed | None = None,
        *,
        status: int = 200,
    ) -> web.Response:
        waiting = [p for p in sheet.pairs if p.id not in latest and not p.identical]
        pair = next((p for p in sheet.pairs if p.id == wanted), None)
        if wanted is not None and pair is None:
            return _html(page_problem(f"no pair `{wanted}`", "open the page again"), 404)
        pair = pair or next(iter(waiting), None)
        if pair is None:
            return _html(page_done(sheet, latest), status)
        if typed is None and (known := latest.get(pair.id)) is not None:
            typed = Typed(known.choice, known.reason, known.tag)
        return _html(page_of(sheet, pair, latest, len(waiting), typed or Typed()), status)

    def _read(self) -> tuple[BlindSheet, dict[str, Annotation]]:
        return read_sheet(self.folder), read_annotations(self.folder).get(self.annotator, {})

    def _keep(self, sheet: BlindSheet, said: dict[str, str]) -> None:
        with opened(self.folder, sheet, self.annotator) as log:
            log.add(
                said["pair"], said["choice"], reason=said["reason"], tag=said["tag"], via="page"
            )


def refusal(request: web.Request, token: str) -> web.Response | None:
    """Why a request is not answered: another host (DNS rebinding), origin or site, no token."""
    name = request.host if request.host.endswith("]") else request.host.rsplit(":", 1)[0]
    if name not in LOOPBACK:
        return web.Response(status=403, text=f"this server is not `{name}`\n")
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"http://{request.host}":
        return web.Response(status=403, text="requests of other origins are refused\n")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return web.Response(status=403, text="requests of other sites are refused\n")
    first = request.path.split("/")[1]
    if not secrets.compare_digest(first.encode(), token.encode()):
        return web.Response(status=404, text="no such page: use the whole address\n")
    return None


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


async def serve(
    folder: Path, annotator: str, port: int, started: Callable[[str], None], ended: asyncio.Event
) -> None:
    """Serve the page alone on 127.0.0.1 until `ended`; `started` gets the address.

    Raises `UsageError` for a port that cannot be had.
    """
    token = secrets.token_urlsafe(24)
    parent = web.Application(client_max_size=BODY_LIMIT)  # the parent's limit is what counts
    parent.add_subapp(f"/{token}/", application(folder, token, annotator))
    # No access log: its lines would hold the token.
    runner = web.AppRunner(parent, access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
        except OSError as exc:
            raise UsageError(
                f"port {port} cannot be had: {exc.strerror}", hint="--port 0 takes a free one"
            ) from exc
        started(f"http://127.0.0.1:{runner.addresses[0][1]}/{token}/")
        await ended.wait()
    finally:
        await runner.cleanup()
