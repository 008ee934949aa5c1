"""What the clients of OpenAI-compatible endpoints share: all but the way bytes travel."""

import asyncio
import os
import random
import time
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

import msgspec

from harness_cli.errors import ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.dialect import Dialect
from harness_cli.models.identity import policy_id
from harness_cli.models.provider_errors import malformed, shown, status_error
from harness_cli.models.retry import RetryRules, with_retries
from harness_cli.models.sse import decoded
from harness_cli.models.stream import Response, read_stream
from harness_cli.models.wire import ReplyBuilder, request_body
from harness_cli.records.chat import ChatReply, ChatRequest, Usage
from harness_cli.records.config import PolicyConfig, Price
from harness_cli.store.redact import Redactor

DEFAULT_URL: Final = "https://api.openai.com/v1"
_ERROR_BYTES: Final = 64 * 1024


class ClientPolicy(ABC):
    """A policy behind HTTP: retries, deadlines, concurrency, usage, cost, redaction."""

    def __init__(self, name: str, config: PolicyConfig, *, seed: int = 0) -> None:
        self.name = name
        self.config = config
        self.url = (config.base_url or _default_url()).rstrip("/")
        self.id = policy_id(name, config, base_url=self.url)
        self.key = api_key(name, config)
        self._redactor = Redactor.from_environment(more=[self.key] if self.key else [])
        self._rules = RetryRules(config.max_attempts, config.attempt_timeout_s)
        self._rng = random.Random(f"{seed} {self.id}")  # jitter only, no secret
        self._dialect = Dialect()
        self._slots = asyncio.Semaphore(config.concurrency) if config.concurrency else None

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """One answer; `ttft_s` is of the attempt that gave it, `latency_s` of all attempts."""
        deadline = deadline.sooner(self.config.total_timeout_s)
        body = request_body(request, self.config)
        learnt: list[str] = []
        ended = 0.0

        async def attempt(seconds: float) -> ChatReply:
            nonlocal ended
            while True:
                sent = self._dialect.apply(body)
                try:
                    reply, ended = await self._attempt(sent, request, seconds)
                    return reply
                except ProviderError as error:
                    refused = self._dialect.learn(error, sent)
                    if refused is None:  # cleaned here, before a retry of it is logged
                        raise self._redacted(error, str(error)) from None
                    learnt.append(f"without {refused}")

        try:
            async with self._slot(deadline):
                began = time.perf_counter()
                reply = await with_retries(attempt, self._rules, deadline, self._rng)
        except ProviderError as error:
            raise self._clean(error) from None
        return msgspec.structs.replace(
            self._without_key(reply),
            latency_s=ended - began,
            policy=self.name,
            model=reply.model or self.config.model,
            retry_reasons=(*learnt, *reply.retry_reasons),
            attempts=reply.attempts + len(learnt),
            cost=cost_of(reply.usage, self.config.price),
        )

    async def _attempt(
        self, body: dict[str, Any], request: ChatRequest, seconds: float
    ) -> tuple[ChatReply, float]:
        """The answer, and the moment at which the last of it came."""
        sent = time.perf_counter()
        async with self._post(body, seconds) as response:
            if response.status != 200:
                said = await _beginning(response)
                raise status_error(response.status, response.headers, said)
            if "event-stream" not in response.headers.get("content-type", ""):
                reply, now = whole_reply(await _all(response), request), time.perf_counter()
                return msgspec.structs.replace(reply, attempt_s=now - sent), now
            streamed = await read_stream(response, request)
        reply = streamed.builder.finish()
        first, delta = streamed.first, streamed.said
        timed = msgspec.structs.replace(
            reply,
            ttft_s=None if first is None else first - sent,
            first_delta_s=None if delta is None else delta - sent,
            attempt_s=streamed.last - sent,
        )
        return timed, streamed.last

    @abstractmethod
    def _post(self, body: dict[str, Any], seconds: float) -> AbstractAsyncContextManager[Response]:
        """Post `body`; the context ends the exchange, cleanly only when it was read to its end.

        Raises `ProviderError` for what goes wrong on the way, within `seconds`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Give connections back."""

    def _slot(self, deadline: Deadline) -> AbstractAsyncContextManager[Any]:
        return nullcontext() if self._slots is None else _Slot(self._slots, deadline)

    def stall_s(self) -> float | None:
        """Silence that ends an attempt: only a stream can be told to be silent."""
        return self.config.stall_timeout_s if self.config.stream else None

    def _without_key(self, reply: ChatReply) -> ChatReply:
        """An endpoint that says our own key back has not said it: no caller need know the key."""
        key = msgspec.json.encode(self.key or "").strip(b'"')
        if not key or key not in msgspec.json.encode(reply):
            return reply
        clean = self._redactor.value(msgspec.to_builtins(reply))
        return msgspec.convert(clean, ChatReply)

    def _clean(self, error: ProviderError) -> ProviderError:
        """The same error without any key in its text, and with what a person can do."""
        clean = self._redacted(error, f"policy `{self.name}`: {error}")
        if error.kind == "auth" and clean.hint is None:
            wanted = self.config.api_key_env
            clean.hint = (
                f"check the key in the environment variable `{wanted}`"
                if wanted
                else "name the environment variable of the key with `api_key_env` in harness.yaml"
            )
        return clean

    def _redacted(self, error: ProviderError, text: str) -> ProviderError:
        clean = ProviderError.of(
            error.kind,
            self._redactor.text(text),
            retryable=error.retryable,
            status=error.status,
            retry_after_s=error.retry_after_s,
        )
        clean.hint = self._redactor.text(error.hint) if error.hint else None
        return clean


