"""Recorded answers: a policy that records what another one said, and one that says it again.

A cassette is JSON Lines: a header, then one entry per call with the digest of its request, the
reply, and a checksum. Requests are told apart by what a model sees of them; the same request asked
twice has two entries, given again in the order they were recorded.
"""

import asyncio
import os
import threading
from collections import defaultdict
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from harness_cli.errors import BadFile, HarnessError, ProviderError
from harness_cli.models.base import Deadline, Policy
from harness_cli.records.canonical import digest, sha256
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.config import PolicyConfig
from harness_cli.store.redact import Redactor

SCHEMA: Final = 1
T = TypeVar("T")


class CassetteHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a cassette."""

    cassette: int = SCHEMA
    policy: str
    policy_id: str


class CassetteEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded call. `request` is a digest, `asked` the end of the question, for people."""

    request: str
    asked: str
    reply: ChatReply
    check: str = ""
    """SHA-256, 16 hex digits, over the line without this field."""


def request_digest(request: ChatRequest) -> str:
    """What two requests share exactly when a model cannot tell them apart."""
    plain = msgspec.to_builtins(request)
    if plain["text_calls"]:  # the usual: cassettes of before it was a setting stay good
        del plain["text_calls"]
    return digest(plain)


class RecordingPolicy:
    """Asks another policy and appends every answer to a cassette, redacted."""

    def __init__(self, policy: Policy, path: Path) -> None:
        self._policy = policy
        self.name, self.id = policy.name, policy.id
        self._redactor = Redactor.from_environment()
        self._path = path
        self._begun = False
        self._one_at_a_time = threading.Lock()
        self._check()

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """The other policy's answer, once it is recorded; failures are not."""
        reply = await self._policy.complete(request, deadline)
        await asyncio.to_thread(self._append, request, reply)
        return reply

    async def close(self) -> None:
        """Close the other policy."""
        await self._policy.close()

    def _append(self, request: ChatRequest, reply: ChatReply) -> None:
        kept = msgspec.convert(self._redactor.value(msgspec.to_builtins(reply)), ChatReply)
        entry = CassetteEntry(
            request=request_digest(request), asked=self._redactor.text(_asked(request)), reply=kept
        )
        with self._one_at_a_time:
            try:
                self._write(_line(entry))
            except OSError as exc:
                raise HarnessError(
                    f"the answer cannot be recorded in `{self._path}`: {exc.strerror}",
                    hint="make room for it, then resume the run with the same --record FILE",
                ) from exc

    def _check(self) -> None:
        """Before anybody is asked: a file that can be written, new or a cassette of this policy."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists() and not self._path.is_file():
            raise BadFile(f"`{self._path}` is no file to record in", hint="name another one")
        with self._path.open("ab") as file:
            if not file.tell():
                return
        header, _ = read_cassette(self._path)
        if header.policy_id != self.id:
            raise BadFile(
                f"`{self._path}` was recorded from `{header.policy_id}`, not from `{self.id}`",
                hint="record into a new file",
            )

    def _write(self, line: bytes) -> None:
        """Behind the header, and where a line was torn in its place."""
        if not self._begun:
            data = self._path.read_bytes()
            os.truncate(self._path, data.rfind(b"\n") + 1)
            if not data:
                header = CassetteHeader(policy=self.name, policy_id=self.id)
                line = msgspec.json.encode(header) + b"\n" + line
        self._begun = False  # until the line is whole
        with self._path.open("ab") as file:
            file.write(line)
        self._begun = True


class ReplayPolicy:
    """Answers from a cassette alone; every reply is marked `cached` and has no times."""

    def __init__(
        self, path: Path, *, name: str = "replay", policy_id: str | None = None, shown: str = ""
    ) -> None:
        self._shown = shown or str(path)
        header, entries = read_cassette(path, name=self._shown)
        self.name, self.id = name, policy_id or header.policy_id
        self._replies: dict[str, list[ChatReply]] = defaultdict(list)
        for entry in entries:
            self._replies[entry.request].append(entry.reply)
        self._given: dict[str, int] = defaultdict(int)

    async def complete(
        self,
        request: ChatRequest,
        deadline: Deadline,  # noqa: ARG002  nothing is waited for
    ) -> ChatReply:
        """The recorded answer; a request that was not recorded is an error, never a guess."""
        key = request_digest(request)
        known = self._replies.get(key)
        if not known:
            error = ProviderError.of(
                "bad_request",
                f"`{self._shown}` has no answer to this request (…{_asked(request)})",
                retryable=False,
            )
            error.hint = "prompt, tools or settings changed since it was recorded: record it again"
            raise error
        turn = min(self._given[key], len(known) - 1)
        self._given[key] += 1
        return msgspec.structs.replace(
            known[turn],
            cached=True,
            policy=self.name,
            ttft_s=None,
            first_delta_s=None,
            attempt_s=None,
            latency_s=0.0,
        )

    async def close(self) -> None:
        """Nothing is held."""


def open_replay(name: str, config: PolicyConfig, root: Path) -> ReplayPolicy:
    """The replay policy of a `harness.yaml` entry; its cassette is relative to the project."""
    if not config.script:
        raise BadFile(f"policy `{name}` has no `script`", hint="name a recorded cassette")
    return ReplayPolicy(root / config.script, name=name, shown=config.script)


def read_cassette(
    path: Path, *, name: str | None = None
) -> tuple[CassetteHeader, tuple[CassetteEntry, ...]]:
    """A cassette's header and entries.

    Raises `BadFile` with the line that is damaged. A last line without its end is what a killed
    recording leaves: it was never acknowledged and is passed over.
    """
    name = name or str(path)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        raise BadFile(f"no cassette `{name}`", hint="`--record FILE` makes one") from None
    lines = data.split(b"\n")[:-1]
    if not lines:
        raise BadFile(f"{name}: the cassette is empty")
    header = _decode(lines[0], CassetteHeader, f"{name}:1")
    if header.cassette != SCHEMA:
        raise BadFile(
            f"{name}:1: cassette {header.cassette} is not known", hint=f"this is {SCHEMA}"
        )
    return header, tuple(_entry(text, f"{name}:{n}") for n, text in enumerate(lines[1:], 2))


def _entry(text: bytes, place: str) -> CassetteEntry:
    entry = _decode(text, CassetteEntry, place)
    if _check(entry) != entry.check:
        raise BadFile(
            f"{place}: the checksum does not fit", hint="the cassette was changed by hand"
        )
    return entry


def _decode(text: bytes, kind: type[T], place: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as exc:
        raise BadFile(f"{place}: {exc}", hint="this is no cassette, or it is damaged") from exc


def _line(entry: CassetteEntry) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(entry, check=_check(entry))) + b"\n"


def _check(entry: CassetteEntry) -> str:
    return sha256(msgspec.json.encode(msgspec.structs.replace(entry, check="")))[:16]


def _asked(request: ChatRequest) -> str:
    """The end of the last message, to recognise a request by."""
    last = request.messages[-1] if request.messages else {}
    return " ".join(str(last.get("content") or "").split())[-80:]
