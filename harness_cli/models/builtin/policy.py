"""The client of the `builtin` policy: it starts the worker process and speaks lines with it."""

import asyncio
import contextlib
import functools
import hashlib
import itertools
import json
import sys
import time
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import msgspec

from harness_cli.errors import MissingExtra, ProviderError, UnknownName
from harness_cli.models.base import Deadline
from harness_cli.models.builtin.vectors import VECTORS, vectors_version
from harness_cli.records.chat import ChatReply, ChatRequest, RawToolCall
from harness_cli.records.config import PolicyConfig

WORKER = "harness_cli.models.builtin.worker"
LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of one answer line."""
CLOSE_S = 2.0
"""How long a worker may take to end by itself once its input is closed."""
ATTEMPTS = 2
"""A call is asked again once when the worker died under it."""


class BuiltinPolicy:
    """The embedded baseline policy. No key, no network; one worker process, started when needed.

    Calls may overlap; the worker answers them one after the other, in milliseconds each. It belongs
    to the event loop of its first call until it is closed.
    """

    def __init__(self, name: str = "builtin", config: PolicyConfig | None = None) -> None:
        self.name = name
        self.vectors = vectors = (config.model if config else "") or "wordllama"
        if vectors not in VECTORS:
            raise UnknownName.of("kind of vectors for `builtin`", vectors, VECTORS)
        try:
            self.id = f"builtin@{policy_digest(vectors)}"
        except PackageNotFoundError as error:
            raise MissingExtra.of(f"builtin with {vectors} vectors", "zh") from error
        self._worker: _Worker | None = None
        self._starting = asyncio.Lock()

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """One answer; asked again once when the worker died meanwhile."""
        started = time.monotonic()
        body = wire_body(request)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with asyncio.timeout(deadline.left()):
                    worker = await self._running()
                    answer = await worker.ask(body)
            except TimeoutError as error:
                raise ProviderError.of(
                    "timeout", "`builtin` did not answer before the deadline", retryable=True
                ) from error
            except _WorkerDied as death:
                if attempt == ATTEMPTS:
                    raise ProviderError.of(
                        "server", f"the `builtin` worker died: {death}", retryable=False
                    ) from death
                continue
            return self._reply(answer, attempt, time.monotonic() - started)
        raise AssertionError("unreachable")

    async def warm(self) -> None:
        """Start the worker and wait until it can think, before anyone waits for an answer."""
        try:
            await (await self._running()).ask({"messages": []})
        except _WorkerDied as death:
            raise ProviderError.of(
                "server", f"the `builtin` worker died: {death}", retryable=False
            ) from death

    async def close(self) -> None:
        """End the worker and wait for it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    async def _running(self) -> "_Worker":
        async with self._starting:
            worker = self._worker
            if worker is None or not worker.alive:
                if worker is not None:
                    await worker.close()
                self._worker = worker = await _Worker.start(self.vectors)
            return worker

    def _reply(self, answer: dict[str, Any], attempts: int, seconds: float) -> ChatReply:
        if "error" in answer:
            raise ProviderError.of(
                "server", f"`builtin` failed on this request: {answer['error']}", retryable=False
            )
        choice = answer["reply"]["choices"][0]
        message = choice["message"]
        return ChatReply(
            content=message.get("content"),
            tool_calls=tuple(
                RawToolCall(
                    id=c["id"], name=c["function"]["name"], arguments=c["function"]["arguments"]
                )
                for c in message.get("tool_calls") or ()
            ),
            finish_reason=choice["finish_reason"],
            model=self.id,
            latency_s=seconds,
            attempts=attempts,
            retry_reasons=("transport",) * (attempts - 1),
            policy=self.name,
        )


class _WorkerDied(Exception):
    """The process ended with a call unanswered."""


class _Worker:
    """One running worker process and the calls that wait for it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._complaint = b""
        self._reader = asyncio.create_task(self._read())
        self._errors = asyncio.create_task(self._read_errors())

    @classmethod
    async def start(cls, vectors: str) -> "_Worker":
        """A worker that shares neither folder nor environment with the project."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-m",
                WORKER,
                vectors,
                cwd="/",
                env=ENVIRONMENT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_LIMIT,
            )
        except OSError as error:
            raise ProviderError.of(
                "transport", f"the `builtin` worker did not start: {error}", retryable=False
            ) from error
        return cls(process)

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return self._process.returncode is None and not self._reader.done()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer to one body. Raises `_WorkerDied`."""
        number = next(self._numbers)
        line = _line({"id": number, "body": body})
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            await self._process.stdin.drain()
            if self._reader.done():
                raise _WorkerDied(self._last_words())
            return await future
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _WorkerDied(self._last_words()) from error
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Close its input, wait a little, kill if it will not end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await asyncio.gather(self._reader, self._errors, return_exceptions=True)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._deliver(line)
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(_WorkerDied(self._last_words()))

    def _deliver(self, line: bytes) -> None:
        try:
            answer = msgspec.json.decode(line)
            future = self._waiting.get(answer["id"])
        except (msgspec.DecodeError, KeyError, TypeError):
            return  # not an answer: something printed; the call it belongs to has its deadline
        if future is not None and not future.done():
            future.set_result(answer)

    async def _read_errors(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self._complaint = (self._complaint + chunk)[-2000:]

    def _last_words(self) -> str:
        lines = self._complaint.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self._process.returncode}"


def _line(asked: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(asked) + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which viewers may send
        return json.dumps(asked, ensure_ascii=True).encode() + b"\n"


ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""All that the worker's environment holds: nothing of the project, nothing secret."""


def wire_body(request: ChatRequest) -> dict[str, Any]:
    """What an OpenAI client would send for a request."""
    body: dict[str, Any] = {
        "model": "builtin",
        "messages": list(request.messages),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
    }
    if request.tools:
        body["tools"] = list(request.tools)
    for name in ("seed", "tool_choice"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.stop:
        body["stop"] = list(request.stop)
    return body


@functools.cache
def policy_digest(vectors: str) -> str:
    """Twelve hex digits over the policy's source files and the version of its vectors."""
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        found.update(path.name.encode() + b"\0" + path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    found.update(vectors_version(vectors).encode())
    return found.hexdigest()[:12]