class _Slot(AbstractAsyncContextManager[None]):
    """One of the policy's calls at a time, waited for no longer than the deadline."""

    def __init__(self, slots: asyncio.Semaphore, deadline: Deadline) -> None:
        self._slots, self._deadline = slots, deadline

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(self._deadline.left()):
                await self._slots.acquire()
        except TimeoutError as exc:
            raise ProviderError.of(
                "timeout", "no free slot of the policy's `concurrency` in time", retryable=True
            ) from exc

    async def __aexit__(self, *exc: object) -> None:
        self._slots.release()


def whole_reply(data: bytes, request: ChatRequest) -> ChatReply:
    """The reply of an answer that was not streamed."""
    try:
        payload = decoded(data)
    except ValueError as exc:
        raise malformed(f"the answer is no JSON: {shown(data)}") from exc
    builder = ReplyBuilder(request)
    builder.add(payload)
    return builder.finish()


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """US dollars of one call; None when price or usage is unknown.

    Cached input tokens cost `price.cached`, or as much as others when that is not given.
    """
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cached_price = price.input if price.cached is None else price.cached
    total = (usage.input_tokens - cached) * price.input + cached * cached_price
    return (total + usage.output_tokens * price.output) / 1e6


def api_key(name: str, config: PolicyConfig) -> str | None:
    """The key a policy's settings name; raises `UsageError` when its variable is not set.

    `OPENAI_API_KEY` is read unasked only for the default address: a key never goes to a server
    that it was not meant for.
    """
    variable = config.api_key_env
    if variable is None and config.base_url is None and "OPENAI_BASE_URL" not in os.environ:
        variable = "OPENAI_API_KEY"
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(
            f"policy `{name}` needs the environment variable `{variable}`",
            hint=f"export {variable}=…",
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable `{variable}` holds no key: odd characters")
    return key


def _default_url() -> str:
    return os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL


async def _all(response: Response) -> bytes:
    parts = []
    while data := await response.read():
        parts.append(data)
    return b"".join(parts)


async def _beginning(response: Response) -> bytes:
    """What an error answer says, up to a bound; a body that breaks off says less."""
    said = b""
    try:
        while len(said) < _ERROR_BYTES and (data := await response.read()):
            said += data
    except ProviderError:
        pass
    return said
