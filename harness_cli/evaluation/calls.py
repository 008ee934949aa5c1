"""The engine's call log: journals every call of a rollout, and replays what a killed run recorded.

Before anything new is asked, everything this rollout has recorded is written: so a kill at any
moment loses at most the calls in flight, and a resumed rollout goes on with its next call. It is
not waited for the disk to say so: what a power cut may take, half a second of calls, was
acknowledged to nobody.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from harness_cli.errors import ProviderError, ToolError
from harness_cli.evaluation.gate import Gate
from harness_cli.evaluation.redaction import Cleaner
from harness_cli.records.chat import ChatReply, ChatRequest, Message
from harness_cli.records.journal import CallError, ModelRecord, ToolRecord
from harness_cli.records.trajectory import ToolResult
from harness_cli.records.verdict import Verdict
from harness_cli.store.journal import Journal

_encode = msgspec.json.Encoder(order="sorted").encode


class Recorded:
    """The calls of one unfinished rollout, as a journal has them."""

    __slots__ = ("models", "tools", "verdict", "votes")

    def __init__(self) -> None:
        self.models: dict[int, ModelRecord] = {}
        self.tools: dict[int, ToolRecord] = {}
        self.verdict: Verdict | None = None
        self.votes: dict[str, Recorded] = {}
        """Calls of the judge's members, by name."""


class SharedDigests:
    """Digests of what most calls of a run have in common: the tools and the system prompt."""

    __slots__ = ("_first", "_message", "_tools", "_tools_digest")

    def __init__(self) -> None:
        self._tools: tuple[dict[str, Any], ...] | None = None
        self._message: Message = {}
        self._tools_digest = self._first = b""

    def tools(self, tools: tuple[dict[str, Any], ...]) -> bytes:
        """Digest of `tools`, in the order in which they are offered."""
        if tools is not self._tools:
            self._tools, self._tools_digest = tools, _digest(_encode(tools))
        return self._tools_digest

    def first(self, message: Message) -> bytes:
        """Digest of a rollout's first message."""
        if message != self._message:
            self._message, self._first = message, _digest(_encode(message))
        return self._first


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class JournaledCalls:
    """`CallLog` of one rollout. Raises `RunStopped` where the gate lets no new call through."""

    def __init__(
        self,
        journal: Journal,
        gate: Gate,
        shared: SharedDigests,
        cleaner: Cleaner,
        *,
        item: str,
        repeat: int,
        judge: str = "",
        recorded: Recorded | None = None,
    ) -> None:
        self._judge = judge
        self._journal = journal
        self._gate = gate
        self._shared = shared
        self._cleaner = cleaner
        self._item = item
        self._repeat = repeat
        self._recorded = recorded
        self._messages: tuple[Message, ...] = ()
        self._chain = b""
        self.replayed = 0
        self.fresh = 0
        self.diverged = False
        """The journal had other questions than this rollout asks: the rest was asked anew."""

    @property
    def complete(self) -> bool:
        """Everything this rollout asked was answered from the journal."""
        return self.replayed > 0 and not self.fresh and not self.diverged

    async def model(
        self, index: int, request: ChatRequest, call: Callable[[], Awaitable[ChatReply]]
    ) -> ChatReply:
        """The recorded answer of model call `index`, or a fresh one, recorded."""
        digest = self._digest(request)
        found = self._recorded.models.get(index) if self._recorded else None
        if found is not None and self._same(found.request, digest):
            return _answer(found)
        self._journal.write_out()
        self._gate.before_call()
        reply: ChatReply | None = None
        began = time.perf_counter()
        try:
            reply = self._cleaner.reply(await call())
        except ProviderError as exc:
            error = replace(self._error(exc), seconds=time.perf_counter() - began)
            failed = self._model(index, digest, error=error)
            self._write(failed)
            return _answer(failed)  # raises it, cleaned, as a resume will
        finally:
            self._gate.after_call(reply, request)
        self._write(self._model(index, digest, reply=reply))
        return reply

    async def tool(
        self,
        index: int,
        name: str,
        arguments: Mapping[str, Any],
        call: Callable[[], Awaitable[ToolResult]],
    ) -> tuple[ToolResult, bool]:
        """The recorded result of tool call `index` (True), or a fresh one (False)."""
        digest = blake2b(_encode(arguments), digest_size=8).hexdigest()
        found = self._recorded.tools.get(index) if self._recorded else None
        if found is not None and self._same((found.name, found.arguments), (name, digest)):
            return _result(found), True
        try:
            result = self._cleaner.result(await call())
        except ToolError as exc:
            refused = self._tool(index, name, digest, error=self._error(exc))
            self._write(refused)
            return _result(refused), False
        self._write(self._tool(index, name, digest, result=result))
        return result, False

    def _write(self, record: ModelRecord | ToolRecord) -> None:
        self.fresh += 1
        self._journal.append(record)

    def _model(self, index: int, digest: str, **outcome: Any) -> ModelRecord:
        return ModelRecord(
            item=self._item,
            repeat=self._repeat,
            judge=self._judge,
            index=index,
            request=digest,
            **outcome,
        )

    def _tool(self, index: int, name: str, digest: str, **outcome: Any) -> ToolRecord:
        return ToolRecord(
            item=self._item,
            repeat=self._repeat,
            judge=self._judge,
            index=index,
            name=name,
            arguments=digest,
            **outcome,
        )

    def _error(self, exc: ProviderError | ToolError) -> CallError:
        message = self._cleaner.text(str(exc))
        if isinstance(exc, ToolError):
            return CallError(kind=exc.kind, message=message)
        return CallError(kind=exc.kind, message=message, retryable=exc.retryable, status=exc.status)

    def _same(self, recorded: object, asked: object) -> bool:
        if recorded == asked:
            self.replayed += 1
            return True
        self._recorded, self.diverged = None, True
        return False

    def _digest(self, request: ChatRequest) -> str:
        """Digest of a request; the messages it shares with the one before are not read again."""
        old, new = self._messages, request.messages
        if not (old and len(new) >= len(old) and all(map(_is, old, new))):
            self._chain, old = b"", ()
        if new and not old:
            self._chain, old = self._shared.first(new[0]), new[:1]
        for message in new[len(old) :]:
            self._chain = _digest(self._chain + _encode(message))
        self._messages = new
        settings = (
            request.temperature,
            request.top_p,
            request.max_tokens,
            request.seed,
            request.tool_choice,
            request.stop,
        )
        whole = self._chain + self._shared.tools(request.tools) + _encode(settings)
        return blake2b(whole, digest_size=16).hexdigest()


def _is(a: object, b: object) -> bool:
    return a is b


def _answer(record: ModelRecord) -> ChatReply:
    if record.reply is not None:
        return record.reply
    error = record.error or CallError(kind="transport", message="no answer was recorded")
    raise ProviderError.of(
        error.kind, error.message, retryable=error.retryable, status=error.status
    )


def _result(record: ToolRecord) -> ToolResult:
    if record.result is not None:
        return record.result
    error = record.error or CallError(kind="unavailable", message="no result was recorded")
    raise ToolError.of(error.kind, error.message)
