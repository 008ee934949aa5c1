"""A policy behind an OpenAI-compatible endpoint, for this machine only.

It answers requests that name a loopback host and carry JSON. A page in a browser can send neither
to it unasked, so no site can talk to a served policy behind its user's back.
"""

import asyncio
import contextlib
import itertools
import sys
import time
from typing import Any, Final

import msgspec
from aiohttp import web

from harness_cli.errors import HarnessError, ProviderError, UsageError
from harness_cli.models.base import Deadline, Policy, Telling
from harness_cli.records.chat import ChatReply, ChatRequest, Usage
from harness_cli.serving.admission import Doorkeeper, Refused
from harness_cli.serving.meters import CONTENT_TYPE, Meters, drafting_text
from harness_cli.serving.wire import chunks, completion, error_body, request_of, role_chunk
from harness_cli.store.redact import Redactor

PING_S: Final = 5.0
"""A comment line is sent this often while the policy thinks: clients end silent streams."""
BODY_LIMIT: Final = 64 * 1024 * 1024
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_STATUS: Final = {
    "rate_limit": 429,
    "auth": 502,
    "bad_request": 400,
    "timeout": 504,
    "stalled": 504,
    "budget": 503,
}


class ServedPolicy:
    """The handlers of one policy and what they counted."""

    def __init__(
        self, policy: Policy, name: str, *, door: Doorkeeper | None = None, model: str = ""
    ) -> None:
        self.policy, self.name = policy, name
        self.model = model
        """The weights it answers with, where they have a place."""
        self.door = door or Doorkeeper(None)
        self.meters = Meters()
        self.started = time.time()
        self.requests = 0
        self.failures = 0
        self._numbers = itertools.count(1)
        self._redactor = Redactor.from_environment()

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[local_only])
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/health", self.health)
        app.router.add_get("/metrics", self.metrics)
        for path in ("/model_info", "/get_model_info", "/server_info", "/get_server_info"):
            app.router.add_get(path, self.model_info)
        app.on_cleanup.append(self._close)
        return app

    async def health(self, _: web.Request) -> web.Response:
        """What serves, and for how long."""
        return _json(
            {
                "status": "ok",
                "policy": self.name,
                "policy_id": self.policy.id,
                "harness_id": None,  # the harness runs at the client
                "uptime_s": round(time.time() - self.started, 1),
                "requests": self.requests,
                "failures": self.failures,
            }
        )

    async def metrics(self, _: web.Request) -> web.Response:
        """Counters, gauges and one histogram in Prometheus' text format."""
        door = self.door
        text = self.meters.text(
            model=self.name, running=door.running, waiting=door.waiting, refused=door.refused
        )
        text += drafting_text(self.name, getattr(self.policy, "draft_counts", None))
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def model_info(self, _: web.Request) -> web.Response:
        """What routers and `harness serve status` ask: which weights answer here."""
        return _json(
            {
                # A bare name would have the router ask a hub on the net for its tokenizer.
                "model_path": self.model,
                "served_model_name": self.name,
                "weight_version": self.policy.id,
                "is_generation": True,
            }
        )

    async def models(self, _: web.Request) -> web.Response:
        """The one model there is."""
        model = {
            "id": self.name,
            "object": "model",
            "created": int(self.started),
            "owned_by": "harness",
        }
        return _json({"object": "list", "data": [model]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        """One chat completion, streamed where the body says so."""
        number, begun = next(self._numbers), time.perf_counter()
        self.requests += 1
        said = _Said()
        try:
            async with self.door.inside():
                return await self._answer(request, number, said)
        except Refused as exc:
            return self._failed(number, said.refused(429), "rate_limit", str(exc), "queue_full")
        finally:
            seconds = time.perf_counter() - begun
            self.meters.answered(said.status, seconds, said.usage)
            self._log(f"{number} answered in {seconds * 1000:.0f} ms")

    async def _answer(self, request: web.Request, number: int, said: "_Said") -> web.StreamResponse:
        try:
            body = await self._body(request)
            asked = request_of(body)
        except UsageError as exc:
            told = str(exc)
            return self._failed(number, said.refused(400), "invalid_request_error", told)
        model = body.get("model")
        if model not in (None, "", self.name, self.policy.id):
            told = f"the model `{model}` is not served here, `{self.name}` is"
            status = said.refused(404)
            return self._failed(number, status, "invalid_request_error", told, "model_not_found")
        options = body.get("stream_options")
        usage = isinstance(options, dict) and bool(options.get("include_usage"))
        try:
            if body.get("stream"):
                return await self._streamed(request, asked, number, said, with_usage=usage)
            reply = await self.policy.complete(asked, Deadline())
            said.usage = reply.usage
            return _json(completion(reply, number=number, served=self.policy.id))
        except ProviderError as exc:
            status = said.refused(_STATUS.get(exc.kind, 502))
            return self._failed(number, status, exc.kind, str(exc), exc.kind)
        except HarnessError as exc:
            return self._failed(number, said.refused(500), "server_error", str(exc))

    async def _streamed(
        self,
        request: web.Request,
        asked: ChatRequest,
        number: int,
        said: "_Said",
        *,
        with_usage: bool,
    ) -> web.StreamResponse:
        began = asyncio.Event()
        thinking = asyncio.ensure_future(self._complete(asked, began))
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        try:
            # An answer or a failure that comes at once still gets a status of its own.
            await _either(thinking, began)
            if thinking.done():
                thinking.result()
            await response.prepare(request)
            told = False
            while not thinking.done():
                if began.is_set() and not told:
                    # As SGLang does: the role once the first token is there, and not before.
                    await response.write(_event(role_chunk(number, self.name, self.policy.id)))
                    told = True
                await response.write(b": thinking\n\n")
                await _either(thinking, None if told else began)
            await self._send(response, thinking, number, said, with_usage=with_usage, told=told)
            await response.write_eof()
        finally:
            if not thinking.done():
                thinking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await thinking
        return response

    async def _complete(self, asked: ChatRequest, began: asyncio.Event) -> ChatReply:
        """The answer; `began` is set with its first token where the policy tells of it."""
        if isinstance(self.policy, Telling):
            return await self.policy.complete(asked, Deadline(), began=began.set)
        return await self.policy.complete(asked, Deadline())

    async def _send(
        self,
        response: web.StreamResponse,
        thinking: "asyncio.Future[ChatReply]",
        number: int,
        said: "_Said",
        *,
        with_usage: bool,
        told: bool,
    ) -> None:
        try:
            reply = thinking.result()
            said.usage = reply.usage
        except HarnessError as exc:
            # The status is sent already: the failure is an event of the stream.
            self.failures += 1
            said.refused(500)
            kind = getattr(exc, "kind", "server_error")
            await response.write(_event(error_body(self._redactor.text(str(exc)), kind, kind)))
            return
        made = chunks(reply, number=number, served=self.policy.id, with_usage=with_usage)
        for chunk in itertools.islice(made, 1 if told else 0, None):  # the role was told already
            await response.write(_event(chunk))
        await response.write(b"data: [DONE]\n\n")

    async def _body(self, request: web.Request) -> Any:
        if request.content_type != "application/json":
            raise UsageError("the content type must be application/json")
        try:
            return msgspec.json.decode(await request.read())
        except msgspec.DecodeError as exc:
            raise UsageError(f"the body is no JSON: {exc}") from exc

    def _failed(
        self, number: int, status: int, kind: str, message: str, code: str | None = None
    ) -> web.Response:
        self.failures += 1
        told = self._redactor.text(message)
        self._log(f"{number} failed with {status}: {told}")
        return _json(error_body(told, kind, code), status=status)

    @staticmethod
    def _log(text: str) -> None:
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {text}\n")
        sys.stderr.flush()

    async def _close(self, _: web.Application) -> None:
        await self.policy.close()


async def _either(thinking: "asyncio.Future[ChatReply]", began: asyncio.Event | None) -> None:
    """Until the answer, or its first token, or the time for a sign of life."""
    first = None if began is None else asyncio.ensure_future(began.wait())
    try:
        await asyncio.wait(
            {thinking, *(() if first is None else (first,))},
            timeout=PING_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
    finally:
        if first is not None:
            first.cancel()


class _Said:
    """How one request ended, for the meters."""

    status = 200
    usage: Usage | None = None

    def refused(self, status: int) -> int:
        """It ended in this status."""
        self.status = status
        return status


@web.middleware
async def local_only(request: web.Request, handler: Any) -> web.StreamResponse:
    """Refuse what was addressed to another name than this machine's own (DNS rebinding)."""
    host = (
        (request.host or "").rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
    )
    if host not in _LOOPBACK:
        return _json(error_body(f"this endpoint is not `{host}`", "forbidden"), status=403)
    answer: web.StreamResponse = await handler(request)
    return answer


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"


def _json(payload: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(payload), status=status, content_type="application/json"
    )
